package outages

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestOutageKeepsItsStart: probes fail for an hour, and the dependency fails once more while it
// recovers. Until the breaker has closed, all of that is one outage, which began when the breaker
// opened first; the next outage begins later.
func TestOutageKeepsItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 2*time.Second, 300)
		var mu sync.Mutex
		var start time.Time // of the outage that lasts
		openings, outages := 0, 0
		c := q.Consume(p, reprise.Config{Concurrency: 8, Retry: retry.Policy{MaxAttempts: -1, Backoff: retry.Constant(time.Second)}, Observer: reprise.Observer{
			Outage: func(_ context.Context, e reprise.OutageEvent) {
				mu.Lock()
				defer mu.Unlock()
				if e.Previous == reprise.BreakerClosed {
					outages++
					start = e.At
				}
				if e.State == reprise.BreakerOpen {
					openings++
				}
				if !e.Since.Equal(start) {
					t.Errorf("%v -> %v at %v: the outage began at %v, want %v", e.Previous, e.State, e.At, e.Since, start)
				}
			},
		}})
		counted := func() (int, int) {
			mu.Lock()
			defer mu.Unlock()
			return openings, outages
		}
		endures := func(d time.Duration) { // and Status says so
			for range int(d / time.Minute) {
				time.Sleep(time.Minute)
				for _, b := range c.Status().Breakers {
					mu.Lock()
					if b.State != reprise.BreakerClosed && !b.Since.Equal(start) {
						t.Errorf("status %+v, want an outage since %v", b, start)
					}
					mu.Unlock()
				}
			}
		}
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		endures(time.Hour)
		p.Set("", false)
		kit.WaitFor(t, "the breaker ramps up", 5*time.Minute, kit.StateIs(c, "", reprise.BreakerRamping))
		p.Set("", true)
		kit.WaitFor(t, "the breaker opens again", 5*time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		endures(10 * time.Minute)
		if openings, outages := counted(); openings < 10 || outages != 1 {
			t.Errorf("%d openings in %d outages, want many in one", openings, outages)
		}
		p.Set("", false)
		q.WaitEmpty(time.Hour)
		q.Send(kit.Numbered(100)...)
		p.Set("", true)
		kit.WaitFor(t, "the breaker opens for another outage", 10*time.Minute, func() bool { _, outages := counted(); return outages == 2 })
	})
}

// TestOneMessageByCopiesOpensNoBreaker: a message that fails again and again is one
// message, whatever ids its copies have.
func TestOneMessageByCopiesOpensNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return reprise.Unavailable(kit.ErrUnavailable) }), reprise.Config{
			Via:   reprise.ViaRequeue,
			Retry: retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: -1},
			Observer: reprise.Observer{Outage: func(_ context.Context, e reprise.OutageEvent) {
				t.Errorf("the breaker of one message: %+v", e)
			}},
		})
		q.Send("order")
		time.Sleep(5 * time.Minute)
		if n := c.Status().Counts; n.Requeued < 60 || len(j.All()) < 60 {
			t.Errorf("%d runs, counts %+v: want a copy for each of many retries", len(j.All()), n)
		}
	})
}
