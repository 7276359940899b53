package retry

import (
	"math"
	"time"
)

// Backoff gives the wait before retry n = 1, 2, ..., without jitter. It is pure,
// safe for concurrent use and never negative. Numbers up to 1<<31 occur; numbers below 1 count as
// 1.
type Backoff interface{ Delay(n int) time.Duration }

// The defaults of the growing backoffs. DefaultMax is approximately the longest wait that one
// change of visibility can serve; longer waits are served in hops.
const (
	DefaultBase     = time.Second
	DefaultFactor   = 2
	DefaultExponent = 2
	DefaultMax      = MaxVisibility
)

// Exponential waits Base × Factor^(n-1), at most Max: 1 s, 2 s, 4 s, ... 32768 s
// and then 12 h for the zero value.
type Exponential struct {
	Base   time.Duration // Default: 1s
	Factor float64       // At least 1. Default: 2
	Max    time.Duration // May exceed 12h. Default: 12h
}

// Delay returns the wait before retry n.
func (e Exponential) Delay(n int) time.Duration {
	e = e.withDefaults()
	if e.Factor == 2 {
		return double(e.Base, n, e.Max)
	}
	return scale(e.Base, power(e.Factor, max(n, 1)-1), e.Max)
}

func (e Exponential) withDefaults() Exponential {
	if e.Base == 0 {
		e.Base = DefaultBase
	}
	if e.Factor == 0 {
		e.Factor = DefaultFactor
	}
	if e.Max == 0 {
		e.Max = DefaultMax
	}
	return e
}

// Constant waits the same before every retry. Zero means no wait, which SQS
// serves as one second.
type Constant time.Duration

// Delay returns the wait before any retry.
func (c Constant) Delay(int) time.Duration { return max(time.Duration(c), 0) }

// Linear waits Base + Step × (n-1), at most Max.
type Linear struct {
	Base time.Duration // Default: 1s
	Step time.Duration // Default: Base
	Max  time.Duration // May exceed 12h. Default: 12h
}

// Delay returns the wait before retry n.
func (l Linear) Delay(n int) time.Duration {
	l = l.withDefaults()
	steps := int64(max(n, 1) - 1)
	if l.Base >= l.Max || l.Step > 0 && steps > int64((l.Max-l.Base)/l.Step) {
		return max(l.Max, 0)
	}
	return max(l.Base+time.Duration(int64(max(l.Step, 0))*steps), 0)
}

func (l Linear) withDefaults() Linear {
	if l.Base == 0 {
		l.Base = DefaultBase
	}
	if l.Step == 0 {
		l.Step = l.Base
	}
	if l.Max == 0 {
		l.Max = DefaultMax
	}
	return l
}

// Polynomial waits Base × n^Exponent, at most Max: 1 s, 4 s, 9 s, ... for the
// zero value.
type Polynomial struct {
	Base     time.Duration // Default: 1s
	Exponent float64       // Not negative. Default: 2
	Max      time.Duration // May exceed 12h. Default: 12h
}

// Delay returns the wait before retry n.
func (p Polynomial) Delay(n int) time.Duration {
	p = p.withDefaults()
	n = max(n, 1)
	if whole := int(p.Exponent); float64(whole) == p.Exponent && whole >= 0 {
		return scale(p.Base, power(float64(n), whole), p.Max)
	}
	return scale(p.Base, math.Pow(float64(n), p.Exponent), p.Max)
}

func (p Polynomial) withDefaults() Polynomial {
	if p.Base == 0 {
		p.Base = DefaultBase
	}
	if p.Exponent == 0 {
		p.Exponent = DefaultExponent
	}
	if p.Max == 0 {
		p.Max = DefaultMax
	}
	return p
}

// List waits its entries in order; the last one is repeated. An empty List, which
// [Policy.Validate] refuses, waits 0.
type List []time.Duration

// Delay returns the wait before retry n.
func (l List) Delay(n int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return max(l[min(max(n, 1), len(l))-1], 0)
}

// Func computes the wait. It must be pure and cheap; a negative result is taken
// as 0. A nil Func, which [Policy.Validate] refuses, waits 0.
type Func func(n int) time.Duration

// Delay returns the wait before retry n.
func (f Func) Delay(n int) time.Duration {
	if f == nil {
		return 0
	}
	return max(f(max(n, 1)), 0)
}

// delay is b.Delay(n), with nil as the default and a negative result as 0.
func delay(b Backoff, n int) time.Duration {
	if b == nil {
		return double(DefaultBase, n, DefaultMax) // Exponential{}, quicker
	}
	return max(b.Delay(n), 0)
}

// ceilingRetry is the number of a retry by which a backoff has stopped growing.
const ceilingRetry = math.MaxInt32

// ceiling is the wait at which b has stopped growing.
func ceiling(b Backoff) time.Duration { return delay(b, ceilingRetry) }

func backoffWithDefaults(b Backoff) Backoff {
	switch b := b.(type) {
	case nil:
		return Exponential{}.withDefaults()
	case Exponential:
		return b.withDefaults()
	case Linear:
		return b.withDefaults()
	case Polynomial:
		return b.withDefaults()
	}
	return b
}

// double returns base × 2^(n-1), within 0 and limit.
func double(base time.Duration, n int, limit time.Duration) time.Duration {
	if shift := uint(max(n, 1) - 1); shift < 63 && base <= limit>>shift {
		return max(base<<shift, 0)
	}
	return max(limit, 0)
}

// power returns x to the n-th. It only multiplies, so that every processor computes the same bits
// and so the same schedule; with math.Pow they may differ.
func power(x float64, n int) float64 {
	result := 1.0
	for ; n > 0 && result < math.MaxInt64; n >>= 1 {
		if n&1 == 1 {
			result *= x
		}
		x *= x
	}
	return result
}

// scale returns base × factor to the nearest nanosecond, within 0 and limit. If the factor is
// infinite or NaN the result is limit.
func scale(base time.Duration, factor float64, limit time.Duration) time.Duration {
	// The conversion forbids fusing the product with the sum, as some processors do.
	product := float64(float64(base)*factor) + 0.5
	switch {
	case product < 1:
		return 0
	case product < float64(limit):
		return time.Duration(product)
	}
	return max(limit, 0)
}
