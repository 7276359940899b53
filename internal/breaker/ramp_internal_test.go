package breaker

import (
	"math"
	"testing"
	"time"
)

// near reports whether two numbers are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// sure is a share of successes whose estimate is 0.99.
var sure = share{value: 1, weight: 98}

func TestLowestLevel(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		want float64
	}{
		{0, leastLevel},
		{time.Second / 3, leastLevel},
		{time.Second, 0.5}, // with the longest rest it runs half of the time
		{1500 * time.Millisecond, 0.6},
		{1600 * time.Millisecond, 1},
		{time.Hour, 1},
	} {
		if got := lowest(c.took); !near(got, c.want) {
			t.Errorf("attempts of %v: %v, want %v", c.took, got, c.want)
		}
	}
}

func TestRest(t *testing.T) {
	for _, c := range []struct {
		level      float64
		took, want time.Duration
	}{
		{1, time.Second, 0},
		{4, time.Second, 0},
		{0.5, 100 * time.Millisecond, 100 * time.Millisecond},
		{0.25, 100 * time.Millisecond, 300 * time.Millisecond},
		{0.25, time.Second, longestRest},
	} {
		r := ramp{level: c.level}
		if got := r.rest(c.took); got != c.want {
			t.Errorf("at level %v after %v: %v, want %v", c.level, c.took, got, c.want)
		}
	}
}

