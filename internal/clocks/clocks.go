// Package clocks compares times of a machine that may have slept, and whose wall clock may
// have been set.
//
// While a machine sleeps, its monotonic clock stands still, and SQS goes on counting; its
// wall clock can jump. So what has passed is the larger of what the two say.
package clocks

import "time"

// Elapsed is the time from then to now: the larger of what the monotonic and the wall clock
// say, never less than zero.
func Elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)), 0)
}

// Passed reports whether now is at or after t by either clock.
func Passed(t, now time.Time) bool {
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}
