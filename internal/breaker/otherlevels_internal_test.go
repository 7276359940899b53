package breaker

import (
	"fmt"
	"testing"
	"time"
)

// TestFailuresOfAnotherLevel: while the breaker ramps, attempts end that began at another level. Rejections of a level
// that was too high end before its successes do: they must neither open the breaker nor lower the level again. The same
// failures of the current level do.
func TestFailuresOfAnotherLevel(t *testing.T) {
	ramping := func() (Breaker, time.Time) {
		b, now := closedByRamp(t, 10*time.Minute)
		b.Relapse(100*time.Millisecond, 10, now)
		return b, now
	}
	const many = 200
	for _, other := range []int{-1, 1, 5} { // rounds from the current one
		b, now := ramping()
		before := b
		for i := range many {
			b.Ended(b.Round()+other, fmt.Sprint("m", i), true, time.Millisecond, 10, now, 0.5)
		}
		if b.State() != Ramping || b.ramp != before.ramp || b.failures != 0 || !b.LastFailure().Equal(before.LastFailure()) {
			t.Errorf("after %d failures of round %+d: %v, level %v of %v, %d failures counted", many, other, b.State(), b.ramp.level, before.ramp.level, b.failures)
		}
	}
	b, now := ramping()
	level, opened := b.ramp.level, false
	for i := range many {
		if b.Ended(b.Round(), fmt.Sprint("m", i), true, time.Millisecond, 10, now.Add(time.Duration(i)*time.Second), 0.5); b.State() == Open {
			opened = true
			break
		}
	}
	if !opened && b.ramp.level >= level {
		t.Errorf("after %d failures of the current round: %v, level %v, as before", many, b.State(), b.ramp.level)
	}
}
