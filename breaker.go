package reprise

import (
	"slices"
	"time"
)

// BreakerState is where the circuit breaker over the handlers' outcomes stands.
// It is a closed set, fit for a metric label.
type BreakerState uint8

// The states of a breaker.
const (
	// BreakerClosed: handlers run as they are configured to.
	BreakerClosed BreakerState = iota
	// BreakerOpen: what the handlers need is unavailable; none is started.
	BreakerOpen
	// BreakerHalfOpen: a probe is under way.
	BreakerHalfOpen
	// BreakerRamping: it answers again; more and more handlers run at once.
	BreakerRamping
	breakerStates
)

var breakerStateNames = [breakerStates]string{"closed", "open", "half-open", "ramping"}

// String returns the state's name, fit for a metric label.
func (s BreakerState) String() string { return nameOf(breakerStateNames[:], uint8(s), "BreakerState") }

const (
	// defaultThreshold is how many distinct messages must have failed. Fewer could
	// be a handful of slow ones.
	defaultThreshold = 20
	maxThreshold     = 1000

	// recentOutcomes, times the threshold, is how far back outcomes count: then
	// all counts are halved, so that what has been matters less and less.
	recentOutcomes = 10
	// forgetAfter without a failure the failures before are forgotten.
	forgetAfter = 5 * time.Minute

	// Probes come at intervals that double from the first to the last, each half
	// as long to one and a half times as long by chance.
	firstProbe = 5 * time.Second
	lastProbe  = 80 * time.Second

	// rampTolerance is how many answers stand for one failure while ramping.
	rampTolerance = 10
)

// breaker decides from the outcomes of attempts whether what the handlers need is
// there. It is plain data, and its methods are functions of what they are given:
// it has no clock, no timer and no chance of its own.
//
// It opens when threshold distinct messages have failed for want of the
// dependency and no other outcome came between. Each that did asks for as many
// failures again: so it opens when more than threshold of threshold+1 recent
// outcomes were such failures, which with the default is 95 %. A dependency that
// answers one time in ten is no reason to stop: what gets through is work done.
type breaker struct {
	threshold int
	state     BreakerState
	since     time.Time // when it opened; zero while it is closed

	// Closed: the recent outcomes, from the first failure on.
	suspects         []string // distinct messages that failed, at most threshold
	failures, others int
	outcomes         int // that came in, counted or not; halved with the others
	lastFailure      time.Time

	// Open and half-open.
	probes  int       // without an answer, since it was last closed
	probeAt time.Time // the next

	// Ramping.
	limit  int // of handlers at once
	earned int // answers at this limit
	good   int // answers in all
	bad    int // failures in all
}

// attempted takes in the end of an attempt at message id while the breaker is
// closed. It says whether the breaker should open.
func (b *breaker) attempted(id string, unavailable bool, now time.Time) bool {
	b.outcomes++
	if !unavailable {
		if b.others++; b.others >= b.failures {
			b.forget()
		}
		return false
	}
	if now.Sub(b.lastFailure) > forgetAfter {
		b.forget()
	}
	b.lastFailure = now
	// More than opens it is not counted: it would make up for what succeeds later.
	b.failures = min(b.failures+1, b.threshold*(b.others+1))
	if len(b.suspects) < b.threshold && !slices.Contains(b.suspects, id) {
		b.suspects = append(b.suspects, id)
	}
	if len(b.suspects) == b.threshold && b.failures >= b.threshold*(b.others+1) {
		return true
	}
	if b.outcomes >= recentOutcomes*b.threshold {
		b.outcomes /= 2
		b.failures, b.others = b.failures/2, b.others/2
		b.suspects = slices.Delete(b.suspects, 0, len(b.suspects)/2)
	}
	return false
}

// forget forgets the recent outcomes.
func (b *breaker) forget() { b.suspects, b.failures, b.others, b.outcomes = nil, 0, 0, 0 }

// quiet says that nothing is known that a new breaker would not know.
func (b *breaker) quiet() bool { return b.state == BreakerClosed && b.failures == 0 }

// open opens the breaker, from any state. chance, from [0, 1), spreads the probes
// of a fleet.
func (b *breaker) open(now time.Time, chance float64) {
	if b.state == BreakerClosed {
		b.forget()
		b.since = now
	}
	b.state = BreakerOpen
	wait := min(lastProbe, firstProbe<<min(b.probes, 10))
	b.probeAt = now.Add(time.Duration(float64(wait) * (0.5 + chance)))
}

// probe begins a probe.
func (b *breaker) probe() { b.state = BreakerHalfOpen }

// unanswered takes in a probe that failed: the next is further away.
func (b *breaker) unanswered(now time.Time, chance float64) {
	b.probes++
	b.open(now, chance)
}

// answered takes in a probe that succeeded: handlers are started again, one at
// first.
func (b *breaker) answered() {
	b.limit, b.earned, b.good, b.bad = 1, 0, 0, 0
	b.state = BreakerRamping
}

// ramped takes in the end of an attempt that began while ramping. As many answers
// as handlers may run at once double that number, until it is full and the
// breaker closes. A failure opens it again, unless rampTolerance answers stand
// against it: in a thousand attempts one fails even when all is well.
func (b *breaker) ramped(unavailable bool, full int, now time.Time, chance float64) {
	if unavailable {
		b.bad++
		b.earned = 0
		if b.bad*rampTolerance > b.good {
			b.unanswered(now, chance)
		}
		return
	}
	b.good++
	if b.earned++; b.earned >= b.limit {
		b.limit, b.earned = 2*b.limit, 0
	}
	if b.limit > full {
		*b = breaker{threshold: b.threshold}
	}
}
