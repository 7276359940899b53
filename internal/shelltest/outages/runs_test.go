package outages

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

var outageSeeds = flag.Int("outages.seeds", race.Fewer(30, 2), "how many runs TestOutageRuns makes, each from a seed of its own")

// TestOutageRuns runs consumers whose dependency fails and recovers, for all keys or for some, and
// is slow or hangs. An operator pauses, resumes, wakes and changes the concurrency, SQS fails now
// and then, and consumers are stopped and started. At any time, no consumer runs more handlers than
// permitted, a message runs once at a time, no message is given up, and every delivery is accounted
// for. When the outages are over, every message is handled: no breaker and no pause holds one for
// ever.
func TestOutageRuns(t *testing.T) {
	seeds := *outageSeeds
	if testing.Short() {
		seeds = min(seeds, 8)
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newOutageRun(t, seed+1).run() })
		})
	}
}

type outageRun struct {
	t      *testing.T
	random *rand.Rand
	q      *reprisetest.Queue
	dead   *reprisetest.Queue
	cfg    reprise.Config
	keys   []string
	fifo   bool

	mu      sync.Mutex
	down    map[string]bool
	hang    bool
	slow    time.Duration
	running map[string]int // by consumer and message
	handled map[string]bool
}

// outageConsumer is one consumer, and how many handlers it may run: the highest concurrency that it
// ever had.
type outageConsumer struct {
	*reprisetest.Consumer
	name string
	may  int
	runs int
}

func newOutageRun(t *testing.T, seed uint64) *outageRun {
	s := &outageRun{
		t: t, random: rand.New(rand.NewPCG(seed, 1)),
		keys: []string{"acme", "bolt", "coil"},
		down: make(map[string]bool), running: make(map[string]int), handled: make(map[string]bool),
	}
	s.fifo = s.random.IntN(3) == 0
	var attributes map[string]string
	if s.fifo {
		attributes = kit.FIFOQueue
	}
	s.q = reprisetest.NewQueue(t, attributes)
	s.dead = s.q.NewDeadLetterQueue(1000)
	s.cfg = reprise.Config{
		Concurrency: 1 + s.random.IntN(20),
		Prefetch:    s.random.IntN(20) - 1,
		Lease:       time.Duration(2+s.random.IntN(60)) * time.Second,
		StopBudget:  time.Duration(5+s.random.IntN(20)) * time.Second,
		Retry:       retry.Policy{MaxAttempts: -1, MaxAge: -1, Backoff: retry.Exponential{Base: time.Second, Max: time.Duration(1+s.random.IntN(100)) * time.Minute}},
		Outage:      reprise.Outage{Threshold: 1 + s.random.IntN(20)},
	}
	if s.random.IntN(2) == 0 {
		s.cfg.Outage.Key = kit.Tenant
	}
	if s.random.IntN(2) == 0 {
		s.cfg.HandlerTimeout = 20 * time.Second
	}
	if s.random.IntN(4) == 0 {
		s.cfg.Rate = 0.5 + 20*s.random.Float64()
	}
	if s.random.IntN(3) == 0 {
		s.cfg.Outage.Probe = func(_ context.Context, key string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return kit.FailBut(!s.down[""] && !s.down[key], kit.ErrUnavailable)
		}
	}
	if s.random.IntN(2) == 0 {
		s.q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Probability: 0.1},
			// No receive is lost, because a reply that never arrives looks like the end of a process.
			sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "ChangeMessageVisibilityBatch", Probability: 0.05},
			sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Probability: 0.05},
			sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Probability: 0.1},
		)
	}
	return s
}

