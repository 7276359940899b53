package simulate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/simulate"
)

var meetings = flag.Int("agree.seeds", 60, "in how many random scenarios TestConsumersMeet holds a plan, a simulation and a consumer against each other")

// TestConsumersMeet holds a plan, a simulation and a consumer in a synctest bubble against each other in
// random scenarios: each message has the same attempts with the same ends, and each attempt comes at
// the same time in all three, but for the rounding to whole seconds, which a millisecond of network
// can decide.
func TestConsumersMeet(t *testing.T) {
	attempts, successes, dead := 0, 0, 0
	for seed := range uint64(*meetings) { //nolint:gosec // G115: a small number
		m := newMeeting(t, seed)
		result := run(t, m.scenario)
		for _, a := range result.Trace {
			m.ends[try{a.Message, a.Attempt}] = a
		}
		m.compare(t, result)
		attempts += result.Attempts.Started
		successes += result.Messages.Done
		dead += result.Messages.Dead
	}
	if each := *meetings; attempts < 30*each || successes < 4*each || dead < 4*each {
		t.Errorf("%d attempts, %d successes and %d dead letters in %d scenarios: too few", attempts, successes, dead, each)
	}
}

// meeting is a scenario in which a consumer does what the simulation did.
type meeting struct {
	name     string
	scenario simulate.Scenario
	ends     map[try]simulate.Traced
}

// try is an attempt of a message.
type try struct{ message, attempt int }

func newMeeting(t *testing.T, seed uint64) *meeting {
	r := rand.New(rand.NewPCG(seed, 0))
	text := fmt.Sprintf("exponential(base=%ds,max=%ds) jitter=none attempts=%d", 1+r.IntN(10), 30+r.IntN(300), 2+r.IntN(6))
	if r.IntN(3) == 0 {
		text = fmt.Sprintf("list(%ds,%ds,%ds) jitter=none attempts=%d", 1+r.IntN(60), 1+r.IntN(60), 1+r.IntN(600), 2+r.IntN(8))
	}
	messages := 1 + r.IntN(40)
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: messages}, Policy: policy(t, text), Trace: messages, Seed: seed,
		Handler: simulate.Handler{Takes: simulate.Constant(time.Duration(10+r.IntN(500)) * time.Millisecond)},
		Fleet:   simulate.Fleet{Concurrency: 1 + r.IntN(50), Prefetch: r.IntN(30) - 1, NoBreaker: true},
	}
	switch r.IntN(3) {
	case 0:
		s.Handler.Always = 1
	default:
		s.Handler.Fails = []float64{r.Float64(), r.Float64(), r.Float64()}
		s.Handler.Permanent, s.Handler.Always = 0.2*r.Float64(), 0.3*r.Float64()
	}
	if r.IntN(2) == 0 {
		s.Dependency.Outages = []simulate.Outage{{At: time.Duration(r.IntN(60)) * time.Second, For: time.Duration(1+r.IntN(300)) * time.Second, Share: 0.1 + 0.9*r.Float64()}}
	}
	switch r.IntN(4) {
	case 0:
		s.Fleet.Batch = simulate.Batch{Size: 2 + r.IntN(20), Linger: 200 * time.Millisecond}
	case 1:
		s.Fleet.RetryLane = simulate.RetryLane{Weight: 1 + r.IntN(3), Priority: r.IntN(3) - 1}
	}
	return &meeting{fmt.Sprintf("seed %d: %s, %+v", seed, text, s), s, make(map[try]simulate.Traced)}
}

// compare runs the consumer, and holds the three against each other.
func (m *meeting) compare(t *testing.T, result *simulate.Result) {
	t.Helper()
	const rounding = time.Second + 250*time.Millisecond
	s := &m.scenario
	messages, takes := s.Traffic.Backlog, s.Handler.Takes.Mean()
	simulated, consumed := make([][]time.Duration, s.Policy.MaxAttempts), make([][]time.Duration, s.Policy.MaxAttempts)
	for _, a := range result.Trace {
		simulated[a.Attempt-1] = append(simulated[a.Attempt-1], a.Started)
	}
	for made, at := range m.consumed(t) {
		if _, ok := m.ends[made]; !ok {
			t.Fatalf("%s: the consumer made attempt %d of message %d, the simulation did not", m.name, made.attempt, made.message)
		}
		consumed[made.attempt-1] = append(consumed[made.attempt-1], at)
	}
	planned := plan.NewSchedule(s.Policy, plan.Queue{Retention: plan.MaxRetention}, plan.Settings{}).Attempts
	if len(planned) != s.Policy.MaxAttempts {
		t.Fatalf("%s: the plan has %d attempts", m.name, len(planned))
	}
	for i := range simulated {
		if len(simulated[i]) != len(consumed[i]) {
			t.Fatalf("%s: attempt %d is made %d times in the simulation and %d times by the consumer", m.name, i+1, len(simulated[i]), len(consumed[i]))
		}
		slices.Sort(simulated[i])
		slices.Sort(consumed[i])
		allowed := time.Duration(i+1) * rounding
		for k := range simulated[i] {
			if d := simulated[i][k] - consumed[i][k]; d.Abs() > allowed+m.behind(result.Trace, simulated[i][k], allowed) {
				t.Fatalf("%s: the %dth attempt %d starts at %v in the simulation, %v in the consumer", m.name, k+1, i+1, simulated[i][k], consumed[i][k])
			}
		}
		if len(simulated[i]) == 0 {
			continue
		}
		first := planned[i].Since.Expected + time.Duration(i)*takes
		if d := simulated[i][0] - first; d < 0 || d > allowed && s.Fleet.Concurrency >= messages { // else it waits for a handler
			t.Fatalf("%s: the first attempt %d starts at %v in the simulation, at %v in the plan", m.name, i+1, simulated[i][0], first)
		}
	}
}

