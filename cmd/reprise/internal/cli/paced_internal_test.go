package cli

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
)

// TestPaced: messages come at the rate, the first at once, and at the smallest rates the second in no time that a
// command can run.
func TestPaced(t *testing.T) {
	for rate, want := range map[float64]int{0: 5, 2: 5, 1.0 / 60: 5, 1.0 / 3600: 3, 1e-8: 1, 1e-10: 1, math.SmallestNonzeroFloat64: 1} {
		synctest.Test(t, func(t *testing.T) {
			const lasts = 2*time.Hour + time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			defer cancel()
			began, came := time.Now(), 0
			five := func(yield func(message, error) bool) {
				for range 5 {
					if !yield(message{Outgoing: reprise.Outgoing{Body: "x"}}, nil) {
						return
					}
				}
			}
			for range paced(ctx, five, rate) {
				if ctx.Err() != nil {
					break
				}
				if due := began.Add(time.Duration(float64(came) / max(rate, 1e-6) * float64(time.Second))); rate > 0 && time.Now().Before(due.Truncate(time.Microsecond)) {
					t.Errorf("at %g a second message %d came after %v", rate, came+1, time.Since(began))
				}
				came++
			}
			if came != want {
				t.Errorf("at %g a second %d messages came in %v, want %d", rate, came, lasts, want)
			}
		})
	}
}
