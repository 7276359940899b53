package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/retry"
)

const second = time.Second

func TestBackoffSchedules(t *testing.T) {
	tests := []struct {
		name    string
		backoff retry.Backoff
		want    []time.Duration // before retries 1, 2, ...
	}{
		{
			// "at 1, 2, 4, ... 16384, and 32768 seconds", Bite-Sized Serverless.
			name:    "base 1 s doubling, published for 24 hours, then capped at 12 h",
			backoff: retry.Exponential{},
			want: []time.Duration{
				1 * second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second, 128 * second,
				256 * second, 512 * second, 1024 * second, 2048 * second, 4096 * second, 8192 * second,
				16384 * second, 32768 * second, 43200 * second, 43200 * second,
			},
		},
		{
			// "if we would cap the backoff at 900", the same article.
			name:    "capped at the longest DelaySeconds",
			backoff: retry.Exponential{Max: 900 * second},
			want: []time.Duration{
				1 * second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second, 128 * second,
				256 * second, 512 * second, 900 * second, 900 * second,
			},
		},
		{
			name:    "factor 3, published as 3, 9, 27 s",
			backoff: retry.Exponential{Base: 3 * second, Factor: 3},
			want:    []time.Duration{3 * second, 9 * second, 27 * second, 81 * second},
		},
		{
			name:    "base 1 min, published as 16 min at the 5th",
			backoff: retry.Exponential{Base: time.Minute},
			want:    []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute},
		},
		{
			name:    "fractional factor, to the nearest nanosecond",
			backoff: retry.Exponential{Factor: 1.1},
			want:    []time.Duration{1_000_000_000, 1_100_000_000, 1_210_000_000, 1_331_000_000},
		},
		{
			name:    "a maximum beyond 12 h",
			backoff: retry.Exponential{Base: 10 * time.Hour, Factor: 3, Max: 72 * time.Hour},
			want:    []time.Duration{10 * time.Hour, 30 * time.Hour, 72 * time.Hour, 72 * time.Hour},
		},
		{
			name:    "constant",
			backoff: retry.Constant(30 * second),
			want:    []time.Duration{30 * second, 30 * second, 30 * second},
		},
		{
			name:    "linear, zero",
			backoff: retry.Linear{},
			want:    []time.Duration{1 * second, 2 * second, 3 * second},
		},
		{
			name:    "linear",
			backoff: retry.Linear{Base: 10 * second, Step: 25 * second, Max: time.Minute},
			want:    []time.Duration{10 * second, 35 * second, 60 * second, 60 * second},
		},
		{
			name:    "linear, with less than a step to the maximum",
			backoff: retry.Linear{Base: 1 * second, Step: 2 * second, Max: 4 * second},
			want:    []time.Duration{1 * second, 3 * second, 4 * second, 4 * second},
		},
		{
			name:    "doubling, to the nanosecond",
			backoff: retry.Exponential{Base: 1, Max: 5},
			want:    []time.Duration{1, 2, 4, 5, 5},
		},
		{
			name:    "up to the longest duration",
			backoff: retry.Polynomial{Base: 1, Exponent: 63, Max: math.MaxInt64},
			want:    []time.Duration{1, math.MaxInt64, math.MaxInt64},
		},
		{
			name:    "polynomial, zero",
			backoff: retry.Polynomial{},
			want:    []time.Duration{1 * second, 4 * second, 9 * second, 16 * second},
		},
		{
			name:    "polynomial, fractional exponent",
			backoff: retry.Polynomial{Base: 2 * second, Exponent: 1.5, Max: 20 * second},
			want:    []time.Duration{2 * second, 5_656_854_249, 10_392_304_845, 16 * second, 20 * second},
		},
		{
			name:    "list, the last repeats",
			backoff: retry.List{5 * second, 0, time.Hour},
			want:    []time.Duration{5 * second, 0, time.Hour, time.Hour, time.Hour},
		},
		{
			name:    "function, negative as 0",
			backoff: retry.Func(func(n int) time.Duration { return time.Duration(n-2) * second }),
			want:    []time.Duration{0, 0, 1 * second, 2 * second},
		},
		{name: "empty list", backoff: retry.List{}, want: []time.Duration{0, 0}},
		{name: "nil function", backoff: retry.Func(nil), want: []time.Duration{0, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := make([]time.Duration, len(test.want))
			for i := range got {
				got[i] = test.backoff.Delay(i + 1)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("waits before retries 1, 2, ... (-want +got):\n%s", diff)
			}
			for _, n := range []int{0, -1, math.MinInt} {
				if got := test.backoff.Delay(n); got != test.want[0] {
					t.Errorf("Delay(%d) = %v, want Delay(1) = %v", n, got, test.want[0])
				}
			}
			last := test.want[len(test.want)-1]
			if got := test.backoff.Delay(1 << 31); got < last {
				t.Errorf("Delay(1<<31) = %v, less than %v before", got, last)
			}
		})
	}
}

