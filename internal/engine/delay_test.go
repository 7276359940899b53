package engine_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// TestEndDelay: an operator ends a delay, whoever began it; a message that is visible, in flight or gone is left alone.
func TestEndDelay(t *testing.T) {
	l := newLab(t, engine.Settings{Delay: time.Minute})
	l.send("", "sender's", "gone")
	l.e.Send(l.now, l.q, engine.Message{ID: id("leased")})
	l.wantReceive(1, "leased")
	l.e.Send(l.now, l.q, engine.Message{ID: id("visible")})
	l.e.Send(l.now, l.q, engine.Message{ID: id("operator's")})
	find := func(name string) engine.Receipt {
		t.Helper()
		r, found := l.e.Find(l.q, id(name))
		if !found {
			t.Fatalf("%s is gone", name)
		}
		return r
	}
	gone := find("gone")
	l.e.Remove(l.now, l.q, gone)
	if r := find("operator's"); !l.e.Hide(l.now, l.q, r, time.Minute) || l.e.Hide(l.now, l.q, r, time.Minute) {
		t.Error("a visible message is not hidden, or one that is hidden is")
	}
	l.wantCounts(1, 1, 2)
	for name, later := range map[string]bool{"sender's": false, "visible": false, "leased": false, "operator's": true} {
		if d, _ := l.e.Shown(l.now, l.q, find(name)); d.DelayedLater() != later {
			t.Errorf("%s: delayed later is %v", name, !later)
		}
	}
	for _, r := range []engine.Receipt{gone, find("visible"), find("leased")} {
		if l.e.EndDelay(l.now, l.q, r) {
			t.Error("a delay that does not exist was ended")
		}
	}
	l.wantCounts(1, 1, 2)
	for _, name := range []string{"sender's", "operator's"} {
		if !l.e.EndDelay(l.now, l.q, find(name)) {
			t.Errorf("the %s delay is not ended", name)
		}
	}
	l.wantCounts(3, 1, 0)
	l.wantReceive(3, "visible sender's operator's")
}

// TestHideWhenADelayEnds: a message is visible at the very end of its delay, and can be hidden again.
func TestHideWhenADelayEnds(t *testing.T) {
	l := newLab(t, engine.Settings{Delay: time.Minute})
	l.send("", "a")
	l.wait(time.Minute)
	r, _ := l.e.Find(l.q, id("a"))
	if !l.e.Hide(l.now, l.q, r, time.Minute) {
		t.Error("it is not hidden")
	}
	l.wantCounts(0, 0, 1)
}
