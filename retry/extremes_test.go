package retry_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/retry"
)

// TestExtremesOfPolicies: each number of a policy, of its backoffs and of a failure at its extremes is
// refused by Validate, or decides without a panic, and never for a time before the failure.
func TestExtremesOfPolicies(t *testing.T) {
	type settings struct {
		Policy      retry.Policy
		Failure     retry.Failure
		Exponential retry.Exponential
		Linear      retry.Linear
		Polynomial  retry.Polynomial
		Constant    retry.Constant
		Error       time.Duration
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	base := settings{Failure: retry.Failure{N: 3, Seed: "seed", Ended: now, First: now.Add(-time.Minute), Sent: now.Add(-2 * time.Minute), Err: errors.New("it fails")}}
	extremes.Of(base, func(field string, value any, s settings) bool {
		for _, jitter := range []retry.Jitter{s.Policy.Jitter, retry.Full, retry.Equal, retry.None, retry.Decorrelated, retry.Percent(10)} {
			for _, backoff := range []retry.Backoff{nil, s.Exponential, s.Linear, s.Polynomial, s.Constant, retry.List{s.Error, s.Linear.Base}} {
				p := s.Policy
				p.Backoff, p.Jitter = backoff, jitter
				if p.Validate() != nil {
					continue
				}
				for _, err := range []error{s.Failure.Err, retry.RetryAfter(s.Error, s.Failure.Err), retry.Release(s.Error, s.Failure.Err)} {
					f := s.Failure
					f.Err = err
					what := fmt.Sprintf("%s=%v, %+v, %v, %T", field, value, backoff, jitter, err)
					if d := p.Decide(f); d.At.Before(f.Ended) {
						t.Errorf("%s: the decision %+v is for a time before the failure", what, d)
					}
				}
				for _, n := range []int{1, 2, 30, math.MaxInt32, math.MaxInt} {
					least, longest := p.Bounds(n)
					if wait := p.Wait("seed", n); wait < 0 || wait < least || wait > longest {
						t.Errorf("%s=%v, %+v, %v: wait %d is %v, outside of %v to %v", field, value, backoff, jitter, n, wait, least, longest)
					}
				}
				p.Exhausted(s.Failure.N, s.Failure.First, s.Failure.Sent, now)
				if n := p.Attempts("seed", 1, 5, time.Hour); n < 1 || n > 6 {
					t.Errorf("%s=%v, %+v: %d attempts fit into 5 receives", field, value, backoff, n)
				}
			}
		}
		return true
	})
}
