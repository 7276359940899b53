package reprise_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestNoPrefetchHasTurns: a consumer that holds nothing in advance is not starved by one
// that keeps all places busy, of its own priority or a lower one.
func TestNoPrefetchHasTurns(t *testing.T) {
	for _, priority := range []int{0, 1} {
		t.Run(fmt.Sprint("priority ", priority), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, s := poolOf(t, 4), newStarts()
				busy, none := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
				busy.Send(numbered(1000)...)
				none.Send(numbered(1000)...)
				busy.In(pool, reprise.Share{}).Consume(s.handler("busy", time.Second), reprise.Config{StopBudget: time.Second})
				time.Sleep(10 * time.Second)
				none.In(pool, reprise.Share{Priority: priority}).Consume(s.handler("none", time.Second), reprise.Config{Prefetch: -1, StopBudget: time.Second})
				time.Sleep(5500 * time.Millisecond)
				from := time.Now()
				time.Sleep(100 * time.Second)
				// All handlers end at once here, and it has one message then.
				if n, b := s.of("none", from, time.Now()), s.of("busy", from, time.Now()); n < 100 || n+b != 400 {
					t.Errorf("%d and %d were started, want a quarter of 400 at least", n, b)
				}
			})
		})
	}
}

// TestPausedSuspectKeepsNobody: a message that is to run alone, and cannot since its
// consumer is paused, does not keep the rest of the pool from running. Resumed, it runs.
func TestPausedSuspectKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := poolOf(t, 4), newStarts()
		q, other := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		other.Send(numbered(3600)...)
		c := q.In(pool, reprise.Share{}).Consume(s.handler("paused", time.Second), reprise.Config{})
		time.Sleep(time.Second)
		c.Pause()
		h := plausible(q)
		h.Attempt, h.Alone = 0, 1
		forged(q, "alone", h.text(t)) // the receive under way brings it
		time.Sleep(time.Second)
		other.In(pool, reprise.Share{}).Consume(s.handler("other", time.Second), reprise.Config{StopBudget: time.Second})
		time.Sleep(10 * time.Second)
		for range 3 {
			c.Resume() // it waits for those that run, and is paused before they have ended
			time.Sleep(100 * time.Millisecond)
			c.Pause()
			time.Sleep(2 * time.Second)
		}
		from := time.Now()
		time.Sleep(10 * time.Minute)
		if n := s.of("other", from, time.Now()); n < 4*600-4 {
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

// TestPoolResizedMeanwhile: a consumer that is just being made uses all of the pool too.
func TestPoolResizedMeanwhile(t *testing.T) {
	q, pool := reprisetest.NewQueue(t, nil), poolOf(t, 1)
	resize := func() {
		if err := pool.SetConcurrency(8); err != nil {
			t.Error(err)
		}
	}
	c, err := pool.Add(q.Direct(), q.URL(), reprise.HandlerFunc(succeed), reprise.Share{}, reprise.Config{Logger: slog.New(resizing{slog.DiscardHandler, resize})})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Status().Concurrency; n != 8 {
		t.Errorf("concurrency %d, want the pool's 8", n)
	}
}
