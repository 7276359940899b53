package reprise_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestPausedSuspectKeepsNobody: a message that is to run alone, and cannot since its
// consumer is paused, does not keep the rest of the pool from running. Resumed, it runs.
func TestPausedSuspectKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := poolOf(t, 4), newStarts()
		q, other := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		other.Send(numbered(3600)...)
		c := q.Consume(s.handler("paused", time.Second), reprise.Config{Pool: pool})
		time.Sleep(time.Second)
		c.Pause()
		h := plausible(q)
		h.Attempt, h.Alone = 0, 1
		forged(q, "alone", h.text(t)) // the receive under way brings it
		time.Sleep(time.Second)
		other.Consume(s.handler("other", time.Second), reprise.Config{Pool: pool, StopBudget: time.Second})
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
