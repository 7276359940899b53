package simulation_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

var (
	epoch     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errFailed = errors.New("it failed")
)

// scenario is a consumer with its queues in a loop of their own.
type scenario struct {
	*world.Loop
	service     *world.Service
	queue, dead *world.Queue
	process     *world.Process
	*simulation.Consumer

	attempts map[string][]simulation.Attempt // by the id of the first of a line of copies
	settled  map[consumer.Outcome]int
	story    []string
}

// settings are those of a consumer by default.
func settings() consumer.Settings {
	return consumer.Settings{
		Settings:    plan.Settings{Lease: time.Minute},
		Retry:       retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: 4, MaxAge: -1},
		Concurrency: 10, Prefetch: 10, LongPoll: 20 * time.Second, StopBudget: 25 * time.Second,
		InFlightQuota: plan.MaxInFlight, Threshold: 10, Seed: 1,
	}
}

// newScenario makes a consumer as change leaves its spec, and starts it.
func newScenario(t testing.TB, seed uint64, queue engine.Settings, change func(*simulation.Spec)) *scenario {
	t.Helper()
	l := world.NewLoop(epoch, seed)
	s := &scenario{Loop: l, service: l.NewService(), process: l.Start("node", 0, 0), attempts: make(map[string][]simulation.Attempt), settled: make(map[consumer.Outcome]int)}
	queue.Visibility = 30 * time.Second
	suffix := ""
	if queue.FIFO {
		suffix = ".fifo"
	}
	s.dead = s.service.Create("dead"+suffix, engine.Settings{FIFO: queue.FIFO})
	queue.DeadLetter = "dead" + suffix
	if queue.MaxReceives == 0 {
		queue.MaxReceives = 100
	}
	s.queue = s.service.Create("main"+suffix, queue)
	spec := simulation.Spec{
		Settings: settings(), Process: s.process, Service: s.service, Queue: s.queue, Size: 100,
		Latency: world.Latency{Base: time.Millisecond, Spread: time.Millisecond, Most: 100 * time.Millisecond},
		Handler: func(*simulation.Message) simulation.Run { return simulation.Run{Takes: 20 * time.Millisecond} },
		Attempted: func(a simulation.Attempt) {
			s.attempts[a.OriginID] = append(s.attempts[a.OriginID], a)
			s.note("%s attempt %d of %s: %v, %v until %v", a.ID, a.Attempt, a.OriginID, a.Err, a.Outcome, a.Due.Sub(epoch))
		},
		Settled: func(e consumer.Settled) {
			s.settled[e.Outcome]++
			s.note("%s settled: %v, requeued %v, %d requests", simulation.ID(e.Subject), e.Outcome, e.Requeued, e.Requests)
		},
	}
	if change != nil {
		change(&spec)
	}
	c, err := simulation.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	s.Consumer = c
	c.Start()
	return s
}

func (s *scenario) note(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf("%v ", s.Since())+fmt.Sprintf(format, args...))
}

// put sends n messages, of groups groups on a FIFO queue.
func (s *scenario) put(n, groups int) {
	for i := range n {
		m := engine.Message{Payload: i, Delay: -1}
		if s.queue.Settings().FIFO {
			m.Group, m.Dedup = fmt.Sprint(i%groups), fmt.Sprint(i)
		}
		s.queue.Put(m)
	}
}

func (s *scenario) runFor(t testing.TB, d time.Duration) {
	t.Helper()
	if err := s.Run(s.Since() + d); err != nil {
		t.Fatal(err)
	}
}

// left returns how many messages are in a queue.
func left(q *world.Queue) int {
	visible, inFlight, delayed := q.Counts()
	return visible + inFlight + delayed
}

// fails draws whether an attempt fails, from its message and number alone.
func fails(m *simulation.Message, percent uint32) bool {
	h := fnv.New32a()
	fmt.Fprint(h, m.OriginID, m.Attempt)
	return h.Sum32()*2654435761>>16%100 < percent // the sum alone differs too little between attempts
}
