package breaker

import (
	"math"
	"time"
)

// A ramp finds the level, the number of attempts at once, that a dependency bears
// after an outage. It raises the level in rounds. A round compares the successes
// among the attempts that began at its level with the usual share of successes, by
// Wald's sequential test (A. Wald, Sequential Tests of Statistical Hypotheses,
// 1945): it adds up how much likelier each outcome is if the level is too high
// than if it is borne, and ends when the sum passes one of two bounds. So a
// dependency that always fails three times in ten is not taken for an overloaded
// one, however long it takes to tell them apart, and ten processes that ramp up
// side by side each see the overload that they cause together.
//
// The usual share is learnt while the breaker is closed and at levels that were
// borne; the failures of an outage do not count.
//
// The bounds and factors were found by simulation: recovery_test.go.
type ramp struct {
	level   float64 // attempts at once; below 1 with pauses in between
	tooHigh float64 // what a level was lowered to when it was too high; 0: none was
	growth  float64 // the factor of the next raise at or above tooHigh
	rising  bool    // the latest conclusion was that the level is borne

	round    int // its number: outcomes of other rounds are passed over
	began    time.Time
	outcomes int
	good     int     // successes among them
	evidence float64 // that the level is too high; negative: that it is borne
}

const (
	// leastLevel is the level at which a ramp begins and below which it does not
	// fall: one attempt, then a pause of three times its length, so that ten
	// processes are no more than two and a half attempts at once.
	leastLevel = 0.25
	// longestRest bounds the pauses, so that slow handlers begin at one at a time.
	longestRest = time.Second

	// Where nothing is known to be too high the level grows by steepest in each
	// round; where something is, by gentlest at first, then by more with each
	// round, up to gentle.
	steepest = 1.8
	gentlest = 1.1
	gentle   = 1.5
	gentler  = 1.5 // the exponent from one such factor to the next

	// A round lasts for at least one of these, by how the level grows: some
	// dependencies show only after a while that they are overloaded.
	shortRound = 250 * time.Millisecond
	longRound  = time.Second

	// Evidence is the logarithm of a likelihood ratio. A level is lowered at
	// enoughAgainst, one in 150 by mistake. It is raised at minus enoughFor, or
	// enoughAgain where the level above has been borne before; both grow with the
	// level, since a mistake then concerns more attempts.
	enoughAgainst = 5.0
	enoughFor     = 2.0
	enoughAgain   = 1.0
	enoughMore    = 0.1

	// A level that is too high is taken to leave this share of the usual
	// successes: half of them where a round has few outcomes, two thirds from
	// manyAtOnce on, where it has enough to tell.
	overloadedFew  = 1.0 / 2
	overloadedMany = 2.0 / 3
	manyAtOnce     = 10

	// A round that has come to no conclusion by this many outcomes, and by four
	// times the level, teaches what it can. Below manyAtOnce it ends then: with a
	// raise if the evidence is for the level. At the lowest level, where failures
	// are none of the ramp's doing, it ends sooner.
	longEnough  = 40
	weaklyFor   = 0.5
	leastRounds = 16

	// A round of this length with few outcomes belongs to a quiet queue or to slow
	// handlers: little evidence for the level is enough.
	idleRound = 30 * time.Second

	// Outcomes of levels that may be too high, and were not found to be, count for
	// this part, and for no more than this number.
	doubtfulPart = 0.1
	mostDoubtful = 4.0
)

// start begins a ramp after a probe that took so long.
func (r *ramp) start(usual share, took time.Duration, now time.Time) {
	r.level = lowest(took)
	if r.tooHigh > 0 {
		r.tooHigh = max(r.tooHigh, r.level)
	}
	r.growth = gentlest
	r.rising = false
	r.next(now)
	r.count(usual, false) // the probe
}

// lowest is the lowest level, of attempts that take so long.
func lowest(took time.Duration) float64 {
	duty := took.Seconds() / (took + longestRest).Seconds()
	if duty > 0.6 {
		return 1
	}
	return max(leastLevel, duty)
}

// rest returns the pause after an attempt that took so long.
func (r *ramp) rest(took time.Duration) time.Duration {
	if r.level >= 1 {
		return 0
	}
	return min(longestRest, time.Duration(float64(took)*(1/r.level-1)))
}

// next begins another round.
func (r *ramp) next(now time.Time) {
	r.round++
	r.began = now
	r.outcomes, r.good, r.evidence = 0, 0, 0
}

// count takes in an outcome of this round.
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

// ended takes in the end of an attempt of this round, and changes the level when
// the round has come to a conclusion.
func (r *ramp) ended(usual *share, failed bool, took time.Duration, now time.Time) {
	r.count(*usual, failed)
	least := lowest(took)
	if r.evidence >= enoughAgainst {
		r.rising = false
		if r.level > least {
			r.lower(usual, least, now)
			return
		}
	}
	below := r.tooHigh == 0 || r.level < r.tooHigh // nothing says that the next level is too high
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
	case float64(r.outcomes) < r.level && !idle: // the level has not been full
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

// raise raises the level, not beyond one that was too high.
func (r *ramp) raise() {
	r.rising = r.evidence <= 0 // not where it only leaves the lowest level
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

// lower lowers the level by as much as successes were missing.
func (r *ramp) lower(usual *share, least float64, now time.Time) {
	borne := float64(r.good+1) / (usual.estimate()*float64(r.outcomes) + 1)
	r.level = max(least, r.level*min(0.9, max(0.5, borne)))
	r.tooHigh = r.level
	r.growth = gentlest
	usual.doubt()
	r.next(now)
}

// learn takes the round's outcomes for usual: those of a level that was borne, and
// a few of those that may be the level's doing. Failures alone are an outage.
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

// unknown is what is taken for usual at first: success.
var unknown = share{value: 1, weight: 4}

const (
	mostWeight  = 100
	leastWeight = 8
	quietShare  = 0.95
)

// estimate is the share to reckon with: never quite 0 or 1, the less so the fewer
// outcomes are known.
func (s share) estimate() float64 { return (s.value*s.weight + 1) / (s.weight + 2) }

// add takes in outcomes, which count for as much as the given number of them.
func (s *share) add(good, bad int, as float64) {
	if as <= 0 {
		return
	}
	s.weight = min(mostWeight, s.weight+as)
	s.value += (float64(good)/float64(good+bad) - s.value) * min(1, as/s.weight)
}

// doubt lets later outcomes count for more.
func (s *share) doubt() { s.weight = max(leastWeight, s.weight/2) }