// TestDoublingAgreesWithMultiplying holds the shift for factor 2 to the general
// computation.
func TestDoublingAgreesWithMultiplying(t *testing.T) {
	for n := 1; n < 100; n++ {
		base, limit := 1234567*time.Nanosecond, 1000*time.Hour
		doubled := retry.Exponential{Base: base, Max: limit}.Delay(n)
		squared := retry.Exponential{Base: base, Factor: 4, Max: limit}.Delay((n + 1) / 2)
		if n%2 == 1 && doubled != squared {
			t.Errorf("retry %d: factor 2 gives %v, factor 4 gives %v", n, doubled, squared)
		}
	}
}

func FuzzBackoffNeverNegativeOrBeyondMax(f *testing.F) {
	f.Add(int64(second), int64(43200*second), 2.0, int64(1), 1)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 1e300, int64(math.MaxInt64), 1<<31)
	f.Add(int64(math.MinInt64), int64(-1), math.NaN(), int64(math.MinInt64), math.MaxInt)
	f.Add(int64(1), int64(math.MaxInt64), math.Inf(1), int64(-1), 64)
	f.Add(int64(3), int64(math.MaxInt64), -2.0, int64(7), 63)
	f.Add(int64(1), int64(math.MaxInt64), 1.0000001, int64(1), 1<<31)
	f.Fuzz(func(t *testing.T, base, limit int64, factor float64, step int64, n int) {
		backoffs := []retry.Backoff{
			retry.Exponential{Base: time.Duration(base), Max: time.Duration(limit)},
			retry.Exponential{Base: time.Duration(base), Factor: factor, Max: time.Duration(limit)},
			retry.Linear{Base: time.Duration(base), Step: time.Duration(step), Max: time.Duration(limit)},
			retry.Polynomial{Base: time.Duration(base), Exponent: factor, Max: time.Duration(limit)},
			retry.Constant(base),
			retry.List{time.Duration(base), time.Duration(limit)},
		}
		for i, b := range backoffs {
			p := retry.Policy{Backoff: b}
			d := b.Delay(n)
			if d < 0 {
				t.Errorf("%#v: Delay(%d) = %d", b, n, d)
			}
			if p.Validate() != nil {
				continue
			}
			if grows := i < 4; grows {
				if limit > 0 && d > time.Duration(limit) {
					t.Errorf("%#v: Delay(%d) = %d, beyond Max", b, n, d)
				}
				if n < math.MaxInt && b.Delay(n+1) < d {
					t.Errorf("%#v: Delay(%d) = %d, less than the %d before it", b, n+1, b.Delay(n+1), d)
				}
			}
			for _, j := range jitters {
				if w := (retry.Policy{Backoff: b, Jitter: j}).Wait("seed", n); w < 0 {
					t.Errorf("%#v with jitter %v: wait before retry %d is %d", b, j, n, w)
				}
			}
		}
	})
}
