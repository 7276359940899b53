package operate_test

import (
	"math"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestPace: the time for so many messages never overflows, and more messages or a lower rate never take less.
func TestPace(t *testing.T) {
	const most = 100 * 365 * 24 * time.Hour
	for _, test := range []struct {
		n    int
		rate float64
		want time.Duration
	}{
		{0, 5, 0}, {0, math.SmallestNonzeroFloat64, 0}, {1, 2, 500 * time.Millisecond}, {3, 0.5, 6 * time.Second}, {10, 1e6, 10 * time.Microsecond},
		{1, 1.0 / (1 << 30), (1 << 30) * time.Second}, {1, 1e-10, most}, {10, 1e-200, most}, {1, math.SmallestNonzeroFloat64, most}, {math.MaxInt, 1, most},
	} {
		if got := operate.Pace(test.n, test.rate); got != test.want {
			t.Errorf("%d at %g a second: %v, want %v", test.n, test.rate, got, test.want)
		}
	}
	for n, before := 1, time.Duration(0); n < 1_000_000; n *= 3 {
		got := operate.Pace(n, 1e-5)
		if got < before || operate.Pace(n, 1e-6) < got {
			t.Errorf("%d messages take %v, fewer %v, and at a tenth of the rate %v", n, got, before, operate.Pace(n, 1e-6))
		}
		before = got
	}
}
