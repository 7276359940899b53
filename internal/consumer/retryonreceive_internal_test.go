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
	for range 100_000 { // each at the cost of a look, or this takes half a minute
		if c.RetryOnReceive("refused") {
			t.Fatal("a message is remembered for which there is no room")
		}
	}
	at(c, earlyRetryFor+time.Second)
	if !c.RetryOnReceive("new") || len(c.early.until) != 2 { // beside the one that was named again
		t.Errorf("%d messages are remembered after an hour, want 2", len(c.early.until))
	}
	for n := range maxEarlyRetries - 2 {
		c.RetryOnReceive(fmt.Sprint("later ", n))
	}
	c.RetryWhenDue("later 9")
	if !c.RetryOnReceive("in its place") || c.RetryOnReceive("one too many") {
		t.Error("a message that is not waited for any more makes no room, or for more than one")
	}
	at(c, earlyRetryFor+31*time.Minute)
	if !c.RetryOnReceive("when the one that was named again is forgotten") {
		t.Error("the first that is forgotten makes no room")
	}
}
