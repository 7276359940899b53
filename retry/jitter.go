package retry

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// Jitter spreads waits, so that messages that failed together do not return
// together. Below, d is the backoff's wait before the retry, and ranges include
// both ends; every value in them is equally likely, to the nanosecond.
//
// Jitter is a function of the message's seed and the number of the retry, and
// any language can recompute it. With r(n) the n-th output of SplitMix64 whose
// state is XXH64(seed), a value of [lo, hi], in nanoseconds, is
//
//	lo + floor(r(n) × (hi - lo + 1) / 2^64)
//
// Decorrelated with base b = Delay(1) and ceiling c = Delay(2^31 - 1), the wait at
// which the backoff stops growing, follows
//
//	s = min(c, a value of [b, 3 × s] drawn with r(k)), beginning with s = b
//
// for k = max(1, n-31) ... n. The first 32 waits of a message are thus the chain
// that the AWS Architecture Blog describes, which needs no state here because it
// is recomputed; a later wait is the end of the chain over its last 32 retries.
// Decorrelated does not otherwise follow the backoff's shape.
//
// The retry that MaxAge cuts short is a value of the range that
// [Policy.LastRetry] returns, drawn with r(0).
//
// The names are those of "Exponential Backoff And Jitter", AWS Architecture Blog.
type Jitter uint32

const (
	// Full waits between 0 and d. It spreads load best, but some retries come soon.
	Full Jitter = iota
	// None waits d.
	None
	// Equal waits between d/2 and d.
	Equal
	// FromBase waits between the first wait, Delay(1), and d.
	FromBase
	// Decorrelated waits between the first wait and three times the wait before.
	Decorrelated

	// percent is the first of the Percent jitters, which count in hundredths of
	// a percent from here.
	percent Jitter = 1 << 16
)

// maxPercent is 100 % in hundredths of a percent.
const maxPercent = 100_00

// invalidJitter is what Percent returns for a number that Validate must refuse.
const invalidJitter Jitter = math.MaxUint32

// Percent waits between d - p% and d + p%, for p from 0 to 100, to a hundredth
// of a percent. It alone may pass the backoff's maximum. [Policy.Validate]
// refuses any other p.
func Percent(p float64) Jitter {
	if p >= 0 && p <= 100 {
		return percent + Jitter(math.Round(p*100))
	}
	return invalidJitter
}

// hundredths returns p of Percent in hundredths of a percent.
func (j Jitter) hundredths() (uint64, bool) {
	return uint64(j - percent), j >= percent && j <= percent+maxPercent
}

var jitterNames = [...]string{
	Full:         "full",
	None:         "none",
	Equal:        "equal",
	FromBase:     "from-base",
	Decorrelated: "decorrelated",
}

// String returns the jitter as policy text spells it: "full", "12.5%".
func (j Jitter) String() string {
	if j < Jitter(len(jitterNames)) {
		return jitterNames[j]
	}
	if p, ok := j.hundredths(); ok {
		return strconv.FormatFloat(float64(p)/100, 'f', -1, 64) + "%"
	}
	return fmt.Sprintf("Jitter(%d)", uint32(j))
}

// wait returns the wait before retry n of the message to which s belongs. A
// Jitter that Validate refuses waits as Full does.
func (j Jitter) wait(b Backoff, s stream, n int) time.Duration {
	if j == Decorrelated {
		return decorrelated(b, s, n)
	}
	lo, hi := j.bounds(b, n)
	return uniform(lo, hi, s.draw(n))
}

// bounds returns the least and the longest wait before retry n.
func (j Jitter) bounds(b Backoff, n int) (lo, hi time.Duration) {
	if j == Decorrelated {
		return decorrelatedBounds(b, n)
	}
	d := delay(b, n)
	switch j {
	case None:
		return d, d
	case Equal:
		return d / 2, d
	case FromBase:
		base := delay(b, 1)
		return min(base, d), max(base, d)
	}
	if p, ok := j.hundredths(); ok {
		spread := share(d, p)
		return d - spread, addSaturating(d, spread)
	}
	return 0, d
}

// chainWindow bounds the work for Decorrelated. It exceeds DefaultMaxAttempts, so
// that messages under the default limit see the unbroken chain.
const chainWindow = 32

func decorrelated(b Backoff, s stream, n int) time.Duration {
	base, limit := delay(b, 1), ceiling(b)
	wait := base
	for i := range min(n, chainWindow) {
		high := addSaturating(wait, addSaturating(wait, wait))
		wait = min(limit, uniform(base, max(base, high), s.draw(max(0, n-chainWindow)+1+i)))
	}
	return wait
}

// decorrelatedBounds follows the chain along its highest values. Its least value is the base at
// every step, because any step may draw it.
func decorrelatedBounds(b Backoff, n int) (lo, hi time.Duration) {
	base, limit := delay(b, 1), ceiling(b)
	hi = base
	for range min(n, chainWindow) {
		hi = min(limit, max(base, addSaturating(hi, addSaturating(hi, hi))))
	}
	return min(limit, base), hi
}

// uniform maps the random number r onto [lo, hi], 0 <= lo <= hi.
func uniform(lo, hi time.Duration, r uint64) time.Duration {
	offset, _ := bits.Mul64(r, uint64(hi-lo)+1)
	return lo + time.Duration(offset)
}

// share returns p hundredths of a percent of d; p is at most maxPercent.
func share(d time.Duration, p uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), p)
	quotient, _ := bits.Div64(hi, lo, maxPercent)
	return time.Duration(quotient)
}

// addSaturating adds durations that are not negative, up to the largest duration.
func addSaturating(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}
