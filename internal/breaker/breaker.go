// Package breaker decides from the outcomes of attempts whether the handlers' dependency is
// available and, after an outage, how many handlers may run at once.
//
// It is plain data and functions of their arguments: no clock, no timer, no randomness of its own.
// The same inputs give the same decisions.
package breaker

import (
	"slices"
	"time"
)

// State is the state of a breaker.
type State uint8

// The states of a breaker.
const (
	// Closed: handlers run as they are configured to.
	Closed State = iota
	// Open: the dependency is unavailable; no handler is started.
	Open
	// HalfOpen: a probe is under way.
	HalfOpen
	// Ramping: the dependency answers again, or is overloaded after an outage; a level, found by
	// trial, limits how many handlers run at once.
	Ramping
)

// StateNames has the states' names.
var StateNames = [...]string{"closed", "open", "half-open", "ramping"}

// String returns the state's name.
func (s State) String() string { return StateNames[s] }

const (
	// recentOutcomes, times the threshold, is the number of outcomes after which all counts are
	// halved, so that older outcomes matter less and less.
	recentOutcomes = 10
	// forgetAfter is the time without a failure after which earlier failures are forgotten.
	forgetAfter = 5 * time.Minute

	// The wait for the next probe is a share of the time for which the breaker has been open,
	// within these bounds, and varied at random from half to one and a half times as long. So the
	// end of an outage is noticed within a tenth of its length, or 4.5 s, and an hour of it costs
	// some 250 probes.
	probeShare = 15 // one part in probeShare
	firstProbe = 3 * time.Second
	lastProbe  = 16 * time.Second

	// A breaker that a ramp has closed is on trial for as long as the outage has lasted, within
	// these bounds: about as long as its backlog keeps every handler busy.
	shortTrial = time.Minute
	longTrial  = time.Hour
)

// Breaker is a circuit breaker over the outcomes of attempts. Make one with New.
//
// It opens when threshold distinct messages have failed because the dependency is unavailable and
// no other outcome came between. Each other outcome requires as many more failures: so it opens
// when more than threshold of threshold+1 recent outcomes were failures, which with 20 is 95 %. A
// dependency that answers one time in ten is no reason to stop: the attempts that succeed are
// finished work.
//
// Only that rule opens it, while it is closed and while it is ramping; while it is ramping the
// failures need not be of distinct messages. An error rate that is harmless before an outage is
// harmless after it.
//
// Messages may fail by themselves as if the dependency were unavailable, as often as they are tried. Such
// failures count for nothing here once other messages have shown whose fault they are: see faults.
//
// A dependency may bear the whole ramp and fail later: it takes a burst of requests, or becomes
// slower by and by. So a breaker that a ramp has closed is on trial at first: if fewer attempts
// succeed than usual, by the test of the ramp, and enough messages fail, it ramps up again,
// from a lower level.
type Breaker struct {
	threshold int
	state     State
	since     time.Time // the outage began; zero while closed
	opened    time.Time // the latest opening, from closed or ramping

	// Closed and ramping: the recent outcomes, from the first failure on.
	suspects         []string // distinct messages that failed, at most threshold
	failures, others int
	outcomes         int // all outcomes, counted or not; halved with the others
	lastFailure      time.Time

	probeAt  time.Time // open: the next probe
	trialEnd time.Time // zero if not on trial; kept through a relapse
	rejected []string  // on trial: ids of messages that failed since the evidence began, as many as are enough

	relapsed  bool      // ramping: since a relapse
	fullSince time.Time // ramping: the level is full since then; zero: it is not

	usual   share // of outcomes that are successes, apart from outages and overload
	unusual int   // failures since the last success: an outage, if it opens

	ramp   ramp
	faults faults // failures that are the messages' own are no evidence
}

// New returns a closed breaker that opens after failures of threshold distinct
// messages.
func New(threshold int) Breaker { return Breaker{threshold: threshold, usual: unknown} }

// Succeeded counts attempts that succeeded while the caller did not call Attempted because the
// breaker was quiet: they raise the certainty that success is usual.
func (b *Breaker) Succeeded(attempts int) { b.usual.add(attempts, 0, float64(attempts)) }

// State returns the breaker's state.
func (b *Breaker) State() State { return b.state }

// Since returns when the outage began, which is when the breaker last left the closed state. It is
// zero while the breaker is closed.
func (b *Breaker) Since() time.Time { return b.since }

// NextProbe returns when a probe is due; zero unless the breaker is open.
func (b *Breaker) NextProbe() time.Time {
	if b.state != Open {
		return time.Time{}
	}
	return b.probeAt
}

// ProbeNow makes the next probe due at once, if the breaker is open.
func (b *Breaker) ProbeNow(now time.Time) { b.probeAt = now }

// LastFailure returns when an attempt last failed while the breaker was closed or ramping, other than by
// the fault of its message.
func (b *Breaker) LastFailure() time.Time { return b.lastFailure }

// Quiet reports whether the breaker's state is that of a new one: it is closed, not on trial, and
// nothing has failed recently.
func (b *Breaker) Quiet() bool {
	return b.state == Closed && b.trialEnd.IsZero() && b.failures == 0 && b.usual.value > quietShare
}

