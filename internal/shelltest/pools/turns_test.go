package pools

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestNoPrefetchHasTurns: a consumer without a Prefetch gets turns beside one that keeps all places
// busy, of its own priority or a lower one.
func TestNoPrefetchHasTurns(t *testing.T) {
	for _, priority := range []int{0, 1} {
		t.Run(fmt.Sprint("priority ", priority), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, s := kit.PoolOf(t, 4), kit.NewStarts()
				busy, none := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
				busy.Send(kit.Numbered(1000)...)
				none.Send(kit.Numbered(1000)...)
				busy.In(pool, reprise.Share{}).Consume(s.Handler("busy", time.Second), reprise.Config{StopBudget: time.Second})
				time.Sleep(10 * time.Second)
				none.In(pool, reprise.Share{Priority: priority}).Consume(s.Handler("none", time.Second), reprise.Config{Prefetch: -1, StopBudget: time.Second})
				time.Sleep(5500 * time.Millisecond)
				from := time.Now()
				time.Sleep(100 * time.Second)
				// All handlers end at once here, and it has one message then.
				if n, b := s.Of("none", from, time.Now()), s.Of("busy", from, time.Now()); n < 100 || n+b != 400 {
					t.Errorf("%d and %d were started, want a quarter of 400 at least", n, b)
				}
			})
		})
	}
}

// TestPausedSuspectKeepsNobody: a message that must run alone, but cannot because its consumer is
// paused, does not block the rest of the pool. It runs after the pause.
func TestPausedSuspectKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 4), kit.NewStarts()
		q, other := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		other.Send(kit.Numbered(3600)...)
		c := q.In(pool, reprise.Share{}).Consume(s.Handler("paused", time.Second), reprise.Config{})
		time.Sleep(time.Second)
		c.Pause()
		h := kit.Plausible(q)
		h.Attempt, h.Alone = 0, 1
		kit.Forged(q, "alone", h.Text(t)) // the receive under way brings it
		time.Sleep(time.Second)
		other.In(pool, reprise.Share{}).Consume(s.Handler("other", time.Second), reprise.Config{StopBudget: time.Second})
		time.Sleep(10 * time.Second)
		for range 3 {
			c.Resume() // it waits for those that run, and is paused before they have ended
			time.Sleep(100 * time.Millisecond)
			c.Pause()
			time.Sleep(2 * time.Second)
		}
		from := time.Now()
		time.Sleep(10 * time.Minute)
		if n := s.Of("other", from, time.Now()); n < 4*600-4 {
			t.Errorf("%d of the others were started in ten minutes, want all places used", n)
		}
		if n := c.Status(); n.Waiting != 1 || n.Counts.Attempts != 0 {
			t.Errorf("status %+v, want one message waiting", n)
		}
		c.Resume()
		q.WaitEmpty(10 * time.Minute)
	})
}

// resizing is a slog.Handler that calls resize when a consumer is made.
type resizing struct {
	slog.Handler
	resize func()
}

func (r resizing) WithAttrs(attrs []slog.Attr) slog.Handler {
	r.resize()
	return r.Handler.WithAttrs(attrs)
}

// TestPoolResizedMeanwhile: a consumer that is made while the pool is resized uses all of the pool
// too.
func TestPoolResizedMeanwhile(t *testing.T) {
	q, pool := reprisetest.NewQueue(t, nil), kit.PoolOf(t, 1)
	resize := func() {
		if err := pool.SetConcurrency(8); err != nil {
			t.Error(err)
		}
	}
	c, err := pool.Add(q.Direct(), q.URL(), reprise.HandlerFunc(kit.Succeed), reprise.Share{}, reprise.Config{Logger: slog.New(resizing{slog.DiscardHandler, resize})})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Status().Concurrency; n != 8 {
		t.Errorf("concurrency %d, want the pool's 8", n)
	}
}

// TestPoolRaised: added places are used at once, for waiting messages and for new ones, although no
// handler ends for an hour.
func TestPoolRaised(t *testing.T) {
	for name, prefetch := range map[string]int{"what waits here": 10, "what is yet to be received": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const places = 8
				q, pool, s := reprisetest.NewQueue(t, nil), kit.PoolOf(t, 1), kit.NewStarts()
				q.In(pool, reprise.Share{}).Consume(s.Handler("q", time.Hour), reprise.Config{Prefetch: prefetch})
				q.Send(kit.Numbered(places)...)
				time.Sleep(time.Minute)
				if n := s.Peak(""); n != 1 {
					t.Errorf("%d handlers ran at once, want 1", n)
				}
				if err := pool.SetConcurrency(places); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				if n := s.Peak(""); n != places {
					t.Errorf("%d handlers run, two seconds after the pool was raised; want %d", n, places)
				}
				q.WaitEmpty(2 * time.Hour)
			})
		})
	}
}

// TestStoppedWhileItRunsAlone: a handler that runs alone is still running when its consumer has
// stopped. The others of the pool go on.
func TestStoppedWhileItRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		pool, s := kit.PoolOf(t, 4), kit.NewStarts()
		stubborn := bad.In(pool, reprise.Share{}).Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(3 * time.Hour)
			return nil
		}), reprise.Config{StopBudget: 10 * time.Second})
		h := kit.Plausible(bad)
		h.Attempt, h.Alone = 0, 1
		kit.Forged(bad, "alone", h.Text(t))
		time.Sleep(time.Second)
		good.In(pool, reprise.Share{}).Consume(s.Handler("good", time.Second), reprise.Config{})
		good.Send(kit.Numbered(30)...)
		time.Sleep(20 * time.Second)
		if n := s.Of("", time.Time{}, time.Now()); n != 0 {
			t.Errorf("%d handlers were started beside the one that is to run alone", n)
		}
		if report := stubborn.Stop(); len(report.Abandoned) != 1 {
			t.Errorf("report %+v, want the handler abandoned", report)
		}
		time.Sleep(15 * time.Second) // before the minute has passed in which it runs alone
		if n := s.Of("good", time.Time{}, time.Now()); n != 30 {
			t.Errorf("%d of 30 handlers were started within 15 s of the stop", n)
		}
		good.WaitEmpty(time.Minute)
		time.Sleep(3 * time.Hour) // until it ends
	})
}
