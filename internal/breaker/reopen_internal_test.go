package breaker

import (
	"testing"
	"time"
)

// rampingAt returns a breaker that ramps up at a level, the probe being answered.
func rampingAt(threshold int, level float64) *Breaker {
	b := New(threshold)
	b.Open(time.Unix(0, 0), 0)
	b.Probe()
	b.Answered(0, time.Unix(1, 0))
	b.ramp.level = level
	return &b
}

func TestReopens(t *testing.T) {
	now := time.Unix(2, 0)
	for name, ids := range map[string][2]string{"of two messages": {"a", "b"}, "of one message": {"a", "a"}} {
		b := rampingAt(2, 4)
		b.Ended(b.Round(), ids[0], true, 0, 20, now, 0)
		if b.State() != Ramping {
			t.Fatalf("%s: one failure opens it", name)
		}
		b.Ended(b.Round(), ids[1], true, 0, 20, now, 0)
		if b.State() != Open || !b.NextProbe().After(now) || b.ramp.tooHigh != 2 {
			t.Errorf("two failures %s: %v, %+v", name, b.State(), b.ramp)
		}
		b.Probe()
		b.Answered(0, now)
		b.Ended(b.Round(), "c", true, 0, 20, now, 0)
		if b.State() != Ramping {
			t.Errorf("%s: what failed before the probe still counts", name)
		}
	}
	b := rampingAt(2, 0.25)
	b.Open(now, 0)
	if b.ramp.tooHigh != leastLevel {
		t.Errorf("the lowest level is %v now", b.ramp.tooHigh)
	}
}

// TestProbesOfAReopening: what has opened again is probed as soon as what has just opened, however long the
// outage before lasted.
func TestProbesOfAReopening(t *testing.T) {
	began := time.Unix(1000, 0)
	b := New(2)
	b.Open(began, 0.5)
	answered := began.Add(time.Hour)
	b.Probe()
	b.Answered(0, answered)
	again := answered.Add(time.Minute)
	for wait := range 3 { // each probe finds no answer
		now := again.Add(time.Duration(wait) * firstProbe)
		b.Open(now, 0.5)
		if next := b.NextProbe().Sub(now); next != firstProbe {
			t.Errorf("%v after it has opened again, the next probe is due in %v, want %v", now.Sub(again), next, firstProbe)
		}
		b.Probe()
	}
	if !b.Since().Equal(began) {
		t.Errorf("the outage began %v, want %v", b.Since(), began)
	}
}

func TestProbeNow(t *testing.T) {
	b := New(2)
	b.Open(time.Unix(0, 0), 0)
	now := time.Unix(1, 0)
	if !b.NextProbe().After(now) {
		t.Fatal("a probe is due")
	}
	if b.ProbeNow(now); !b.NextProbe().Equal(now) { // never zero: no alarm can be set to that
		t.Errorf("the next probe is due %v, not at once", b.NextProbe())
	}
}

func TestPromising(t *testing.T) {
	b := rampingAt(2, 4)
	b.lastFailure = time.Unix(1000, 0)
	for evidence, want := range map[float64]time.Time{-0.1: {}, 0: {}, 0.1: time.Unix(1000, 0).Add(forgetAfter)} {
		b.ramp.evidence = evidence
		if got := b.Promising(); !got.Equal(want) {
			t.Errorf("with evidence of %v it promises more since %v, not %v", evidence, got, want)
		}
	}
	b.ramp.evidence = 0.1
	if b.Idle(8, time.Unix(2000, 0)); !b.Rising() || b.Level() <= 4 || !b.Promising().IsZero() {
		t.Errorf("when its failures are forgotten it does not rise: rising %v, level %d", b.Rising(), b.Level())
	}
	if b.Quiet() {
		t.Error("while it ramps up it is quiet")
	}
}

// TestFailuresAreWeighed: successes make up for as many failures, and a failure is
// forgotten when none has come behind it for a while.
func TestFailuresAreWeighed(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(2)
	b.Attempted("a", true, now)
	b.Attempted("x", false, now)
	if b.Attempted("b", true, now) != Closed || b.Attempted("c", true, now) != Open {
		t.Error("a failure counts although as many attempts have succeeded since")
	}
	for after, opens := range map[time.Duration]bool{forgetAfter: true, forgetAfter + 1: false} {
		b := New(2)
		b.Attempted("a", true, now)
		if (b.Attempted("b", true, now.Add(after)) == Open) != opens {
			t.Errorf("a failure %v behind another opens it: %t", after, !opens)
		}
	}
}
