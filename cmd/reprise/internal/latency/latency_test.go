package latency_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/latency"
)

// TestQuantile: against sorted durations of all magnitudes, a quantile is no shorter than the true
// one and at most an eighth, and a microsecond, longer.
func TestQuantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var h latency.Histogram
		all := make([]time.Duration, 1+random.IntN(200))
		for i := range all {
			all[i] = time.Duration(random.Uint64N(1 << (1 + random.UintN(63)))).Truncate(time.Microsecond)
			h.Add(all[i])
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			want := all[max(1, int(math.Ceil(q*float64(len(all)))))-1]
			got := h.Quantile(q)
			if got < want || float64(got) > float64(want)*1.125+float64(time.Microsecond) {
				t.Fatalf("quantile %v of %d durations is %v, want %v to an eighth more", q, len(all), got, want)
			}
		}
		if h.Count() != int64(len(all)) || h.Max() != all[len(all)-1] {
			t.Fatalf("%d counted, at most %v; want %d and %v", h.Count(), h.Max(), len(all), all[len(all)-1])
		}
	}
}

// TestExtremes: nothing counted, below zero, and the longest duration.
func TestExtremes(t *testing.T) {
	var h latency.Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Count() != 0 {
		t.Error("an empty histogram has durations")
	}
	h.Add(-time.Second)
	if got := h.Quantile(1); got != 0 {
		t.Errorf("a duration below zero counts as %v", got)
	}
	h.Add(math.MaxInt64)
	if got := h.Quantile(1); got != math.MaxInt64 {
		t.Errorf("the longest duration counts as %v", got)
	}
}
