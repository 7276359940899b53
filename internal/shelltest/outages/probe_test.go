package outages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestProbeTestsRecovery: the probe uses up no message. While it fails no handler runs, and when it
// succeeds they do. A panic of it is a failure.
func TestProbeTestsRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 100)
		var mu sync.Mutex
		var probes []time.Time
		c := q.Consume(p, reprise.Config{Outage: reprise.Outage{Probe: func(ctx context.Context, key string) error {
			mu.Lock()
			probes = append(probes, time.Now())
			n := len(probes)
			mu.Unlock()
			if key != "" {
				t.Errorf("probe of key %q", key)
			}
			switch {
			case n == 1:
				panic("probe")
			case n == 2:
				<-ctx.Done() // it hangs
				return ctx.Err()
			case n < 20:
				return kit.ErrUnavailable
			}
			p.Set("", false)
			return nil
		}}})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Second) // handlers that were running end
		failed := p.Failures()
		q.WaitEmpty(time.Hour)
		if n := p.Failures() - failed; n != 0 {
			t.Errorf("%d handlers failed while only the probe should have run", n)
		}
		report := c.Stop()
		if !report.Drained() {
			t.Errorf("report %v", report)
		}
		mu.Lock()
		defer mu.Unlock()
		for i := 3; i < len(probes); i++ {
			gap := probes[i].Sub(probes[i-1])
			if low, high := probeWait(probes[i-1].Sub(probes[0])); gap < low || gap > high {
				t.Errorf("%v between probes %d and %d, want %v to %v", gap, i, i+1, low, high)
			}
		}
	})
}

// probeWait returns the bounds of the wait for the next probe, at the given time after the first
// one, which is itself within 4.5 s of the opening.
func probeWait(since time.Duration) (low, high time.Duration) {
	mean := func(open time.Duration) time.Duration {
		return min(16*time.Second, max(3*time.Second, open/15))
	}
	return mean(since) / 2, mean(since+4500*time.Millisecond) * 3 / 2
}

// TestProbeByHand: an operator who knows that the dependency is back need not wait for the next
// probe; a key without an open breaker has nothing to probe.
func TestProbeByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 100)
		var mu sync.Mutex
		probes := 0
		c := q.Consume(p, reprise.Config{Outage: reprise.Outage{Probe: func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			probes++
			return kit.ErrUnavailable
		}}})
		if n := c.Probe(); n != 0 {
			t.Errorf("Probe() = %d before the outage, want 0", n)
		}
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(10 * time.Minute) // probes have become rare
		mu.Lock()
		before := probes
		mu.Unlock()
		if n := c.Probe("acme"); n != 0 {
			t.Errorf("Probe(acme) = %d, want 0: only the whole consumer has a breaker", n)
		}
		next := c.Status().Breakers[0].NextProbe
		if n := c.Probe(); n != 1 {
			t.Errorf("Probe() = %d, want 1", n)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if probes != before+1 || !time.Now().Before(next) {
			t.Errorf("%d probes after Probe(), want %d; the next would have been at %v", probes, before+1, next)
		}
		p.Set("", false)
	})
}

// TestPoisonIsNotTheOnlyCanary: the messages that opened the breaker always time out, and the
// others would not. The breaker closes nevertheless.
func TestPoisonIsNotTheOnlyCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var bodies []string
		for i := range 20 {
			bodies = append(bodies, fmt.Sprint("poison ", i))
		}
		q.Send(bodies...)
		var j kit.Journal
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			time.Sleep(10 * time.Millisecond)
			return kit.FailBut(!strings.HasPrefix(m.Body, "poison"), reprise.Unavailable(kit.ErrUnavailable))
		}), reprise.Config{Retry: retry.Policy{MaxAttempts: -1}})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(30 * time.Second)
		q.Send(kit.Numbered(50)...)
		kit.WaitFor(t, "the good messages are handled", 30*time.Minute, func() bool {
			good := 0
			for _, r := range j.All() {
				if !strings.HasPrefix(r.Body, "poison") {
					good++
				}
			}
			return good == 50
		})
	})
}

// TestBadMessagesDoNotKeepTheBreakerOpen: when an outage ends, a bad deploy has made all messages bad. They are
// given up soon, though none of them shows that the dependency is back, and the first good one closes the breaker.
func TestBadMessagesDoNotKeepTheBreakerOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		q.Send(kit.Numbered(200)...)
		down := time.Now().Add(5 * time.Minute)
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			time.Sleep(10 * time.Millisecond)
			switch {
			case time.Now().Before(down):
				return reprise.Unavailable(kit.ErrUnavailable)
			case m.Body != "good":
				return reprise.Permanent(errors.New("no such currency"))
			}
			return nil
		}), reprise.Config{})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Until(down))
		kit.WaitFor(t, "all are given up", 2*time.Minute, func() bool { return len(dead.Messages()) == 200 })
		q.Send("good")
		kit.WaitFor(t, "the breaker closes", time.Minute, kit.StateIs(c, "", reprise.BreakerClosed))
		q.WaitEmpty(time.Minute)
	})
}

// TestHungCanaryDoesNotHangTheProbe: a canary whose handler does not return is
// followed by another.
func TestHungCanaryDoesNotHangTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 30)
		var mu sync.Mutex
		hang := false
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			mu.Lock()
			hangs := hang
			hang = false
			mu.Unlock()
			if hangs {
				p.Set("", false)
				<-ctx.Done()
			}
			return p.Handle(ctx, m)
		}), reprise.Config{StopBudget: 5 * time.Second})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Second)
		mu.Lock()
		hang = true
		mu.Unlock()
		kit.WaitFor(t, "all but the one that hangs are handled", 10*time.Minute, func() bool { return len(q.Messages()) == 1 })
	})
}

