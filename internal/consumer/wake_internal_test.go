package consumer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/shortkey"
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

// TestAskedOftenToWake: a message that waits to be woken is in the list once, however often an operator asks for it.
func TestAskedOftenToWake(t *testing.T) {
	d := newDriver(t)
	for _, command := range []string{"consumer concurrency=12 prefetch=10", "fail-many-in 12 1h", "pass 1s", "slow", "wake"} {
		d.carryOut(command)
	}
	for range 100 {
		d.carryOut("wake-message m12")
	}
	if got, want := d.sides[0].waker.ids, []string{"m12", "m11"}; !slices.Equal(got, want) {
		t.Errorf("%v wait to be woken, want %v", got, want)
	}
}

// TestLongKeys: operators name a key that is longer than what is kept of it as its messages do.
func TestLongKeys(t *testing.T) {
	long := strings.Repeat("k", 2*shortkey.Max)
	d := newDriver(t)
	for _, command := range []string{
		"consumer keyed concurrency=2 via=visibility",
		"receive a key=" + long, "end a fail 1h", "pass 1s",
		"pause-key " + long, "receive b key=" + long, "resume-key " + long, "end b ok",
		"wake " + long,
	} {
		d.said = append(d.said, "> "+strings.ReplaceAll(command, long, "LONG"))
		d.carryOut(command)
	}
	want := []string{
		"> consumer keyed concurrency=2 via=visibility",
		"> receive a key=LONG",
		"0s run a, attempt 1",
		"> end a fail 1h",
		"0s a ended: retry (policy) due in 1h0m0s it fails",
		"> pass 1s",
		"250ms hide a for 1h0m0s",
		"> pause-key LONG",
		"> receive b key=LONG",
		"> resume-key LONG",
		"1s run b, attempt 1",
		"> end b ok",
		"1s b ended: delete",
		"> wake LONG",
		"1s 1 will be woken",
		"1s wake a",
	}
	if !slices.Equal(d.said, want) {
		t.Errorf("it went:\n%s\nwant:\n%s", strings.Join(d.said, "\n"), strings.Join(want, "\n"))
	}
}