// behind is for how long an attempt that starts at the given time may wait for a handler behind others of the
// trace: rounding decides whether those that start within the allowed time of it come before it or after it.
func (m *meeting) behind(trace []simulate.Traced, at, allowed time.Duration) time.Duration {
	s := &m.scenario
	if s.Fleet.Concurrency >= s.Traffic.Backlog {
		return 0
	}
	near := 0
	for _, other := range trace {
		if (other.Started-at).Abs() <= allowed && other.Attempt > 1 {
			near++
		}
	}
	return s.Handler.Takes.Mean() * time.Duration(near) / time.Duration(s.Fleet.Concurrency)
}

// consumed is when a consumer starts each attempt, if they end as they did in the simulation.
func (m *meeting) consumed(t *testing.T) map[try]time.Duration {
	started := make(map[try]time.Duration)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(1000)
		f := &m.scenario.Fleet
		cfg := reprise.Config{Concurrency: f.Concurrency, Prefetch: f.Prefetch, Retry: m.scenario.Policy, Logger: slog.New(slog.DiscardHandler)}
		cfg.Outage.Off = true
		for i := range m.scenario.Traffic.Backlog {
			q.Send(fmt.Sprint(i))
		}
		began := time.Now()
		begins := func(msg *reprise.Message) simulate.Traced {
			i, err := strconv.Atoi(msg.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			started[try{i, msg.Attempt}] = time.Since(began)
			return m.ends[try{i, msg.Attempt}]
		}
		ends := func(msg *reprise.Message, end simulate.Traced) error {
			switch {
			case end.Succeeded:
				return nil
			case end.Outcome == reprise.OutcomeDeadLetter.String() && msg.Attempt < m.scenario.Policy.MaxAttempts:
				return reprise.Permanent(errors.New("it is faulty"))
			}
			return errors.New("it failed")
		}
		queues := []*reprisetest.Queue{q}
		if l := f.RetryLane; l.Weight > 0 {
			lane := q.NewQueue(nil)
			queues = append(queues, lane)
			cfg.DeadLetterURL = dead.URL()
			cfg.RetryLane = reprise.RetryLane{URL: lane.URL(), Share: reprise.Share{Weight: l.Weight, Priority: l.Priority}}
		}
		if f.Batch.Size > 1 {
			q.ConsumeBatch(reprise.BatchHandlerFunc(func(_ context.Context, all []*reprise.Message) []error {
				will, errs := make([]simulate.Traced, len(all)), make([]error, len(all))
				for i, msg := range all {
					will[i] = begins(msg)
				}
				time.Sleep(m.scenario.Handler.Takes.Mean())
				for i, msg := range all {
					errs[i] = ends(msg, will[i])
				}
				return errs
			}), reprise.BatchConfig{Config: cfg, Size: f.Batch.Size, Linger: f.Batch.Linger})
		} else {
			q.Consume(reprise.HandlerFunc(func(_ context.Context, msg *reprise.Message) error {
				will := begins(msg)
				time.Sleep(m.scenario.Handler.Takes.Mean())
				return ends(msg, will)
			}), cfg)
		}
		for range 20 { // messages go back and forth between a queue and its lane
			for _, one := range queues {
				one.WaitEmpty(24 * time.Hour)
			}
		}
		given := 0
		for _, end := range m.ends {
			if end.Outcome == reprise.OutcomeDeadLetter.String() {
				given++
			}
		}
		if n := len(dead.Messages()); n != given {
			t.Errorf("%s: %d dead letters, %d in the simulation", m.name, n, given)
		}
	})
	return started
}
