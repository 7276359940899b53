package consumer

import (
	"fmt"
	"testing"
	"time"
)

// TestEarlyRetriesAreBounded: no more than so many messages are remembered for an early retry. Those that
// are remembered already can be named again, and the forgotten ones make room.
func TestEarlyRetriesAreBounded(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	for n := range maxEarlyRetries {
		if !c.RetryOnReceive(fmt.Sprint("old ", n)) {
			t.Fatalf("message %d is refused", n)
		}
	}
	at(c, 30*time.Minute)
	if c.RetryOnReceive("one too many") {
		t.Error("more messages are remembered than there is room for")
	}
	if !c.RetryOnReceive("old 7") || len(c.early.until) != maxEarlyRetries {
		t.Errorf("of %d messages one is not remembered for longer", len(c.early.until))
	}
	at(c, 30*time.Minute+30*time.Minute)
	if c.RetryOnReceive("at the end of the hour") {
		t.Error("messages are forgotten before their hour is over")
	}
	at(c, earlyRetryFor+time.Second)
	if !c.RetryOnReceive("new") || len(c.early.until) != 2 { // beside the one that was named again
		t.Errorf("%d messages are remembered after an hour, want 2", len(c.early.until))
	}
}
