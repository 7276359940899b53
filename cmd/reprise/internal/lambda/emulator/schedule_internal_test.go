package emulator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAfterFailure(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, test := range []struct {
		name     string
		plan     schedule
		failures int
		age      time.Duration
		wait     time.Duration
		why      condition
	}{
		{"first", schedule{2, 6 * time.Hour, 1}, 1, 0, time.Minute, ""},
		{"second", schedule{2, 6 * time.Hour, 1}, 2, time.Minute, 2 * time.Minute, ""},
		{"third", schedule{2, 6 * time.Hour, 1}, 3, 3 * time.Minute, 0, retriesExhausted},
		{"only one retry", schedule{1, 6 * time.Hour, 1}, 2, time.Minute, 0, retriesExhausted},
		{"no retries", schedule{0, 6 * time.Hour, 1}, 1, 0, 0, retriesExhausted},
		{"exhausted rather than old", schedule{0, time.Minute, 1}, 1, day, 0, retriesExhausted},
		{"the retry would be too old", schedule{2, time.Minute, 1}, 1, 0, 0, eventAgeExceeded},
		{"the retry would just not be too old", schedule{2, time.Minute + 1, 1}, 1, 0, time.Minute, ""},
		{"too old after a long run", schedule{2, 6 * time.Hour, 1}, 2, 6*time.Hour - time.Minute, 0, eventAgeExceeded},
		{"scaled", schedule{2, 6 * time.Hour, 60}, 2, time.Second, 2 * time.Second, ""},
		{"scaled age", schedule{2, 6 * time.Hour, 60}, 1, 6 * time.Minute, 0, eventAgeExceeded},
	} {
		if wait, why := test.plan.afterFailure(test.failures, test.age); wait != test.wait || why != test.why {
			t.Errorf("%s: %v %q, want %v %q", test.name, wait, why, test.wait, test.why)
		}
	}
}

// TestAfterThrottle: from one second to five minutes, and up to the event's age.
func TestAfterThrottle(t *testing.T) {
	t.Parallel()
	plan := schedule{retries: 0, maxAge: time.Hour, scale: 1}
	var waits []time.Duration
	age := time.Duration(0)
	for throttles := 1; ; throttles++ {
		wait, why := plan.afterThrottle(throttles, age)
		if why != "" {
			if why != eventAgeExceeded {
				t.Errorf("given up as %s", why)
			}
			break
		}
		waits = append(waits, wait/time.Second)
		age += wait
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("the waits in seconds (-want +got):\n%s", diff)
	}
	if age >= time.Hour || age < time.Hour-maxThrottleWait {
		t.Errorf("given up at the age of %v", age)
	}
}
