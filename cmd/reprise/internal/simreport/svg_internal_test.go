package simreport

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimeStep: an axis of any length has at least two steps and at most mostSteps, each a time that people divide by.
func TestTimeStep(t *testing.T) {
	for end, want := range map[time.Duration]time.Duration{
		1: 1, 3 * time.Millisecond: 500 * time.Microsecond, 2 * time.Second: 500 * time.Millisecond, 6 * time.Second: time.Second,
		time.Minute: 10 * time.Second, 97*time.Minute + 24*time.Second: 30 * time.Minute, 6*time.Hour + time.Second: 2 * time.Hour,
		24 * time.Hour: 6 * time.Hour, 4 * 24 * time.Hour: 24 * time.Hour, 14 * 24 * time.Hour: 4 * 24 * time.Hour, 365 * 24 * time.Hour: 100 * 24 * time.Hour,
	} {
		if got := timeStep(end); got != want {
			t.Errorf("timeStep(%v) = %v, want %v", end, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		end := time.Duration(10 + r.Int64N(1<<(5+r.IntN(55))))
		if step := timeStep(end); step <= 0 || end/step < 2 || end > mostSteps*step+mostSteps {
			t.Fatalf("an axis of %v has steps of %v", end, step)
		}
	}
}
