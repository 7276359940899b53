package consumer

import "math"

// losses measures how often a receive comes to nothing although no process has died: its reply
// was lost, or the message was taken from us before it was settled. The other processes of the
// queue meet the same network, and we do not see theirs: so what is rare here is no coincidence
// there, and what is frequent here proves nothing.
type losses struct {
	replies rate // of receives: the reply was lost
	leases  rate // of messages: the lease was lost
}

// rate is how often something happens: a moving average.
type rate struct {
	share   float64
	chances int
}

const (
	// rateWindow is over how many chances a rate is taken. The first ones count as if there had
	// been an eighth of it.
	rateWindow = 64
	// mostLost: a share above it says that nothing works. Receives must be a sign of deaths again
	// some time.
	mostLost = 0.4
	// coincidence is the probability below which receives without an outcome are no coincidence:
	// of the millions of messages of a day, few innocent ones may be taken for ones that kill.
	coincidence = 1e-6
)

func (r *rate) count(happened bool) {
	r.chances = min(r.chances+1, rateWindow)
	share := 0.0
	if happened {
		share = 1
	}
	r.share += (share - r.share) / float64(max(r.chances, rateWindow/8))
}

// share returns which share of receives comes to nothing, as far as it has been measured here, or
// where d was marked: this process may have started since then. A forged share only delays the end of
// a message that kills.
func (l *losses) share(d *Delivery) float64 {
	return min(max(l.replies.share+l.leases.share, d.carriedLosses()), mostLost)
}

// coincidental reports whether so many receives without an outcome may be a coincidence, among all
// receives of the message that could have been lost, if the share p of them is lost. The bound is
// C(all, without) · p^without, at least the tail of the binomial distribution.
func coincidental(p float64, without, all int) bool {
	if p == 0 {
		return false
	}
	return logChoose(all, without)+float64(without)*math.Log(p) > math.Log(coincidence)
}

// logChoose returns the logarithm of the number of ways to choose k of n.
func logChoose(n, k int) float64 {
	logFactorial := func(n int) float64 {
		log, _ := math.Lgamma(float64(n) + 1)
		return log
	}
	n = max(n, k)
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

// RepliesLost takes in that the replies to n receives were lost, and that the receive was then
// repeated.
func (c *Machine) RepliesLost(n int) {
	for range n {
		c.losses.replies.count(true)
	}
}
