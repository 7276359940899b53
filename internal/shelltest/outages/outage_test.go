package outages

import (
	"context"
	"errors"
	"strconv"
	"strings"
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

// newOutage returns a queue with n messages, and the dependency of their handlers, which is
// unavailable and answers slowly.
func newOutage(t *testing.T, takes time.Duration, n int) (*reprisetest.Queue, *kit.Dependency) {
	q := reprisetest.NewQueue(t, nil)
	p := &kit.Dependency{Takes: takes}
	p.Set("", true)
	q.Send(kit.Numbered(n)...)
	return q, p
}

// TestOutageOfSixHoursDeadLettersNothing: eight consumers get thousands of messages, and more
// arrive; SQS moves a message away after three receives. The dependency is unavailable for six
// hours. No message is dead-lettered, and the dependency gets hundreds of calls, not millions.
// Afterwards everything is handled soon, and each consumer begins with one call at a time.
func TestOutageOfSixHoursDeadLettersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		consumers, backlog, hours := 8, race.Fewer(3000, 600), race.Fewer(6, 1)
		q, p := newOutage(t, 50*time.Millisecond, backlog)
		dead := q.NewDeadLetterQueue(3)
		var all []*reprisetest.Consumer
		for range consumers {
			all = append(all, q.Consume(p, reprise.Config{}))
		}
		for range hours {
			time.Sleep(time.Hour)
			q.Send(kit.Numbered(100)...)
		}
		for i, c := range all {
			if s := c.Status(); len(s.Breakers) != 1 || s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, kit.ErrUnavailable.Error()) {
				t.Errorf("consumer %d: breakers %+v, health %v: %q", i, s.Breakers, s.Health, s.Problem)
			}
		}
		failed := p.Failures()
		if failed > consumers*hours*300 {
			t.Errorf("%d failed runs in %d hours", failed, hours)
		}
		p.Set("", false)
		recovered := time.Now()
		q.WaitEmpty(5 * time.Minute)
		if n := len(dead.Messages()); n != 0 {
			t.Errorf("%d messages were dead-lettered", n)
		}
		t.Logf("%d failed runs during the outage, worked off in %v", failed, time.Since(recovered))
		p.Mu.Lock()
		defer p.Mu.Unlock()
		for i, at := range p.Starts {
			if since := at.Sub(recovered); since > 0 && p.Peaks[i] > consumers && since < p.Takes {
				t.Errorf("%d calls at once, %v after the dependency was back", p.Peaks[i], since)
			}
		}
	})
}

// TestRecoveryRampsUp: after an outage one handler runs at first, and twice as many with each round
// of successes.
func TestRecoveryRampsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, time.Second, 200)
		c := q.Consume(p, reprise.Config{Concurrency: 16, Prefetch: 16})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(10 * time.Minute)
		p.Set("", false)
		recovered := time.Now()
		q.WaitEmpty(10 * time.Minute)
		p.Mu.Lock()
		defer p.Mu.Unlock()
		most, limit := make(map[time.Time]int), 1
		var order []time.Time
		for i, at := range p.Starts {
			if at.Before(recovered) {
				continue
			}
			if most[at] == 0 {
				order = append(order, at)
			}
			most[at] = max(most[at], p.Peaks[i])
		}
		if len(order) < 6 {
			t.Fatalf("handlers started at %d instants, want more", len(order))
		}
		for _, at := range order[1:6] { // the first is the canary
			if most[at] > limit {
				t.Errorf("%v after recovery %d calls at once, want at most %d", at.Sub(recovered), most[at], limit)
			}
			limit *= 2
		}
	})
}

