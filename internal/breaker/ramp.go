package breaker

import (
	"math"
	"time"
)

// A ramp finds the level, the number of attempts at once, that a dependency can bear after an
// outage. It raises the level in rounds. A round compares the successes among the attempts that
// began at its level with the usual share of successes, by Wald's sequential test (A. Wald,
// Sequential Tests of Statistical Hypotheses, 1945): it adds up how much likelier each outcome is
// if the level is too high than if the dependency can bear it, and ends when the sum exceeds one of
// two bounds. So a dependency that always fails three times in ten does not count as overloaded,
// however long it takes to distinguish the two cases, and each of ten processes that ramp up in
// parallel sees the overload that they cause together.
//
// The usual share is learnt while the breaker is closed and at levels that the dependency has
// borne; the failures of an outage do not count.
//
// The bounds and factors were found by simulation: recovery_test.go.
type ramp struct {
	level   float64       // attempts at once; below 1 with pauses in between
	tooHigh float64       // the level to which a level that was too high was lowered; 0: none was too high
	growth  float64       // the factor of the next raise at or above tooHigh
	rising  bool          // the latest conclusion was that the level is borne
	usually time.Duration // how long attempts take that succeed: a moving average

	round    int // its number: outcomes of other rounds are ignored
	began    time.Time
	outcomes int
	good     int     // successes among them
	evidence float64 // that the level is too high; negative: that it is borne
}

const (
	// leastLevel is the level at which a ramp begins and below which it does not
	// fall: one attempt, then a pause of three times its length, so that ten processes together
	// make at most two and a half attempts at once.
	leastLevel = 0.25
	// longestRest limits the pauses, so that slow handlers begin with one at a time.
	longestRest = time.Second

	// While no level is known to be too high the level grows by steepest in each round; otherwise
	// by gentlest at first, then by more with each round, up to gentle.
	steepest = 1.8
	gentlest = 1.1
	gentle   = 1.5
	gentler  = 1.5 // the exponent from one such factor to the next

	// The shortest durations of a round, by how the level grows: some dependencies show only after
	// a while that they are overloaded.
	shortRound = 250 * time.Millisecond
	longRound  = time.Second

	// Evidence is the logarithm of a likelihood ratio. A level is lowered at
	// enoughAgainst, one in 150 by mistake. It is raised at minus enoughFor, or minus enoughAgain
	// if the dependency has borne the level above before; both grow with the level, because a
	// mistake then concerns more attempts.
	enoughAgainst = 5.0
	enoughFor     = 2.0
	enoughAgain   = 1.0
	enoughMore    = 0.1
	// On trial the evidence is added up anew from each outcome on, for up to an hour, so that the
	// test has hundreds of thousands of chances to be wrong.
	enoughOnTrial = 12.0

	// The share of the usual successes that is assumed to remain at a level that is too high: half
	// of them if a round has few outcomes, two thirds from manyAtOnce on, where a round has enough
	// outcomes for a decision.
	overloadedFew  = 1.0 / 2
	overloadedMany = 2.0 / 3
	manyAtOnce     = 10

	// After this many outcomes, and four times the level, without a conclusion, the usual share
	// learns from the round. Below manyAtOnce the round then ends: with a raise if the evidence is
	// for the level. At the lowest level, where the ramp does not cause failures, it ends sooner.
	longEnough  = 40
	weaklyFor   = 0.5
	leastRounds = 16

	// A round of this length with few outcomes means a quiet queue or slow handlers: little
	// evidence for the level is enough.
	idleRound = 30 * time.Second

	// usuallyOf is the weight of the moving average of how long attempts take: one part in it.
	usuallyOf = 8

	// Outcomes of levels that may be too high, but were not found to be, count with this factor,
	// and at most as this number.
	doubtfulPart = 0.1
	mostDoubtful = 4.0
)

// start begins a ramp after a probe of the given duration.
func (r *ramp) start(usual share, took time.Duration, now time.Time) {
	r.level = lowest(took)
	if r.tooHigh > 0 {
		r.tooHigh = max(r.tooHigh, r.level)
	}
	r.growth = gentlest
	r.rising = false
	r.usually = took
	r.next(now)
	r.count(usual, false) // the probe
}

// lowest is the lowest level for attempts of the given duration.
func lowest(took time.Duration) float64 {
	duty := took.Seconds() / (took + longestRest).Seconds()
	if duty > 0.6 {
		return 1
	}
	return max(leastLevel, duty)
}

// rest returns the pause after an attempt of the given duration. After one that was rejected at once
// it is as long as after one that succeeds: otherwise an overloaded dependency would get more
// attempts than another.
func (r *ramp) rest(took time.Duration) time.Duration {
	if r.level >= 1 {
		return 0
	}
	took = max(took, r.usually)
	return min(longestRest, time.Duration(float64(took)*(1/r.level-1)))
}

// next begins another round.
func (r *ramp) next(now time.Time) {
	r.round++
	r.began = now
	r.outcomes, r.good, r.evidence = 0, 0, 0
}

