// Package clocks compares times of a machine that may have slept, and whose wall clock may
// have been set.
//
// While a machine sleeps, its monotonic clock stands still, but SQS keeps counting; its
// wall clock can be set. So the larger of the two clocks' differences is taken as the time
// that has passed.
package clocks

import "time"

// Elapsed is the time from then to now by the monotonic or the wall clock, whichever shows
// more, and never less than zero: the monotonic clock stops while a machine sleeps, the wall clock can be set back.
func Elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)), 0)
}

// Passed reports whether now is at or after t by either clock.
func Passed(t, now time.Time) bool {
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}
