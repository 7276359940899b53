// Package breaker decides from the outcomes of attempts whether what handlers need
// is available and, after an outage, how many handlers may run at once.
//
// It is plain data and functions of what they are given: no clock, no timer, no
// randomness of its own. The same inputs give the same decisions.
package breaker

import (
	"slices"
	"time"
)

// State is where a breaker stands.
type State uint8

// The states of a breaker.
const (
	// Closed: handlers run as they are configured to.
	Closed State = iota
	// Open: the dependency is unavailable; no handler is started.
	Open
	// HalfOpen: a probe is under way.
	HalfOpen
	// Ramping: the dependency answers again; a level, found by trial, limits how
	// many handlers run at once.
	Ramping
)

const (
	// recentOutcomes, times the threshold, is how far back outcomes count: then
	// all counts are halved, so that older outcomes matter less and less.
	recentOutcomes = 10
	// forgetAfter without a failure the failures before are forgotten.
	forgetAfter = 5 * time.Minute

	// A probe follows the last after a share of the time for which the breaker has
	// been open, within these bounds, and each wait is half as long to one and a
	// half times as long by chance. So an outage is noticed to be over within a
	// tenth of its length, or 4.5 s, and an hour of it costs some 250 probes.
	probeShare = 15 // one in so many
	firstProbe = 3 * time.Second
	lastProbe  = 16 * time.Second
)

// Breaker is a circuit breaker over the outcomes of attempts. Make one with New.
//
// It opens when threshold distinct messages have failed for want of the dependency
// and no other outcome came between. Each other outcome asks for as many failures
// again: so it opens when more than threshold of threshold+1 recent outcomes were
// failures, which with 20 is 95 %. A dependency that answers one time in ten is no
// reason to stop: what gets through is work done.
//
// Nothing but that rule opens it, while it is closed and while it is ramping; then
// the failures need not be of distinct messages. An error rate that is harmless
// before an outage is harmless after it.
type Breaker struct {
	threshold int
	state     State
	since     time.Time // the outage began; zero while closed
	opened    time.Time // the latest opening, from closed or ramping

	// Closed and ramping: the recent outcomes, from the first failure on.
	suspects         []string // distinct messages that failed, at most threshold
	failures, others int
	outcomes         int // that came in, counted or not; halved with the others
	lastFailure      time.Time

	probeAt time.Time // open: the next probe

	usual   share // of outcomes that are successes, apart from outages and overload
	unusual int   // failures since the last success: an outage, if it opens

	ramp ramp
}

// New returns a closed breaker that opens after failures of threshold distinct
// messages.
func New(threshold int) Breaker { return Breaker{threshold: threshold, usual: unknown} }

// Succeeded takes in attempts that succeeded while nobody asked the breaker, since
// it was quiet: they make it surer that success is usual.
func (b *Breaker) Succeeded(attempts int) { b.usual.add(attempts, 0, float64(attempts)) }

// State returns the breaker's state.
func (b *Breaker) State() State { return b.state }

// Since returns when the outage began: when the breaker was last closed no more.
// It is zero while the breaker is closed.
func (b *Breaker) Since() time.Time { return b.since }

// NextProbe returns when a probe is due; zero unless the breaker is open.
func (b *Breaker) NextProbe() time.Time {
	if b.state != Open {
		return time.Time{}
	}
	return b.probeAt
}

// ProbeNow makes the next probe due at once, if the breaker is open.
func (b *Breaker) ProbeNow() { b.probeAt = time.Time{} }

// LastFailure returns when an attempt last failed while the breaker was closed or
// ramping.
func (b *Breaker) LastFailure() time.Time { return b.lastFailure }

// Quiet reports whether the breaker knows nothing that a new one would not know: it
// is closed, and nothing has failed of late.
func (b *Breaker) Quiet() bool {
	return b.state == Closed && b.failures == 0 && b.usual.value > quietShare
}

