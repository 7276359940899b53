// Package latency counts durations so that their quantiles are known to within an eighth, in a
// fixed amount of memory. It is plain data: callers lock it.
package latency

import (
	"math"
	"math/bits"
	"time"
)

const (
	// parts is how many classes there are between a power of two and the next.
	parts     = 8
	partsBits = 3
	// exact is the number of classes that have one value each: 0 µs to 7 µs.
	exact   = parts
	classes = exact + (64-partsBits)*parts
)

// Histogram counts durations. The zero Histogram is empty.
type Histogram struct {
	counts [classes]int64
	n      int64
	max    time.Duration
}

// Add counts a duration; one below zero counts as zero.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[classOf(uint64(d.Microseconds()))]++ //nolint:gosec // G115: not negative
	h.n++
	h.max = max(h.max, d)
}

// Count returns how many durations were counted.
func (h *Histogram) Count() int64 { return h.n }

// Max returns the longest duration; 0 if there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns a duration that the share q of the durations, from 0 to 1, does not exceed. It is
// at most an eighth longer than the shortest such duration, and a microsecond. 0 if there is none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, int64(math.Ceil(q*float64(h.n))))
	seen := int64(0)
	for class, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(upper(class), h.max)
		}
	}
	return h.max
}

// classOf returns the class of a number of microseconds: the position of the highest bit, and the
// bits behind it.
func classOf(us uint64) int {
	if us < exact {
		return int(us) //nolint:gosec // G115: below 8
	}
	shift := bits.Len64(us) - 1 - partsBits
	return exact + shift*parts + int(us>>shift)&(parts-1) //nolint:gosec // G115: below 16
}

// upper returns the end of a class.
func upper(class int) time.Duration {
	if class < exact {
		return time.Duration(class+1) * time.Microsecond
	}
	shift, part := (class-exact)/parts, (class-exact)%parts
	end := float64(parts+part+1) * math.Exp2(float64(shift)) * float64(time.Microsecond)
	if end >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(end)
}
