package consumer

import (
	"testing"
	"time"
)

// TestWokenAgain: a message that was woken, failed again and is hidden again can be woken again.
func TestWokenAgain(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	for n := range 3 {
		at(c, time.Duration(n)*time.Minute)
		handle := "handle"
		d := &Delivery{ID: "a", Handle: &handle, Receives: n + 1}
		received(c, d)
		c.Ended(c.Arrive(), retryIn(c, time.Hour), "", time.Second, c.now)
		var entries [MaxBatch]Entry
		c.Acknowledge(&c.hides, c.Prepare(&c.hides, []*Delivery{d}, &entries), new([MaxBatch]Failure))
		if woken := c.Wake(); woken != 1 {
			t.Fatalf("after attempt %d %d messages are woken, want it", n+1, woken)
		}
		wakes := effects(c, Wake)
		if len(wakes) != 1 {
			t.Fatalf("after attempt %d there are %d requests to wake it", n+1, len(wakes))
		}
		c.Woken(wakes[0].Waking, new([MaxBatch]Failure))
		at(c, time.Duration(n)*time.Minute+30*time.Second).Ring() // the pause after the request is over
	}
}
