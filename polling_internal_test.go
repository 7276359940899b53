package reprise

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestPollersFitThePlaces: receives of a few messages each leave room for ten more. A
// further poller is made of that only as long as all of them could ask for ten.
func TestPollersFitThePlaces(t *testing.T) {
	c, err := New(struct{ Client }{}, "https://sqs.eu-west-1.amazonaws.com/1/q",
		HandlerFunc(func(context.Context, *Message) error { return nil }), Config{Concurrency: 40, Prefetch: 20})
	if err != nil {
		t.Fatal(err)
	}
	core := c.lock()
	defer c.unlock()
	defer func() { core.effects = nil }() // what the core wants is not done: there is no queue
	const few = 3
	for n := range 10 {
		core.pollers = nil
		for range n + 1 {
			core.reserved += few
			core.ask(core.addPoller(false), few)
		}
		batch := make([]delivery, few)
		for i := range batch {
			batch[i].received.ID = string(rune('a' + i))
			batch[i].msg, batch[i].run = &batch[i].received, &batch[i].first
			batch[i].grant(core.now, time.Minute)
		}
		core.took(core.pollers[0], few, batch, core.now)
		most := (40 + 20) / maxBatch
		if got, want := len(core.pollers), min(n+2, max(n+1, most)); got != want {
			t.Errorf("%d pollers after a full receive of one of %d: want %d, of which all may ask for ten", got, n+1, want)
		}
		core.reserved = 0
		clear(core.held)
		core.waiting = 0
	}
}

// TestLateReplies: a process that was stopped while a reply waited for it cannot say when
// its leases began. They count from the latest time at which SQS can have answered, and
// what is over by then is not run.
func TestLateReplies(t *testing.T) {
	const lease = 30 * time.Second
	c, err := New(struct{ Client }{}, "https://sqs.eu-west-1.amazonaws.com/1/q",
		HandlerFunc(func(context.Context, *Message) error { return nil }),
		Config{Lease: lease, LongPoll: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		took time.Duration // from the request until the reply is read
		runs bool
	}{
		{took: time.Second, runs: true},
		{took: 20 * time.Second, runs: true},
		{took: 42 * time.Second, runs: true}, // the SDK may have repeated the request
		{took: 60 * time.Second, runs: true}, // with some of the lease left
		{took: 72 * time.Second},
		{took: time.Hour},
	} {
		now := time.Now()
		asked := now.Add(-test.took)
		id := test.took.String()
		batch := c.unpack([]types.Message{{MessageId: &id, Body: aws.String("x"), ReceiptHandle: &id}}, asked, now)
		core := c.lock()
		p := core.addPoller(false)
		core.reserved++
		core.took(p, 1, batch, asked)
		ready := core.ready.first == &batch[0]
		core.effects = nil // what the core wants is not done: there is no queue
		c.unlock()
		if ready != test.runs {
			t.Errorf("a message that was received within %v of the request: ready %v, want %v", test.took, ready, test.runs)
		}
		if ends := batch[0].expires; ends.After(asked.Add(20*time.Second + pollGrace + limitSlack + lease)) {
			t.Errorf("received within %v, its lease is said to end %v after the request", test.took, ends.Sub(asked))
		}
		core = c.lock()
		for d := core.ready.first; d != nil; d = core.ready.first {
			core.lose(d, errLeaseEnded)
		}
		core.effects = nil
		c.unlock()
	}
	if got := c.Status().Counts.Lost; got != 6 {
		t.Errorf("%d messages were lost, of which 2 came too late and 4 were let go of: want 6", got)
	}
}