// TestBreakerStaysClosed: the breaker stays closed if some attempts succeed, if few messages fail,
// or if the failures have another cause than an unavailable dependency.
func TestBreakerStaysClosed(t *testing.T) {
	unavailable := reprise.Unavailable(kit.ErrUnavailable)
	for name, test := range map[string]struct {
		messages int
		outage   reprise.Outage
		handle   func(n int, m *reprise.Message) error // the n-th run
	}{
		"application errors":          {100, reprise.Outage{}, func(int, *reprise.Message) error { return kit.ErrUnavailable }},
		"nineteen messages":           {19, reprise.Outage{}, func(int, *reprise.Message) error { return unavailable }},
		"one message, many times":     {1, reprise.Outage{}, func(int, *reprise.Message) error { return unavailable }},
		"a success after each 19":     {500, reprise.Outage{}, func(n int, _ *reprise.Message) error { return kit.FailBut(n%20 == 19, unavailable) }},
		"one in ten succeeds":         {500, reprise.Outage{}, func(n int, _ *reprise.Message) error { return kit.FailBut(n%10 == 0, unavailable) }},
		"permanent errors":            {100, reprise.Outage{}, func(int, *reprise.Message) error { return reprise.Permanent(unavailable) }},
		"released by the handler":     {100, reprise.Outage{}, func(int, *reprise.Message) error { return reprise.Release(0, unavailable) }},
		"off":                         {100, reprise.Outage{Off: true}, func(int, *reprise.Message) error { return unavailable }},
		"the user says it is not one": {100, reprise.Outage{Unavailable: func(error) bool { return false }}, func(int, *reprise.Message) error { return unavailable }},
		"the user's function panics":  {100, reprise.Outage{Unavailable: func(error) bool { panic("no") }}, func(int, *reprise.Message) error { return unavailable }},
		"panics":                      {100, reprise.Outage{}, func(int, *reprise.Message) error { panic(unavailable) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send(kit.Numbered(test.messages)...)
				var mu sync.Mutex
				runs := 0
				q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					mu.Lock()
					n := runs
					runs++
					mu.Unlock()
					time.Sleep(10 * time.Millisecond)
					return test.handle(n, m)
				}), reprise.Config{
					Concurrency: 1, // in order, to be sure of what is between
					Outage:      test.outage,
					Retry:       retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: -1},
					Observer: reprise.Observer{Outage: func(_ context.Context, e reprise.OutageEvent) {
						t.Errorf("after %d runs: %+v", runs, e)
					}},
				})
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if runs < 100 && test.messages > 1 || runs < 30 {
					t.Errorf("only %d runs", runs)
				}
			})
		})
	}
}

// TestBreakerOpensAtTwentyMessages: the breaker opens when twenty messages fail with no other
// outcome between, and the next receive is not made.
func TestBreakerOpensAtTwentyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 40)
		var mu sync.Mutex
		var events []reprise.OutageEvent
		c := q.Consume(p, reprise.Config{Concurrency: 1, Prefetch: -1, Observer: reprise.Observer{
			Outage: func(_ context.Context, e reprise.OutageEvent) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, e)
			},
		}, Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}})
		time.Sleep(1400 * time.Millisecond) // before the first probe
		if n := p.Failures(); n != 20 {
			t.Errorf("%d runs, want 20", n)
		}
		s := c.Status()
		if s.Counts.Received != 20 || len(s.Breakers) != 1 || s.Breakers[0].Held != 1 || s.InBackoff != 19 {
			t.Errorf("status %+v, want 20 received, of which the last is held", s)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(events) != 1 || events[0].State != reprise.BreakerOpen || events[0].Held != 0 || !errors.Is(events[0].Err, kit.ErrUnavailable) {
			t.Errorf("events %+v, want one: open", events)
		}
	})
}