func (s *outageRun) run() {
	var consumers []*outageConsumer
	for i := range 1 + s.random.IntN(3) {
		consumers = append(consumers, s.start(fmt.Sprint("consumer ", i)))
	}
	sent := 0
	for range 40 {
		for range s.random.IntN(20) {
			sent++
			body := fmt.Sprintf("%s:%d", s.keys[s.random.IntN(len(s.keys))], sent)
			s.q.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: s.groupOf(body), MessageDeduplicationId: s.dedupOf(body)})
		}
		i := s.random.IntN(len(consumers))
		if s.random.IntN(12) == 0 {
			s.stop(consumers[i])
			consumers[i] = s.start(consumers[i].name + "'")
		}
		s.operate(consumers[i])
		s.changeDependency()
		time.Sleep(time.Duration(s.random.Int64N(int64(10 * time.Minute))))
	}
	s.mu.Lock()
	s.down, s.hang, s.slow = nil, false, 100*time.Millisecond
	s.mu.Unlock()
	s.q.Fault()
	for _, c := range consumers {
		c.Resume()
		if s.cfg.Outage.Key != nil {
			for _, key := range s.keys {
				if err := c.ResumeKey(key); err != nil {
					s.t.Error(err)
				}
			}
		}
	}
	s.q.WaitEmpty(24 * time.Hour)
	for _, c := range consumers {
		s.stop(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handled) != sent {
		s.t.Errorf("%d of %d messages were handled", len(s.handled), sent)
	}
	for _, m := range s.dead.Messages() {
		s.t.Errorf("given up: %+v", kit.StoryOf(s.t, m))
	}
}

func (s *outageRun) groupOf(body string) string {
	return kit.Tenant(&reprise.Message{Body: body}) + body[len(body)-1:]
}

func (s *outageRun) dedupOf(body string) string {
	if s.fifo {
		return body
	}
	return ""
}

// changeDependency makes the dependency fail, recover, hang, or answer more slowly.
func (s *outageRun) changeDependency() {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := append(s.keys, "")[s.random.IntN(len(s.keys)+1)]
	s.down[key] = s.random.IntN(2) == 0
	s.hang = s.random.IntN(8) == 0
	s.slow = time.Duration(s.random.Int64N(int64(3 * time.Second)))
}

// operate makes a random change that an operator could make.
func (s *outageRun) operate(c *outageConsumer) {
	key := s.keys[s.random.IntN(len(s.keys))]
	var err error
	switch s.random.IntN(12) {
	case 0:
		c.Pause()
	case 1, 2, 3:
		c.Resume()
	case 4:
		n := 1 + s.random.IntN(30)
		s.mu.Lock()
		c.may = max(c.may, n)
		s.mu.Unlock()
		err = c.SetConcurrency(n)
	case 5:
		c.Wake()
	case 6:
		c.Wake(key)
	case 7:
		if s.cfg.Outage.Key != nil {
			err = c.PauseKey(key)
		}
	case 8, 9:
		if s.cfg.Outage.Key != nil {
			err = c.ResumeKey(key)
		}
	default:
		c.Status()
	}
	if err != nil {
		s.t.Error(err)
	}
}

func (s *outageRun) start(name string) *outageConsumer {
	c := &outageConsumer{name: name, may: s.cfg.Concurrency}
	c.Consumer = s.q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		return s.handle(ctx, c, m)
	}), s.cfg)
	return c
}

func (s *outageRun) handle(ctx context.Context, c *outageConsumer, m *reprise.Message) error {
	s.mu.Lock()
	me := c.name + m.ID
	if s.running[me]++; s.running[me] > 1 {
		s.t.Errorf("%s runs %s twice at once", c.name, m.Body)
	}
	if c.runs++; c.runs > c.may {
		s.t.Errorf("%s runs %d handlers of %d", c.name, c.runs, c.may)
	}
	takes, hang := s.slow, s.hang
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running[me]--
		c.runs--
	}()
	if hang {
		takes = 15 * time.Minute
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down[""] || s.down[kit.Tenant(m)]:
		return reprise.Unavailable(kit.ErrUnavailable)
	case m.Attempt%7 == 3:
		return kit.ErrUnavailable
	}
	s.handled[m.OriginID] = true
	return nil
}

// stop stops a consumer, and checks its accounts.
func (s *outageRun) stop(c *outageConsumer) {
	report := c.Stop()
	n := report.Counts
	if report.Drained() && n.Received != n.Duplicates+n.Deleted+n.Retried+n.Released+n.Parked+n.DeadLettered+n.Kept+n.Lost {
		s.t.Errorf("%s: not every delivery is accounted for: %+v", c.name, n)
	}
	if left := c.Status(); report.Drained() && left.Running+left.Waiting+left.Settling+left.Pollers != 0 {
		s.t.Errorf("%s holds something after it has drained: %+v", c.name, left)
	}
}
