package simreport

import (
	"math"
	"slices"
)

// counts are attempts of a period, and how many of them were not done in it. A run can begin in one
// period and be done in the next: the rest of one alone can be negative.
type counts struct {
	period         int
	attempts, rest int
}

// segment is consecutive counts in which one share of the attempts fails.
type segment struct {
	period int // the first one
	share  float64
}

const (
	// mostCounts bounds the time that the search takes, which grows with the square: more periods
	// are joined.
	mostCounts = 3000
	// leastCounts is how many counts a segment has at the least, so that no single noisy period is one.
	leastCounts = 3
	// manyCounts is from how many counts on the dispersion of segments is known. Fewer have the
	// penalty of so many, because they tell little.
	manyCounts = 60
	// leastShare is the share below which and from all of which no changes are looked for: runs that
	// are done in the next period would look like some.
	leastShare = 0.005
	// mostSegments is how many segments are an explanation: a share that drifts all the time, in
	// periods with many attempts, would have one for each few of them.
	mostSegments = 20
)

// segments divides counts into the segments that explain them best. It minimizes -2 log likelihood of
// binomial counts plus a penalty for each change, exactly, by optimal partitioning (Jackson et al.,
// "An algorithm for optimal partitioning of data on an interval", IEEE Signal Processing Letters 12,
// 2005). The penalty is that of the modified BIC, 3 log n (Zhang and Siegmund, Biometrics 63, 2007),
// times the dispersion of the shortest segments: real counts vary more than binomial ones do.
func segments(all []counts) []segment {
	all = joinCounts(all, mostCounts)
	if len(all) == 0 {
		return nil
	}
	shortest := all
	if len(all) >= manyCounts {
		shortest = joinCounts(all, len(all)/leastCounts)
	}
	for penalty := 3 * dispersion(shortest) * math.Log(float64(max(len(all), manyCounts))); ; penalty *= 2 {
		if found := partition(all, penalty); len(found) <= mostSegments {
			return found
		}
	}
}

// partition minimizes the costs of the segments and the penalty for each.
func partition(all []counts, penalty float64) []segment {
	sums := make([]counts, len(all)+1) // of those before
	for i, c := range all {
		sums[i+1] = counts{attempts: sums[i].attempts + c.attempts, rest: sums[i].rest + c.rest}
	}
	between := func(from, to int) counts {
		return counts{attempts: sums[to].attempts - sums[from].attempts, rest: sums[to].rest - sums[from].rest}
	}
	best, last := make([]float64, len(all)+1), make([]int, len(all)+1) // of the first counts: their cost, and where their last segment starts
	for to := 1; to <= len(all); to++ {
		best[to] = between(0, to).cost()
		for from := leastCounts; from <= to-leastCounts; from++ {
			if cost := best[from] + penalty + between(from, to).cost(); cost < best[to] {
				best[to], last[to] = cost, from
			}
		}
	}
	var found []segment
	for to := len(all); to > 0; to = last[to] {
		found = append(found, segment{all[last[to]].period, between(last[to], to).share()})
	}
	slices.Reverse(found)
	return found
}

// share returns the share of the attempts that fails.
func (c counts) share() float64 {
	return max(0, min(1, float64(c.rest)/float64(max(c.attempts, 1))))
}

// likely returns the share that is expected of such counts.
func (c counts) likely() float64 { return max(leastShare, min(1-leastShare, c.share())) }

// cost returns -2 log of the likelihood of the counts, if they are binomial with their own share.
func (c counts) cost() float64 {
	p, n := c.likely(), float64(c.attempts)
	failed := n * c.share()
	return -2 * (failed*math.Log(p) + (n-failed)*math.Log1p(-p))
}

// dispersion estimates by which factor the variance of counts is that of binomial ones, and returns 1
// at the least. It compares each count with the next, and leaves out the tenth that differs most, so
// that changes do not matter. The share that both are expected to have is that of their neighbours.
func dispersion(all []counts) float64 {
	const (
		neighbours = 10     // on each side
		meanOfRest = 0.6231 // of the square of a standard normal variable, without the largest tenth
	)
	var squares []float64
	for i := range len(all) - 1 {
		var around counts
		for _, c := range all[max(0, i-neighbours):min(len(all), i+2+neighbours)] {
			around.attempts += c.attempts
			around.rest += c.rest
		}
		a, b, p := all[i], all[i+1], around.likely()
		n, m := float64(a.attempts), float64(b.attempts)
		off := float64(a.rest)/n - float64(b.rest)/m
		squares = append(squares, off*off/(p*(1-p)*(1/n+1/m)))
	}
	slices.Sort(squares)
	squares = squares[:len(squares)*9/10]
	if len(squares) == 0 {
		return 1
	}
	sum := 0.0
	for _, x := range squares {
		sum += x
	}
	return max(1, sum/float64(len(squares))/meanOfRest)
}

// joinCounts joins as many neighbours each as make at most so many counts.
func joinCounts(all []counts, most int) []counts {
	each := (len(all) + max(most, 1) - 1) / max(most, 1)
	if each <= 1 {
		return all
	}
	var joined []counts
	for group := range slices.Chunk(all, each) {
		sum := counts{period: group[0].period}
		for _, c := range group {
			sum.attempts += c.attempts
			sum.rest += c.rest
		}
		joined = append(joined, sum)
	}
	return joined
}