// count counts an outcome of this round.
func (r *ramp) count(usual share, failed bool) {
	borne := usual.estimate()
	overloaded := borne * overloadedFew
	if r.level >= manyAtOnce {
		overloaded = borne * overloadedMany
	}
	r.outcomes++
	if failed {
		r.evidence += math.Log((1 - overloaded) / (1 - borne))
		return
	}
	r.good++
	r.evidence += math.Log(overloaded / borne)
}

// ended handles the end of an attempt of this round, and changes the level when the round has come
// to a conclusion.
func (r *ramp) ended(usual *share, failed bool, took time.Duration, now time.Time) {
	r.count(*usual, failed)
	if !failed {
		r.usually += (took - r.usually) / usuallyOf
	}
	least := lowest(took)
	if r.evidence >= enoughAgainst {
		r.rising = false
		if r.level > least {
			r.lower(usual, least, now)
			return
		}
	}
	below := r.tooHigh == 0 || r.level < r.tooHigh // the next level is not known to be too high
	enough, duration := enoughFor, shortRound
	switch {
	case r.tooHigh > 0 && below:
		enough = enoughAgain
	case !below:
		duration = longRound
	}
	if now.Sub(r.began) < duration {
		return
	}
	long := float64(r.outcomes) >= max(longEnough, 4*r.level)
	idle := !long && now.Sub(r.began) >= idleRound
	switch {
	case float64(r.outcomes) < r.level && !idle: // the level has not been used fully
	case r.evidence <= -enough-enoughMore*r.level,
		r.evidence <= -weaklyFor && (idle || long && r.level < manyAtOnce),
		r.level <= least && r.outcomes >= leastRounds && r.good > 0:
		r.learn(usual, true)
		r.raise()
		r.next(now)
	case long:
		r.learn(usual, r.level <= r.tooHigh)
		if r.level < manyAtOnce {
			r.next(now)
		} else {
			r.outcomes, r.good = 0, 0
		}
	}
}

// tried handles the end of an attempt on trial, at the full level, and reports whether the level is
// too high. It adds up the evidence since this was least (the CUSUM test: E. S. Page, Continuous
// Inspection Schemes, 1954).
func (r *ramp) tried(usual *share, failed bool) (tooHigh bool) {
	r.count(*usual, failed)
	if r.evidence <= 0 {
		usual.add(r.good, r.outcomes-r.good, float64(r.outcomes))
		r.outcomes, r.good, r.evidence = 0, 0, 0
	}
	return r.evidence >= enoughOnTrial
}

// raise raises the level, but not beyond one that was too high.
func (r *ramp) raise() {
	r.rising = r.evidence <= 0 // not when it only leaves the lowest level
	switch {
	case r.tooHigh == 0:
		r.level *= steepest
	case r.level < r.tooHigh:
		r.level = max(min(r.level*steepest, r.tooHigh), r.level*gentlest)
	case r.level < 1:
		r.level *= gentle
	default:
		r.level *= r.growth
		r.growth = min(gentle, math.Pow(r.growth, gentler))
	}
}

// lower lowers the level in proportion to the missing successes.
func (r *ramp) lower(usual *share, least float64, now time.Time) {
	borne := float64(r.good+1) / (usual.estimate()*float64(r.outcomes) + 1)
	r.level = max(least, r.level*min(0.9, max(0.5, borne)))
	r.tooHigh = r.level
	r.growth = gentlest
	usual.doubt()
	r.next(now)
}

// learn adds the round's outcomes to the usual share: all of a level that the dependency has borne,
// and a few of those that the level may have caused. Failures alone are an outage.
func (r *ramp) learn(usual *share, borne bool) {
	if r.good == 0 {
		return
	}
	as := float64(r.outcomes)
	beyond := r.tooHigh > 0 && r.level > r.tooHigh
	if !borne || beyond && float64(r.good) < usual.value*as {
		as = min(as*doubtfulPart, mostDoubtful)
	}
	usual.add(r.good, r.outcomes-r.good, as)
}

// share is the share of outcomes that are successes: a moving average.
type share struct {
	value  float64
	weight float64 // the number of outcomes that it stands for
}

// unknown is the usual share that is assumed at first: success.
var unknown = share{value: 1, weight: 4}

const (
	mostWeight  = 100
	leastWeight = 8
	quietShare  = 0.95
)

// estimate is the share to calculate with: never exactly 0 or 1, and further from them the fewer
// outcomes are known.
func (s share) estimate() float64 { return (s.value*s.weight + 1) / (s.weight + 2) }

// add adds outcomes with the given weight.
func (s *share) add(good, bad int, as float64) {
	if as <= 0 {
		return
	}
	s.weight = min(mostWeight, s.weight+as)
	s.value += (float64(good)/float64(good+bad) - s.value) * min(1, as/s.weight)
}

// doubt makes later outcomes count for more.
func (s *share) doubt() { s.weight = max(leastWeight, s.weight/2) }