// Attempted takes in the end of an attempt at a message while the breaker is
// closed, and reports whether the breaker is to be opened.
func (b *Breaker) Attempted(id string, failed bool, now time.Time) (opens bool) {
	if failed {
		b.unusual++
	} else {
		bad := min(b.unusual, b.threshold)
		b.usual.add(1, bad, float64(1+bad))
		b.unusual = 0
	}
	return b.opens(id, failed, now)
}

// opens is the opening rule.
func (b *Breaker) opens(id string, failed bool, now time.Time) bool {
	b.outcomes++
	if !failed {
		if b.others++; b.others >= b.failures {
			b.forget()
		}
		return false
	}
	if now.Sub(b.lastFailure) > forgetAfter {
		b.forget()
	}
	b.lastFailure = now
	// Failures beyond those that open it are not counted: they would make up for
	// later successes.
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
func (b *Breaker) forget() { b.suspects, b.failures, b.others, b.outcomes = nil, 0, 0, 0 }

// Open opens the breaker, or keeps it open after a probe without an answer. chance,
// from [0, 1), spreads the probes of a fleet.
func (b *Breaker) Open(now time.Time, chance float64) {
	switch b.state {
	case Closed:
		b.since, b.opened = now, now
		b.ramp.tooHigh = 0
	case Ramping:
		b.opened = now
		b.ramp.tooHigh = max(leastLevel, b.ramp.level/2)
	}
	b.state = Open
	wait := min(lastProbe, max(firstProbe, now.Sub(b.opened)/probeShare))
	b.probeAt = now.Add(time.Duration(float64(wait) * (0.5 + chance)))
}

// Probe begins a probe.
func (b *Breaker) Probe() { b.state = HalfOpen }

// Answered takes in a probe that succeeded, after the time that it took: handlers
// are started again, at the lowest level at first.
func (b *Breaker) Answered(took time.Duration, now time.Time) {
	b.forget()
	b.state = Ramping
	b.ramp.start(b.usual, took, now)
}

// Ended takes in the end of an attempt that began while the breaker was ramping,
// in the round that Round returned then. full is how many handlers run at once
// when nothing limits them: when the level has reached it the breaker closes.
func (b *Breaker) Ended(round int, id string, failed bool, took time.Duration, full int, now time.Time, chance float64) {
	if b.opens(id, failed, now) || failed && b.failures >= b.threshold*(b.others+1) {
		b.Open(now, chance)
		return
	}
	if round != b.ramp.round {
		return // it tells of another level
	}
	b.ramp.ended(&b.usual, failed, took, now)
	b.closeAt(full)
}

// Promising reports whether, while ramping, the current round speaks for its level.
func (b *Breaker) Promising() bool { return b.ramp.evidence <= 0 }

// Idle takes in that nothing has run for a while, though it might have, in a round
// that is promising: the level rises nevertheless, so that the end of an outage
// does not wait for messages.
func (b *Breaker) Idle(full int, now time.Time) {
	b.ramp.raise()
	b.ramp.next(now)
	b.closeAt(full)
}

// closeAt closes the breaker if the level is full.
func (b *Breaker) closeAt(full int) {
	if b.ramp.level >= float64(full) {
		// The outage's failures say nothing of other times.
		*b = Breaker{threshold: b.threshold, usual: b.usual, lastFailure: b.lastFailure}
	}
}

// Round returns the number of the current round of the ramp, for Ended.
func (b *Breaker) Round() int { return b.ramp.round }

// Level returns how many handlers may run at once while ramping: at least one.
func (b *Breaker) Level() int { return max(1, int(b.ramp.level)) }

// Rising reports whether a level was found to be borne while ramping, and none to be
// too high since. Until then what fails may fail for want of the dependency, as it
// does while the breaker is half-open.
func (b *Breaker) Rising() bool { return b.ramp.rising }

// Rest returns for how long no handler is to start after an attempt that took so
// long, while ramping: below a level of one, handlers run one at a time with
// pauses in between.
func (b *Breaker) Rest(took time.Duration) time.Duration { return b.ramp.rest(took) }
