package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/retry"
)

func TestBounds(t *testing.T) {
	const hour = time.Hour
	minutes := retry.Exponential{Base: time.Minute} // 1, 2, 4, 8, ... minutes, 12 h
	falling := retry.List{10 * second, second}
	type bounds struct{ Least, Longest time.Duration }
	for _, test := range []struct {
		name   string
		policy retry.Policy
		n      int
		want   bounds
	}{
		{"the zero policy, fifth", retry.Policy{}, 5, bounds{0, 16 * second}},
		{"less than 1 is taken as 1", retry.Policy{}, -3, bounds{0, second}},
		{"none", retry.Policy{Jitter: retry.None}, 5, bounds{16 * second, 16 * second}},
		{"equal", retry.Policy{Backoff: minutes, Jitter: retry.Equal}, 3, bounds{2 * time.Minute, 4 * time.Minute}},
		{"from base", retry.Policy{Backoff: minutes, Jitter: retry.FromBase}, 4, bounds{time.Minute, 8 * time.Minute}},
		{"from base of a falling list", retry.Policy{Backoff: falling, Jitter: retry.FromBase}, 2, bounds{second, 10 * second}},
		{"percent", retry.Policy{Backoff: minutes, Jitter: retry.Percent(20)}, 3, bounds{192 * second, 288 * second}},
		{"percent of no wait", retry.Policy{Backoff: retry.Constant(0), Jitter: retry.Percent(20)}, 1, bounds{0, 0}},
		{"percent beyond the longest duration", retry.Policy{Backoff: retry.Constant(math.MaxInt64), Jitter: retry.Percent(100)}, 1, bounds{0, math.MaxInt64}},
		{"decorrelated, first", retry.Policy{Backoff: minutes, Jitter: retry.Decorrelated}, 1, bounds{time.Minute, 3 * time.Minute}},
		{"decorrelated, third", retry.Policy{Backoff: minutes, Jitter: retry.Decorrelated}, 3, bounds{time.Minute, 27 * time.Minute}},
		{"decorrelated, at the cap", retry.Policy{Backoff: minutes, Jitter: retry.Decorrelated}, 9, bounds{time.Minute, 12 * hour}},
		{"decorrelated, beyond its window", retry.Policy{Backoff: retry.Exponential{Base: 1, Max: math.MaxInt64}, Jitter: retry.Decorrelated}, 1000, bounds{1, 1853020188851841}},
		{"decorrelated under a falling list", retry.Policy{Backoff: falling, Jitter: retry.Decorrelated}, 3, bounds{second, second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got bounds
			got.Least, got.Longest = test.policy.Bounds(test.n)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWaitsFillTheirBounds: no draw leaves the bounds, and ten thousand draws
// come within a hundredth of both ends.
func TestWaitsFillTheirBounds(t *testing.T) {
	backoff := retry.Exponential{Base: time.Minute, Factor: 3}
	for _, j := range jitters {
		p := retry.Policy{Backoff: backoff, Jitter: j}
		for _, n := range []int{1, 2, 3, 50} {
			least, longest := p.Bounds(n)
			low, high := longest, least
			for i := range 10_000 {
				wait := p.Wait(messageID(i), n)
				if wait < least || wait > longest {
					t.Fatalf("%v, retry %d: %v is outside [%v, %v]", j, n, wait, least, longest)
				}
				low, high = min(low, wait), max(high, wait)
			}
			margin := (longest - least) / 100
			if j == retry.Decorrelated && n > 1 {
				margin = (longest - least) / 4 // products of draws: the ends are rare
			}
			if low > least+margin || high < longest-margin {
				t.Errorf("%v, retry %d: draws fill [%v, %v] of [%v, %v]", j, n, low, high, least, longest)
			}
		}
	}
}
