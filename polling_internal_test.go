package reprise

import (
	"context"
	"testing"
	"time"
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
	defer c.mu.Unlock() // what the core wants is not done: there is no queue
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