func TestStart(t *testing.T) {
	r := ramp{tooHigh: 0.1, growth: gentle, rising: true, round: 3, outcomes: 9, good: 7, evidence: 3}
	now := time.Unix(1000, 0)
	r.start(sure, time.Second, now)
	want := ramp{level: 0.5, tooHigh: 0.5, growth: gentlest, round: 4, began: now, outcomes: 1, good: 1, evidence: math.Log(0.5), usually: time.Second}
	if !near(r.evidence, want.evidence) {
		t.Errorf("the evidence is %v, want %v", r.evidence, want.evidence)
	}
	if r.evidence = want.evidence; r != want {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
	r = ramp{}
	if r.start(sure, 0, now); r.tooHigh != 0 {
		t.Errorf("nothing was too high, and now %v is", r.tooHigh)
	}
}

// TestEvidence: the usual share of successes is 0.99. An overloaded dependency is taken
// to have half of it or, from ten at once on, two thirds.
func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		level  float64
		failed bool
		good   int
		want   float64
	}{
		{9, false, 1, math.Log(1.0 / 2)},
		{9, true, 0, math.Log((1 - 0.495) / 0.01)},
		{10, false, 1, math.Log(2.0 / 3)},
		{10, true, 0, math.Log((1 - 0.66) / 0.01)},
	} {
		r := ramp{level: c.level, evidence: 7}
		r.count(sure, c.failed)
		if !near(r.evidence-7, c.want) || r.outcomes != 1 || r.good != c.good {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

func TestRaise(t *testing.T) {
	for name, c := range map[string]struct {
		from          ramp
		level, growth float64
		rising        bool
	}{
		"steeply where nothing is known":       {ramp{level: 1, growth: 1.1}, 1.8, 1.1, true},
		"steeply below what was too high":      {ramp{level: 2, tooHigh: 10, growth: 1.1, evidence: -1}, 3.6, 1.1, true},
		"no further than that":                 {ramp{level: 8, tooHigh: 10, growth: 1.1}, 10, 1.1, true},
		"but not for less than gently":         {ramp{level: 9.5, tooHigh: 10, growth: 1.1}, 10.45, 1.1, true},
		"gently from there on":                 {ramp{level: 10, tooHigh: 10, growth: 1.1}, 11, math.Pow(1.1, 1.5), true},
		"never more than by half":              {ramp{level: 10, tooHigh: 5, growth: 1.4}, 14, gentle, true},
		"by half below one":                    {ramp{level: 0.5, tooHigh: 0.25, growth: 1.1}, 0.75, 1.1, true},
		"gently at one":                        {ramp{level: 1, tooHigh: 0.5, growth: 1.1}, 1.1, math.Pow(1.1, 1.5), true},
		"against the evidence nothing rises":   {ramp{level: 0.25, growth: 1.1, evidence: 0.1, rising: true}, 0.45, 1.1, false},
		"with no evidence it is taken to rise": {ramp{level: 0.25, growth: 1.1}, 0.45, 1.1, true},
	} {
		r := c.from
		r.raise()
		if !near(r.level, c.level) || !near(r.growth, c.growth) || r.rising != c.rising {
			t.Errorf("%s: %+v, want level %v, growth %v", name, r, c.level, c.growth)
		}
	}
}

func TestLower(t *testing.T) {
	for name, c := range map[string]struct {
		good  int
		least float64
		want  float64
	}{
		"by the missing successes": {4, 1, 10 * 5 / (0.99*9 + 1)},
		"by a tenth at least":      {8, 1, 9},
		"by half at most":          {0, 1, 5},
		"not below the least":      {0, 6, 6},
	} {
		r := ramp{level: 10, growth: gentle, round: 2, outcomes: 9, good: c.good, evidence: 6}
		usual := sure
		now := time.Unix(1000, 0)
		r.lower(&usual, c.least, now)
		if !near(r.level, c.want) || r.tooHigh != r.level || usual.weight != 49 {
			t.Errorf("%s: %+v, %+v, want level %v", name, r, usual, c.want)
		}
		if r.level, r.tooHigh = 0, 0; r != (ramp{growth: gentlest, round: 3, began: now}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestLearn(t *testing.T) {
	for name, c := range map[string]struct {
		from  ramp
		borne bool
		want  share
	}{
		"of a level that is borne": {ramp{level: 5, outcomes: 10, good: 6}, true, share{1 - 0.4*10/60, 60}},
		"of one that may not be":   {ramp{level: 5, outcomes: 10, good: 6}, false, share{1 - 0.4*1/51, 51}},
		"of many that may not be":  {ramp{level: 5, outcomes: 100, good: 60}, false, share{1 - 0.4*4/54, 54}},
		"beyond what was too high": {ramp{level: 5, tooHigh: 4, outcomes: 10, good: 6}, true, share{1 - 0.4*1/51, 51}},
		"beyond it, as usual":      {ramp{level: 5, tooHigh: 4, outcomes: 10, good: 10}, true, share{1, 60}},
		"at it":                    {ramp{level: 4, tooHigh: 4, outcomes: 10, good: 6}, true, share{1 - 0.4*10/60, 60}},
		"of failures alone":        {ramp{level: 4, outcomes: 10}, true, share{1, 50}},
	} {
		usual := share{1, 50}
		c.from.learn(&usual, c.borne)
		if !near(usual.value, c.want.value) || !near(usual.weight, c.want.weight) {
			t.Errorf("%s: %+v, want %+v", name, usual, c.want)
		}
	}
}

func TestShare(t *testing.T) {
	s := share{1, 0}
	if s.add(0, 1, 0); s != (share{1, 0}) {
		t.Errorf("outcomes that count for nothing made it %+v", s)
	}
	if s.add(1, 1, 10); s != (share{0.5, 10}) {
		t.Errorf("it is %+v, want 0.5 of 10", s)
	}
	if s.add(1, 0, 200); s != (share{1, mostWeight}) {
		t.Errorf("it is %+v, want 1 of %d", s, mostWeight)
	}
	if s.doubt(); s.weight != mostWeight/2 {
		t.Errorf("in doubt it weighs %v", s.weight)
	}
	s.weight = 10
	if s.doubt(); s.weight != leastWeight {
		t.Errorf("in doubt it weighs %v", s.weight)
	}
	if got := (share{0.5, 8}).estimate(); !near(got, 0.5) {
		t.Errorf("the estimate is %v", got)
	}
	if got := (share{1, 8}).estimate(); !near(got, 0.9) {
		t.Errorf("the estimate is %v", got)
	}
}

// TestEndOfRound: what the end of an attempt makes of a round. A success is evidence of
// -0.69 (from ten at once on -0.41), a failure of 3.92.
func TestEndOfRound(t *testing.T) {
	const same = -1
	for name, c := range map[string]struct {
		from     ramp
		failed   bool
		took     time.Duration
		after    time.Duration // since the round began
		level    float64       // afterwards; same: as before, in the same round
		rising   bool
		outcomes int
	}{
		"too high":                                  {ramp{level: 4, outcomes: 9, good: 4, evidence: 1.1, rising: true}, true, 0, 0, 4 * 0.5, false, 0},
		"nearly too high":                           {ramp{level: 4, outcomes: 9, good: 4, evidence: 1.0, rising: true}, true, 0, 0, same, true, 10},
		"too high, and it is the lowest":            {ramp{level: 0.25, outcomes: 9, evidence: 6, rising: true}, true, 0, 0, same, false, 10},
		"the lowest is left after sixteen":          {ramp{level: 0.25, outcomes: 15, good: 1, evidence: 6}, true, 0, time.Second, 0.45, false, 0},
		"not after fifteen":                         {ramp{level: 0.25, outcomes: 14, good: 1, evidence: 6}, true, 0, time.Second, same, false, 15},
		"not without a success":                     {ramp{level: 0.25, outcomes: 15, evidence: 6}, true, 0, time.Second, same, false, 16},
		"not above the lowest":                      {ramp{level: 0.26, outcomes: 15, good: 1}, true, 0, time.Second, same, false, 16},
		"borne":                                     {ramp{level: 4, outcomes: 9, good: 9, evidence: -1.8}, false, 0, shortRound, 7.2, true, 0},
		"borne, too early to say":                   {ramp{level: 4, outcomes: 9, good: 9, evidence: -1.8}, false, 0, shortRound - 1, same, false, 10},
		"not borne for sure":                        {ramp{level: 4, outcomes: 9, good: 9, evidence: -1.6}, false, 0, shortRound, same, false, 10},
		"as many as the level":                      {ramp{level: 10, outcomes: 9, good: 9, evidence: -9}, false, 0, shortRound, 18, true, 0},
		"fewer than the level":                      {ramp{level: 10.5, outcomes: 9, good: 9, evidence: -9}, false, 0, shortRound, same, false, 10},
		"less is enough below what was too high":    {ramp{level: 4, tooHigh: 20, outcomes: 9, good: 9, evidence: -0.8}, false, 0, shortRound, 7.2, true, 0},
		"not less than that":                        {ramp{level: 4, tooHigh: 20, outcomes: 9, good: 9, evidence: -0.6}, false, 0, shortRound, same, false, 10},
		"at what was too high it takes longer":      {ramp{level: 4, tooHigh: 4, growth: 1.1, outcomes: 9, good: 9, evidence: -9}, false, 0, longRound - 1, same, false, 10},
		"and then goes on gently":                   {ramp{level: 4, tooHigh: 4, growth: 1.1, outcomes: 9, good: 9, evidence: -9}, false, 0, longRound, 4.4, true, 0},
		"little is enough in a quiet queue":         {ramp{level: 10.5, outcomes: 2, good: 2, evidence: -0.2}, false, 0, idleRound, 18.9, true, 0},
		"not before it is quiet":                    {ramp{level: 4, outcomes: 4, good: 4, evidence: -0.2}, false, 0, idleRound - 1, same, false, 5},
		"too little":                                {ramp{level: 10.5, outcomes: 2, good: 2}, false, 0, idleRound, same, false, 3},
		"a long round ends with a weak conclusion":  {ramp{level: 4, outcomes: 39, good: 39, evidence: -0.2}, false, 0, time.Second, 7.2, true, 0},
		"a round that is not quite long does not":   {ramp{level: 4, outcomes: 38, good: 38, evidence: -0.2}, false, 0, time.Second, same, false, 39},
		"or without one, in another round":          {ramp{level: 4, outcomes: 39, good: 39, evidence: 1}, false, 0, time.Second, 4, false, 0},
		"from ten at once on the evidence is kept":  {ramp{level: 10, outcomes: 39, good: 39, evidence: -0.2}, false, 0, time.Second, same, false, 0},
		"and what is long grows with the level":     {ramp{level: 20, outcomes: 78, good: 78, evidence: -0.2}, false, 0, time.Second, same, false, 79},
		"until it is four times the level":          {ramp{level: 20, outcomes: 79, good: 79, evidence: -0.2}, false, 0, time.Second, same, false, 0},
		"slow handlers begin at one and stay there": {ramp{level: 1, outcomes: 9, evidence: 3}, true, time.Minute, time.Second, same, false, 10},
		"a higher level needs more evidence":        {ramp{level: 20, outcomes: 30, good: 30, evidence: -3.5}, false, 0, time.Second, same, false, 31},
		"and is raised with it":                     {ramp{level: 20, outcomes: 30, good: 30, evidence: -3.6}, false, 0, time.Second, 36, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, usual := c.from, sure
			r.began = time.Unix(1000, 0)
			now := r.began.Add(c.after)
			r.ended(&usual, c.failed, c.took, now)
			level, round, began := c.level, 1, now
			if level == same {
				level, round, began = c.from.level, 0, time.Unix(1000, 0)
			}
			if !near(r.level, level) || r.round != round || !r.began.Equal(began) || r.rising != c.rising || r.outcomes != c.outcomes {
				t.Errorf("got %+v, want level %v, round %d, rising %t, %d outcomes", r, level, round, c.rising, c.outcomes)
			}
		})
	}
}

// TestRoundsTeach: a round without a conclusion teaches the usual share: wholly where the
// level has been borne before, hardly where it may be the level's doing.
func TestRoundsTeach(t *testing.T) {
	for name, c := range map[string]struct {
		tooHigh float64
		weight  float64
	}{
		"where nothing is known":  {0, 50 + mostDoubtful},
		"below what was too high": {5, 50 + 40},
		"at what was too high":    {4, 50 + 40},
		"above what was too high": {3, 50 + mostDoubtful},
	} {
		r := ramp{level: 4, tooHigh: c.tooHigh, outcomes: 39, good: 30, evidence: 1.5}
		usual := share{1, 50}
		r.ended(&usual, false, 0, time.Time{}.Add(time.Second))
		if usual.weight != c.weight || usual.value == 1 || r.round != 1 {
			t.Errorf("%s: %+v, %+v, want a weight of %v", name, usual, r, c.weight)
		}
	}
}

func TestIdleRises(t *testing.T) {
	b := New(3)
	b.Open(time.Unix(0, 0), 0)
	b.Probe()
	b.Answered(0, time.Unix(1, 0))
	b.ramp.level = 4
	round := b.Round()
	b.Idle(8, time.Unix(2, 0))
	if b.State() != Ramping || !near(b.ramp.level, 7.2) || b.Round() != round+1 {
		t.Errorf("%v, %+v", b.State(), b.ramp)
	}
	b.ramp.level = 10
	if b.Idle(18, time.Unix(3, 0)); b.State() != Closed {
		t.Errorf("at the full level it is %v", b.State())
	}
}
