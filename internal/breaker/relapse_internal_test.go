package breaker

import (
	"fmt"
	"testing"
	"time"
)

// closedByRamp returns a breaker that a ramp has closed, after an outage of the given length, and
// when it closed.
func closedByRamp(t *testing.T, outage time.Duration) (Breaker, time.Time) {
	t.Helper()
	b, now := New(20), time.Unix(0, 0)
	b.Succeeded(1000)
	b.Open(now, 0)
	b.Probe()
	now = now.Add(outage)
	b.Answered(100*time.Millisecond, now)
	b.ramp.level = 10
	if b.Idle(10, now); b.State() != Closed || b.Quiet() {
		t.Fatalf("%v, quiet %v, %+v", b.State(), b.Quiet(), b)
	}
	return b, now
}

// attempts tells b of attempts, of which the given number in ten fail, until it changes its state.
func attempts(b *Breaker, n, failing int, now time.Time) (told int, then State) {
	for i := range n {
		if then = b.Attempted(fmt.Sprint("m", i), i*failing/10 != (i+1)*failing/10, now); then != Closed {
			return i + 1, then
		}
	}
	return n, Closed
}

// TestRelapse: a breaker that a ramp has closed ramps up again if fewer attempts succeed than usual,
// from a lower level, and only for as long as the outage has lasted, within bounds.
func TestRelapse(t *testing.T) {
	for outage, trial := range map[time.Duration]time.Duration{time.Second: shortTrial, 10 * time.Minute: 10 * time.Minute, 6 * time.Hour: longTrial} {
		b, now := closedByRamp(t, outage)
		if n, then := attempts(&b, 100, 5, now.Add(trial-1)); then != Ramping || n > 20 {
			t.Fatalf("an outage of %v: after %d attempts of which half failed it becomes %v", outage, n, then)
		}
		if b.Relapse(10*time.Millisecond, 10, now); b.State() != Ramping || !b.Overloaded() || b.Rising() || b.ramp.level < 5 || b.ramp.level > 9 || !b.Since().Equal(now) {
			t.Errorf("after a relapse: %v since %v, rising %v, %+v", b.State(), b.Since(), b.Rising(), b.ramp)
		}
		b, now = closedByRamp(t, outage)
		if n, then := attempts(&b, 1000, 5, now.Add(trial)); then != Closed {
			t.Errorf("an outage of %v: %v after its end, %d attempts of which half fail turn it to %v", outage, trial, n, then)
		}
	}
}

// TestHarmfulMessagesAreNoOverload: a few messages that fail again and again, all of them at once now
// and then, leave a breaker on trial closed while the others succeed.
func TestHarmfulMessagesAreNoOverload(t *testing.T) {
	for _, harmful := range []int{1, 5, 7} {
		b, now := closedByRamp(t, time.Hour)
		for i := range 1000 {
			failed := i%100 < harmful
			if then := b.Attempted(fmt.Sprint("m", i%100), failed, now.Add(time.Duration(i)*time.Second)); then != Closed {
				t.Errorf("%d harmful messages of 100: after %d attempts it becomes %v", harmful, i+1, then)
				break
			}
		}
	}
}

// TestEnoughMessagesAreOverload: eight different messages that fail are an overload, seven are not,
// however often; and what succeeded long before does not outweigh them.
func TestEnoughMessagesAreOverload(t *testing.T) {
	for _, failing := range []int{7, 8} {
		b, now := closedByRamp(t, time.Hour)
		for i := range 1000 {
			b.Attempted(fmt.Sprint("fine", i), false, now)
		}
		for i := range 100 {
			then := b.Attempted(fmt.Sprint("m", i%failing), true, now)
			if i == 7 && failing == 8 {
				if then != Ramping {
					t.Errorf("%d messages have failed: %v, %+v", failing, then, b.ramp)
				}
				b.ramp.rising = true
				b.Relapse(10*time.Millisecond, 40, now)
				if b.Rising() || b.failures != 0 || len(b.suspects) != 0 || b.ramp.level < 20 || b.ramp.level > 36 {
					t.Errorf("after the relapse at 40 handlers: %d failures, level %v", b.failures, b.ramp.level)
				}
				break
			}
			if then != Closed {
				t.Errorf("%d of %d messages have failed, %d times: %v", min(i+1, failing), failing, i+1, then)
				break
			}
		}
	}
}