// Attempted handles the end of an attempt at a message while the breaker is closed. It returns the
// state that the caller must change it to: by Open, or to Ramping by Relapse; or Closed.
func (b *Breaker) Attempted(id string, failed bool, now time.Time) State {
	if !now.Before(b.trialEnd) {
		b.trialEnd = time.Time{}
	}
	if b.faults.blames(id, failed) {
		return Closed
	}
	overloaded := false
	switch {
	case !b.trialEnd.IsZero():
		overloaded = b.tried(id, failed)
	case failed:
		b.unusual++
	default:
		bad := min(b.unusual, b.threshold)
		b.usual.add(1, bad, float64(1+bad))
		b.unusual = 0
	}
	switch {
	case b.opens(id, failed, now):
		return Open
	case overloaded:
		return Ramping
	}
	return Closed
}

// tried handles the end of an attempt on trial, and reports whether the dependency is overloaded. A
// few harmful messages that come together are evidence, and no overload.
func (b *Breaker) tried(id string, failed bool) (overloaded bool) {
	enough := b.threshold * 2 / 5
	tooHigh := b.ramp.tried(&b.usual, failed)
	switch {
	case b.ramp.outcomes == 0: // the evidence begins anew
		b.rejected = b.rejected[:0]
	case failed && len(b.rejected) < enough && !slices.Contains(b.rejected, id):
		b.rejected = append(b.rejected, id)
	}
	return tooHigh && len(b.rejected) >= enough
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
		b.trialEnd = time.Time{}
		b.ramp.tooHigh = 0
	case Ramping:
		b.opened = now
		b.ramp.tooHigh = max(leastLevel, b.ramp.level/2)
	}
	b.state, b.relapsed = Open, false
	wait := min(lastProbe, max(firstProbe, now.Sub(b.opened)/probeShare))
	b.probeAt = now.Add(time.Duration(float64(wait) * (0.5 + chance)))
}

// Probe begins a probe.
func (b *Breaker) Probe() { b.state = HalfOpen }

// Answered handles a probe that succeeded after took: handlers are started again, at the lowest
// level at first.
func (b *Breaker) Answered(took time.Duration, now time.Time) {
	b.forget()
	b.state = Ramping
	b.ramp.start(b.usual, took, now)
}

// Relapse has a breaker that is closed ramp up again, because attempts fail at full, the number of
// handlers that run at once without a limit. took is how long the latest attempt took.
func (b *Breaker) Relapse(took time.Duration, full int, now time.Time) {
	b.forget()
	b.state = Ramping
	b.since, b.opened = now, now
	b.relapsed = true
	b.ramp.level = float64(full)
	b.ramp.rising = false
	b.ramp.lower(&b.usual, lowest(took), now)
}

// Ended handles the end of an attempt that began while the breaker was ramping, in the round that
// Round returned at that time. full is how many handlers run at once without a limit: when the
// level has reached it the breaker closes. Failures at another level are ignored: if that was too
// high, its rejections would open the breaker, since they end before its successes do.
func (b *Breaker) Ended(round int, id string, failed bool, took time.Duration, full int, now time.Time, chance float64) {
	current := round == b.ramp.round // otherwise it began at another level
	if b.faults.blames(id, failed) {
		return
	}
	if failed && !current {
		return
	}
	if b.opens(id, failed, now) || failed && b.failures >= b.threshold*(b.others+1) {
		b.Open(now, chance)
		return
	}
	if !current {
		return
	}
	b.ramp.ended(&b.usual, failed, took, now)
	b.closeAt(full, now)
}

// Overloaded reports whether the breaker is ramping up since a relapse.
func (b *Breaker) Overloaded() bool { return b.relapsed }

// Promising returns since when, while ramping, the evidence of the current round is not against its
// level: zero, or when the failures that are against it are forgotten, as those of a closed breaker are.
func (b *Breaker) Promising() time.Time {
	if b.ramp.evidence <= 0 {
		return time.Time{}
	}
	return b.lastFailure.Add(forgetAfter)
}

// Idle handles a time without runs, although handlers could have run, in a promising round: the
// level rises nevertheless, so that the end of an outage does not wait for messages.
func (b *Breaker) Idle(full int, now time.Time) {
	b.ramp.next(now)
	b.ramp.raise()
	b.closeAt(full, now)
}

// closeAt closes the breaker if the level is full: at once the first time, so that it does not
// take long to recover, and after a relapse when the level has been full for a while.
func (b *Breaker) closeAt(full int, now time.Time) {
	switch {
	case b.ramp.level < float64(full):
		b.fullSince = time.Time{}
		return
	case b.relapsed && b.fullSince.IsZero():
		b.fullSince = now
	}
	b.ramp.level = float64(full)
	if b.relapsed && now.Sub(b.fullSince) < shortTrial {
		return
	}
	end := now.Add(min(longTrial, max(shortTrial, now.Sub(b.since))))
	if b.trialEnd.After(end) {
		end = b.trialEnd
	}
	// The outage's failures say nothing about other times.
	*b = Breaker{threshold: b.threshold, faults: b.faults, usual: b.usual, lastFailure: b.lastFailure, trialEnd: end, ramp: ramp{level: float64(full), usually: b.ramp.usually}}
}

// Round returns the number of the current round of the ramp, for Ended.
func (b *Breaker) Round() int { return b.ramp.round }

// Level returns how many handlers may run at once while ramping: at least one.
func (b *Breaker) Level() int { return max(1, int(b.ramp.level)) }

// Rising reports whether, while ramping, the dependency has borne a level and no level has been too
// high since. Until then attempts may fail because the dependency is unavailable, as while the
// breaker is half-open.
func (b *Breaker) Rising() bool { return b.ramp.rising }

// Rest returns how long no handler may start after an attempt of the given duration, while ramping:
// below a level of one, handlers run one at a time with pauses in between.
func (b *Breaker) Rest(took time.Duration) time.Duration { return b.ramp.rest(took) }