// TestOpenBreakerHoldsUnderLease: for hours no held message is released or becomes visible, and
// only canaries are received, which count neither as attempts nor as failures.
func TestOpenBreakerHoldsUnderLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, time.Second, 20)
		dead := q.NewDeadLetterQueue(3)
		c := q.Consume(p, reprise.Config{
			Outage: reprise.Outage{Threshold: 1},
			Retry:  retry.Policy{MaxAttempts: 1},
		})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		q.Send("fresh", "fresh")
		for range 11 * 60 {
			time.Sleep(time.Minute)
			for _, m := range q.Messages() {
				if m.State != sqsserver.InFlight && m.Body != "fresh" {
					t.Fatalf("message %s is not held: %+v", m.Body, m)
				}
			}
		}
		if s := c.Status(); s.Counts.Received != 22 || s.Waiting+s.Running != 22 || s.Counts.Retried+s.Counts.Released+s.Counts.Lost != 0 {
			t.Errorf("status %+v, want 20 messages held, and 2 received as canaries", s)
		}
		if n := len(p.All()); n < 11*200 || n > 11*300 {
			t.Errorf("%d runs in eleven hours, want 200 to 300 in each", n)
		}
		p.Set("", false)
		q.WaitEmpty(5 * time.Minute)
		for _, r := range p.All() {
			if r.Attempt != 1 {
				t.Fatalf("run %+v: canaries were counted as attempts", r)
			}
		}
		if n := len(dead.Messages()); n != 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// TestDrainReleasesHeldMessages: a stop while the breaker is open gives back held messages at once,
// and ends clean.
func TestDrainReleasesHeldMessages(t *testing.T) {
	for _, key := range []func(*reprise.Message) string{nil, kit.Tenant} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			p := &kit.Dependency{Takes: 10 * time.Millisecond}
			p.Set("", true)
			for i := range 60 {
				q.Send("acme:" + strconv.Itoa(i))
			}
			c := q.Consume(p, reprise.Config{Outage: reprise.Outage{Key: key}, Concurrency: 4, Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}})
			kit.WaitFor(t, "something is held", time.Minute, func() bool { s := c.Status(); return len(s.Breakers) > 0 && s.Breakers[0].Held > 0 })
			held := c.Status().Breakers[0].Held
			report := c.Stop()
			if !report.Drained() || report.Took > 21*time.Second {
				t.Errorf("report %v", report)
			}
			if n := report.Counts.Released; n < int64(held) {
				t.Errorf("%d released, want the %d held", n, held)
			}
		})
	}
}

// TestHandlerAskedToWaitDuringAnOutage: the wait that a handler asks for by RetryAfter is kept,
// although the message is held.
func TestHandlerAskedToWaitDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(60)...)
		var mu sync.Mutex
		notBefore := make(map[string]time.Time)
		up := time.Now().Add(time.Hour)
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if early := time.Until(notBefore[m.Body]); early > 0 {
				t.Errorf("message %s ran %v early", m.Body, early)
			}
			if time.Now().Before(up) {
				notBefore[m.Body] = time.Now().Add(90 * time.Second)
				return reprise.RetryAfter(90*time.Second, reprise.Unavailable(kit.ErrUnavailable))
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{MaxAttempts: -1}})
		q.WaitEmpty(2 * time.Hour)
	})
}

// TestBreakerOfFIFOQueueKeepsOrder: a FIFO queue keeps its order through an outage, in which heads
// are held and run again as canaries.
func TestBreakerOfFIFOQueueKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		var names strings.Builder
		for i := range 26 {
			names.WriteByte(byte('a' + i))
		}
		kit.Groups(q, names.String(), 5)
		p := &kit.Dependency{Takes: 100 * time.Millisecond}
		p.Set("", true)
		var mu sync.Mutex
		done := make(map[string][]string)
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			err := p.Handle(ctx, m)
			if err == nil {
				mu.Lock()
				done[m.GroupID] = append(done[m.GroupID], m.Body)
				mu.Unlock()
			}
			return err
		}), reprise.Config{Retry: retry.Policy{MaxAttempts: -1, Backoff: retry.Constant(time.Second)}})
		kit.WaitFor(t, "the breaker opens", 5*time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(2 * time.Hour)
		p.Set("", false)
		q.WaitEmpty(30 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for group, bodies := range done {
			for i := 1; i < len(bodies); i++ {
				if bodies[i] < bodies[i-1] {
					t.Errorf("group %s: %v", group, bodies)
				}
			}
		}
	})
}