// TestHungProbeIsReplacedByCanaries: a probe that ignores its context is replaced by messages, and
// is not called again before it returns.
func TestHungProbeIsReplacedByCanaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 30)
		var probes atomic.Int32
		forever := make(chan struct{})
		c := q.Consume(p, reprise.Config{Outage: reprise.Outage{Probe: func(context.Context, string) error {
			probes.Add(1)
			<-forever
			return kit.ErrUnavailable
		}}})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(30 * time.Minute)
		if n := probes.Load(); n != 1 {
			t.Errorf("%d probes were called while the first had not returned, want 1", n)
		}
		p.Set("", false)
		q.WaitEmpty(10 * time.Minute)
		close(forever)
		if report := c.Stop(); !report.Drained() {
			t.Errorf("report %v", report)
		}
	})
}

// TestHungProbeIsNotCalledInTheNextOutage: a probe that hangs is not called in the next outage
// either: it would hang again, and each outage would leave a goroutine behind.
func TestHungProbeIsNotCalledInTheNextOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := &kit.Dependency{Takes: 10 * time.Millisecond}
		var probes atomic.Int32
		var down atomic.Bool
		back := make(chan struct{})
		c := q.Consume(p, reprise.Config{Outage: reprise.Outage{Probe: func(context.Context, string) error {
			probes.Add(1)
			<-back
			return kit.FailBut(!down.Load(), kit.ErrUnavailable)
		}}})
		outage := func(length time.Duration) {
			t.Helper()
			down.Store(true)
			p.Set("", true)
			q.Send(kit.Numbered(30)...)
			kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
			time.Sleep(length)
			p.Set("", false)
			down.Store(false)
			q.WaitEmpty(10 * time.Minute)
			kit.WaitFor(t, "the outage is over", time.Minute, kit.StateIs(c, "", reprise.BreakerClosed))
		}
		for range 3 {
			outage(10 * time.Minute)
		}
		if n := probes.Load(); n != 1 {
			t.Errorf("%d probes were called while the first had not returned, want 1", n)
		}
		close(back)
		outage(10 * time.Minute)
		if n := probes.Load(); n < 2 {
			t.Errorf("%d probes were called, want more when the first had returned", n)
		}
	})
}

// TestLateProbeChangesNothing: a probe returns after messages have replaced it and the outage is
// over. It does not count as the end of another probe.
func TestLateProbeChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 30)
		var mu sync.Mutex
		var states []reprise.BreakerState
		back := make(chan struct{})
		c := q.Consume(p, reprise.Config{
			Outage: reprise.Outage{Probe: func(context.Context, string) error {
				<-back
				return nil
			}},
			Observer: reprise.Observer{Outage: func(_ context.Context, e reprise.OutageEvent) {
				mu.Lock()
				defer mu.Unlock()
				states = append(states, e.State)
			}},
		})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		p.Set("", false)
		kit.WaitFor(t, "the outage is over", 10*time.Minute, kit.StateIs(c, "", reprise.BreakerClosed))
		time.Sleep(time.Minute)
		close(back)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := []reprise.BreakerState{reprise.BreakerOpen, reprise.BreakerHalfOpen, reprise.BreakerRamping, reprise.BreakerClosed}
		if !slices.Equal(states, want) {
			t.Errorf("the breaker has become %v, want %v", states, want)
		}
	})
}

// TestLateProbeDecidesNoLaterOutage: a probe of the previous outage returns with a success when a
// canary of the next outage is under way.
func TestLateProbeDecidesNoLaterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 30)
		var slow atomic.Bool
		back := make(chan struct{})
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
			return p.Handle(ctx, m)
		}), reprise.Config{StopBudget: 2 * time.Minute, Outage: reprise.Outage{Probe: func(context.Context, string) error {
			<-back
			return nil
		}}})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		p.Set("", false)
		kit.WaitFor(t, "the outage is over", 10*time.Minute, kit.StateIs(c, "", reprise.BreakerClosed))
		p.Set("", true)
		q.Send(kit.Numbered(30)...)
		kit.WaitFor(t, "the breaker opens again", time.Hour, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Second) // handlers that were running end
		slow.Store(true)
		halfOpen := kit.StateIs(c, "", reprise.BreakerHalfOpen)
		kit.WaitFor(t, "a canary", 10*time.Minute, halfOpen)
		close(back)
		time.Sleep(time.Second)
		if !halfOpen() {
			t.Error("the old probe has decided the new outage")
		}
	})
}

// TestHungCanariesLeavePlaces: the dependency no longer answers at all, so that no canary returns.
// Canaries take at most half of the places.
func TestHungCanariesLeavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(30)...)
		var hangs atomic.Bool
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(10 * time.Millisecond)
			return reprise.Unavailable(kit.ErrUnavailable)
		}), reprise.Config{Concurrency: 10, StopBudget: 5 * time.Second})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Second) // handlers that were running end
		hangs.Store(true)
		time.Sleep(2 * time.Hour)
		if s := c.Status(); s.Running != 5 {
			t.Errorf("%d of 10 places are taken by canaries, want half of them", s.Running)
		}
	})
}