// TestTrialIsNoLimit: whatever share of attempts fails as a rule, and a little more, is borne, and
// learnt.
func TestTrialIsNoLimit(t *testing.T) {
	for usual := range 10 {
		b, now := closedByRamp(t, time.Hour)
		b.usual = share{value: 1 - float64(usual)/10, weight: mostWeight}
		if n, then := attempts(&b, 10_000, usual, now.Add(time.Second)); then != Closed {
			t.Errorf("%d of 10 fail as usual: after %d it becomes %v", usual, n, then)
		}
	}
	b, now := closedByRamp(t, time.Hour)
	if attempts(&b, 10_000, 1, now.Add(time.Second)); b.usual.value > 0.95 || b.usual.value < 0.85 {
		t.Errorf("one in ten fails, and usual is %v", b.usual.value)
	}
}

// TestTrialEndsQuietly: after it a breaker is like a new one.
func TestTrialEndsQuietly(t *testing.T) {
	b, now := closedByRamp(t, time.Minute)
	if b.Attempted("m", false, now.Add(time.Minute-1)); b.Quiet() {
		t.Error("it is quiet while on trial")
	}
	if b.Attempted("m", false, now.Add(time.Minute)); !b.Quiet() {
		t.Error("it is not quiet after the trial")
	}
}

// TestRelapseEnds when the level has been full for a minute, and then the breaker is on trial for as
// long as it would have been without.
func TestRelapseEnds(t *testing.T) {
	b, closed := closedByRamp(t, 20*time.Minute)
	b.Relapse(10*time.Millisecond, 10, closed)
	at := closed.Add(10 * time.Second)
	for _, step := range []struct {
		level float64
		after time.Duration
		want  State
	}{
		{20, 0, Ramping}, {10, shortTrial - 1, Ramping}, {5, 0, Ramping}, // not full: it begins anew
		{10, 0, Ramping}, {10, shortTrial - 1, Ramping}, {10, 1, Closed},
	} {
		at = at.Add(step.after)
		b.ramp.level = step.level
		b.closeAt(10, at)
		if b.State() != step.want || b.State() == Ramping && b.ramp.level > 10 {
			t.Fatalf("level %v at %v: %v at %v", step.level, at.Sub(closed), b.State(), b.ramp.level)
		}
	}
	if want := closed.Add(20 * time.Minute); !b.trialEnd.Equal(want) || b.Overloaded() {
		t.Errorf("on trial until %v, want %v", b.trialEnd, want)
	}
}

// TestOutageEndsRelapse: another outage ends a relapse, and the ramp after it is like any other.
func TestOutageEndsRelapse(t *testing.T) {
	b, now := closedByRamp(t, 20*time.Minute)
	b.Relapse(10*time.Millisecond, 10, now)
	if b.Open(now, 0); b.Overloaded() {
		t.Error("it is overloaded while open")
	}
	b, now = closedByRamp(t, 20*time.Minute)
	b.Open(now, 0)
	b.Probe()
	b.Answered(0, now.Add(time.Second))
	b.ramp.level = 10
	if b.Idle(10, now.Add(time.Second)); !b.trialEnd.Equal(now.Add(time.Second + shortTrial)) {
		t.Errorf("after an outage of a second it is on trial until %v", b.trialEnd)
	}
}

// TestRejectedAtOnceRests: after an attempt that was rejected at once the pause is as long as after
// one that succeeds.
func TestRejectedAtOnceRests(t *testing.T) {
	b := rampingAt(20, 0.5)
	b.ramp.usually = 0
	for range 100 {
		b.ramp.ended(&b.usual, false, 200*time.Millisecond, time.Unix(1, 0))
	}
	b.ramp.ended(&b.usual, true, time.Millisecond, time.Unix(1, 0))
	b.ramp.level = 0.5
	if got := b.Rest(time.Millisecond); got < 190*time.Millisecond || got > 200*time.Millisecond {
		t.Errorf("after an attempt of 1 ms it rests for %v, others take 200 ms", got)
	}
	if got := b.Rest(400 * time.Millisecond); got != 400*time.Millisecond {
		t.Errorf("after an attempt of 400 ms it rests for %v", got)
	}
}
