package consumer

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/plan"
)

// TestPollersFitThePlaces: receives of a few messages each leave room for ten more. A
// further poller is made of that only as long as all of them could ask for ten.
func TestPollersFitThePlaces(t *testing.T) {
	c := New(Settings{Concurrency: 40, Prefetch: 20, Settings: plan.Settings{Lease: time.Minute}})
	const few = 3
	for n := range 10 {
		c.pollers = nil
		for range n + 1 {
			c.reserved += few
			c.ask(c.addPoller(false), few)
		}
		batch := make([]*Delivery, few)
		for i := range batch {
			batch[i] = &Delivery{ID: string(rune('a' + i))}
		}
		c.Took(c.pollers[0], few, batch, c.now, c.now, 0)
		most := (40 + 20) / MaxBatch
		if got, want := len(c.pollers), min(n+2, max(n+1, most)); got != want {
			t.Errorf("%d pollers after a full receive of one of %d: want %d, of which all may ask for ten", got, n+1, want)
		}
		c.reserved = 0
		clear(c.held)
		c.waiting = 0
	}
}

// TestLateReplies: a process that was stopped while a reply waited for it cannot say when
// its leases began. They count from the latest time at which SQS can have answered, and
// what is over by then is not run.
func TestLateReplies(t *testing.T) {
	const lease = 30 * time.Second
	c := New(Settings{
		Concurrency: 10, Prefetch: 10, Settings: plan.Settings{Lease: lease},
		LongPoll: 20 * time.Second, PollTimeout: 42 * time.Second,
	})
	for _, test := range []struct {
		took time.Duration // from the request until the reply is read
		late time.Duration // for how long it had waited for that, as its date shows
		runs bool
	}{
		{took: time.Second, runs: true},
		{took: 20 * time.Second, runs: true},
		{took: 42 * time.Second, runs: true}, // the SDK may have repeated the request
		{took: 60 * time.Second, runs: true}, // with some of the lease left
		{took: 72 * time.Second},
		{took: 42 * time.Second, late: 29*time.Second - 1, runs: true},
		{took: 42 * time.Second, late: 29 * time.Second}, // the slack of a lease is a second
		{took: 72 * time.Second, late: 10 * time.Second},
		{took: time.Hour},
	} {
		now := time.Now()
		asked := now.Add(-test.took)
		d := &Delivery{ID: fmt.Sprint(test.took, test.late)}
		c.Begin(now, 0)
		p := c.addPoller(false)
		c.reserved++
		c.Took(p, 1, []*Delivery{d}, asked, now, test.late)
		if ready := c.ready.first == d; ready != test.runs {
			t.Errorf("a message that was received within %v of the request: ready %v, want %v", test.took, ready, test.runs)
		}
		if d.lease.End().After(asked.Add(c.PollTimeout + lease)) {
			t.Errorf("received within %v, its lease is said to end %v after the request", test.took, d.lease.End().Sub(asked))
		}
		for d := c.ready.first; d != nil; d = c.ready.first {
			c.lose(d, errLeaseEnded)
		}
	}
	if got := c.counts.Lost; got != 9 {
		t.Errorf("%d messages were lost, of which 4 came too late and 5 were let go of: want 9", got)
	}
}
