package clocks

import (
	"testing"
	"time"
	"unsafe"
)

// TestTimeAsleepCounts: a machine that slept stopped its monotonic clock, and the
// leases of its messages ran out. A wall clock that was set back hides no time.
func TestTimeAsleepCounts(t *testing.T) {
	then := time.Now()
	for _, tt := range []struct {
		name            string
		monotonic, wall time.Duration // since then
		elapsed         time.Duration
	}{
		{"awake", time.Minute, time.Minute, time.Minute},
		{"slept", time.Second, time.Hour, time.Hour},
		{"wall clock set back", time.Hour, -time.Minute, time.Hour},
		{"before", -time.Minute, -time.Minute, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Package time offers no way to let its two clocks disagree: the second
			// word of a time is its monotonic reading.
			wall := then.Add(tt.wall)
			now := wall
			(*[2]int64)(unsafe.Pointer(&now))[1] += int64(tt.monotonic - tt.wall)
			if now.Sub(wall) != tt.monotonic-tt.wall || !now.Round(0).Equal(wall.Round(0)) {
				t.Fatal("time.Time is laid out differently in this version of Go: adapt this test")
			}
			if got := Elapsed(then, now); got != tt.elapsed {
				t.Errorf("%v elapsed, want %v", got, tt.elapsed)
			}
			lease := then.Add(30 * time.Second)
			if got := Passed(lease, now); got != (tt.elapsed >= 30*time.Second) {
				t.Errorf("a lease of 30 s has passed: %v", got)
			}
		})
	}
}
