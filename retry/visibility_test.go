package retry_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/reprise-sqs/reprise/retry"
)

func TestVisibility(t *testing.T) {
	requested := first
	tests := []struct {
		name    string
		held    time.Duration // from the request of the receive to now
		wait    time.Duration // from now to due
		seconds int32
		short   bool
	}{
		{"whole seconds", 0, 30 * second, 30, false},
		{"rounded up, never early", 0, 30*second + 1, 31, false},
		{"less than a second", 0, 1, 1, false},
		{"due now", 0, 0, 1, false},
		{"overdue", 0, -time.Hour, 1, false},
		{"all that fits", 0, 43195 * second, 43195, false},
		{"a nanosecond more", 0, 43195*second + 1, 43195, true},
		{"the articles' cap of 12 h, which SQS refuses", 0, 12 * time.Hour, 43195, true},
		{"counted from the request, not from now", 40 * time.Minute, 12 * time.Hour, 43195 - 2400, true},
		{"a fraction of a second held", 1, 12 * time.Hour, 43194, true},
		{"the end of the budget", 43190 * second, 5 * second, 5, false},
		{"past the budget's end", 43190 * second, 6 * second, 5, true},
		{"inside the margin, due", 43197 * second, 0, 1, false},
		{"inside the margin, not due", 43197 * second, 2 * second, 1, true},
		{"the last moment for a second", 43199*second - 1, second, 1, false},
		{"used up", 43199 * second, 0, 0, true},
		{"long used up", 100 * time.Hour, time.Hour, 0, true},
		{"clock set back", -time.Hour, 12 * time.Hour, 43195, true},
		{"due in 200 years", 0, 200 * 365 * 24 * time.Hour, 43195, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := requested.Add(test.held)
			seconds, short := retry.Visibility(requested, now, now.Add(test.wait))
			if seconds != test.seconds || short != test.short {
				t.Errorf("Visibility = %d, %v; want %d, %v", seconds, short, test.seconds, test.short)
			}
		})
	}
	for _, held := range []time.Duration{0, 5 * time.Hour, 13 * time.Hour} {
		if seconds, short := retry.Visibility(requested, requested.Add(held), time.Time{}); seconds != 0 || short {
			t.Errorf("at once, held %v: %d, %v; want 0, false", held, seconds, short)
		}
	}
}

// TestVisibilityCountsSleepOfTheMachine: a machine that slept stopped its
// monotonic clock, and SQS did not. The other way round, a wall clock that was
// set back hides no time either.
func TestVisibilityCountsSleepOfTheMachine(t *testing.T) {
	requested := time.Now()
	tests := []struct {
		name            string
		monotonic, wall time.Duration // since requested
	}{
		{"slept", time.Hour, 12 * time.Hour},
		{"wall clock set back", 12 * time.Hour, time.Hour},
		{"wall clock set far back", 12 * time.Hour, -time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := shiftMonotonic(t, requested.Add(test.wall), test.monotonic-test.wall)
			if seconds, short := retry.Visibility(requested, now, now.Add(2*time.Hour)); seconds != 0 || !short {
				t.Errorf("Visibility = %d, %v; want 0, true", seconds, short)
			}
		})
	}
}

// shiftMonotonic moves the monotonic reading of a time, its second word, alone:
// package time itself offers no way to let the two clocks disagree.
func shiftMonotonic(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	(*[2]int64)(unsafe.Pointer(&moved))[1] += int64(by)
	if moved.Sub(at) != by || !moved.Round(0).Equal(at.Round(0)) {
		t.Fatal("time.Time is laid out differently in this version of Go: adapt shiftMonotonic")
	}
	return moved
}

func FuzzVisibility(f *testing.F) {
	f.Add(int64(0), int64(30*second))
	f.Add(int64(43198*second), int64(1))
	f.Add(int64(-1), int64(-1))
	f.Add(int64(1<<62), int64(-1<<62))
	f.Fuzz(func(t *testing.T, held, wait int64) {
		now := first.Add(time.Duration(held))
		due := now.Add(time.Duration(wait))
		seconds, short := retry.Visibility(first, now, due)
		hidden := now.Add(time.Duration(seconds) * second)
		switch {
		case seconds < 0:
			t.Errorf("negative: %d", seconds)
		case seconds == 0 && (!short || now.Sub(first) < 43199*second):
			t.Errorf("0 seconds, short %v, %v after the request", short, now.Sub(first))
		case seconds > 0 && max(now.Sub(first), 0)+time.Duration(seconds)*second >= 43200*second:
			t.Errorf("%d s, %v after the request, reach the limit", seconds, now.Sub(first))
		}
		if !short && hidden.Before(due) {
			t.Errorf("%d s after %v is before %v", seconds, now, due)
		}
		if short && seconds > 0 && !hidden.Before(due) {
			t.Errorf("%d s after %v reaches %v, and is called short", seconds, now, due)
		}
	})
}

func TestAllowedShortfall(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0:                time.Minute,
		time.Hour:        time.Minute,
		12 * time.Hour:   432 * second,
		1000 * time.Hour: 10 * time.Hour,
	} {
		if got := retry.AllowedShortfall(wait); got != want {
			t.Errorf("AllowedShortfall(%v) = %v, want %v", wait, got, want)
		}
	}
}
