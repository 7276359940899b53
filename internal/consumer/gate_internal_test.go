package consumer

import (
	"strconv"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// TestHeldBytesAreOfWhatIsHeld: the messages of a key that is paused again and again are held each
// time. Those that went on meanwhile no longer take up the room.
func TestHeldBytesAreOfWhatIsHeld(t *testing.T) {
	c := at(New(Settings{Concurrency: 2, Prefetch: 10, Settings: leased, Keyed: true, Batch: Batch{Size: 10, Bytes: 1000}}), 0)
	d := &Delivery{ID: "a", Key: "key", Size: 400}
	received(c, d)
	for n := range 10 {
		if c.SetKeyPaused("key", true); d.state != stateShelved || c.gates.bytes != d.size {
			t.Fatalf("pause %d: the message is %v and %d bytes are held, want it to be held with its %d", n+1, d.state, c.gates.bytes, d.size)
		}
		if c.SetKeyPaused("key", false); d.state != stateReady || c.gates.bytes != 0 {
			t.Fatalf("after pause %d the message is %v, and %d bytes are held", n+1, d.state, c.gates.bytes)
		}
	}
}

// TestKeyWithoutMessages: a key that was paused, and that no message has, leaves nothing behind.
func TestKeyWithoutMessages(t *testing.T) {
	c := at(New(Settings{Concurrency: 2, Prefetch: 10, Settings: leased, Keyed: true}), 0)
	c.SetKeyPaused("key", true)
	if c.SetKeyPaused("key", false); len(c.gates.byKey) != 0 {
		t.Errorf("there are %d gates", len(c.gates.byKey))
	}
}

// TestManyKeysUnpauseNone: where more keys fail than can have a gate, gates that hold nothing back
// are dropped, and not those of keys that an operator has paused.
func TestManyKeysUnpauseNone(t *testing.T) {
	c := at(New(Settings{Concurrency: 2, Prefetch: 10, Settings: leased, Keyed: true, Threshold: 20}), 0)
	c.SetKeyPaused("paused", true)
	fail := func(key string) {
		if g := c.watch(key); g == nil {
			t.Fatalf("key %s gets no gate", key)
		} else {
			g.Breaker.Attempted("id", true, c.now)
		}
	}
	for n := range 2 * maxGates {
		fail(strconv.Itoa(n))
	}
	if len(c.gates.byKey) != maxGates {
		t.Errorf("there are %d gates, want %d", len(c.gates.byKey), maxGates)
	}
	if got := c.Breakers(); len(got) != 1 || got[0].Key != "paused" || !got[0].Paused || got[0].State != breaker.Closed {
		t.Errorf("of paused keys is known %+v", got)
	}
}

// TestManyPausedKeys: where all gates are of keys that an operator has paused, another key that fails
// gets none.
func TestManyPausedKeys(t *testing.T) {
	c := at(New(Settings{Concurrency: 2, Prefetch: 10, Settings: leased, Keyed: true, Threshold: 20}), 0)
	for n := range maxGates {
		c.SetKeyPaused(strconv.Itoa(n), true)
	}
	if g := c.watch("key"); g != nil || len(c.gates.byKey) != maxGates {
		t.Errorf("the key gets the gate %v, and there are %d", g, len(c.gates.byKey))
	}
}

// TestWaitAskedForInAnOutage: a message whose handler has asked for a wait is not visible before
// it is over, also if it fails in an outage and cannot be held.
func TestWaitAskedForInAnOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		asked time.Duration // 0: the handler has not asked for a wait
		stop  bool
	}{
		"held":                     {},
		"held, and asked for":      {asked: time.Hour},
		"not held":                 {stop: true},
		"not held, and asked for":  {asked: time.Hour, stop: true},
		"asked for less than ours": {asked: time.Second, stop: true},
	} {
		c := at(New(Settings{Concurrency: 2, Settings: leased, Threshold: 1}), 0)
		d := &Delivery{ID: "a"}
		received(c, d)
		c.Arrive()
		c.draining = tt.stop
		g := c.addGate("")
		v := Verdict{Outcome: OutcomeRetry, Reason: retry.ReasonPolicy, Due: c.now, Err: errFails}
		if tt.asked > 0 {
			v.Reason, v.Due = retry.ReasonRetryAfter, c.now.Add(tt.asked)
		}
		got := c.heldInOutage(g, d, v, c.now)
		if held := got.Outcome == OutcomeHold; held == tt.stop {
			t.Errorf("%s: it is held: %v", name, held)
		}
		if tt.asked > 0 && got.Due.Before(v.Due) {
			t.Errorf("%s: it comes again at %v, want %v at the earliest", name, got.Due, v.Due)
		}
	}
}

// TestGateOfAProbe: a gate without messages and failures stays while its probe is under way, so that no
// second one starts, and goes when the probe has ended.
func TestGateOfAProbe(t *testing.T) {
	c := at(New(Settings{Concurrency: 2, Settings: leased, Keyed: true, HasProbe: true}), 0)
	g := c.addGate("key")
	number := g.Probe()
	if c.dropIdleGate(g); len(c.gates.byKey) != 1 {
		t.Fatal("the gate has gone before its probe has ended")
	}
	if c.ProbeEnded(g, number, c.now, nil); len(c.gates.byKey) != 0 {
		t.Error("the gate is kept when its probe has ended")
	}
}
