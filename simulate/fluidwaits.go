package simulate

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// law is what a policy does after attempt n has failed: the share of messages that go on, and how
// long these wait, as a mixture of even distributions.
type law struct {
	goes  float64
	waits []spreadWait
}

// spreadWait is waits from least to most seconds, for a share of the messages.
type spreadWait struct{ least, most, share float64 }

const (
	// lawSamples is of how many messages waits are drawn where the policy's bounds do not say how
	// they are distributed, and lawParts into how many parts of equal share they are divided.
	lawSamples = 2048
	lawParts   = 32
	// rounding is by how much the whole seconds of SQS lengthen a wait on average.
	rounding = 0.5
)

func (l *law) longest() float64 {
	most := 0.0
	for _, w := range l.waits {
		most = max(most, w.most)
	}
	return most
}

// lawsOf returns the laws of a scenario's policy, by the number of attempts before. The last one stands for
// all that follow, if the policy goes on after it.
func lawsOf(s *Scenario) []law {
	p := s.Policy
	levels := p.MaxAttempts
	if levels < 0 || levels > mostAttempts {
		levels = mostAttempts
	}
	sampled := sync.OnceValue(func() *samples { return sampleOf(p, levels, s.Seed) })
	laws := make([]law, 0, levels)
	longest := 0.0
	for n := 1; n <= levels; n++ {
		lo, hi := p.Bounds(n)
		longest += hi.Seconds() + 2*s.Handler.Takes.Mean().Seconds()
		young := p.MaxAge < 0 || longest < (p.MaxAge-p.MaxAge/10).Seconds()
		l := law{goes: 1}
		switch {
		case n == p.MaxAttempts:
			l.goes = 0
		case young && p.Jitter != retry.Decorrelated:
			l.waits = []spreadWait{{lo.Seconds(), hi.Seconds(), 1}}
		default:
			l = sampled().law(n, young)
		}
		for k := range l.waits {
			w := &l.waits[k]
			if w.most > w.least {
				w.least, w.most = w.least+rounding, w.most+rounding
			} else {
				w.least, w.most = math.Ceil(w.least), math.Ceil(w.most)
			}
		}
		laws = append(laws, l)
		next, _ := p.Bounds(n + 1)
		_, far := p.Bounds(n + chain)
		same := p.MaxAge < 0 && p.MaxAttempts < 0 && lo == next && hi == far && n > chain && n >= s.Handler.longestFails()
		if l.goes == 0 || same {
			break
		}
	}
	return laws
}

// samples are waits of messages of which every attempt fails.
type samples struct {
	waits [][]time.Duration // by attempt
	alive []int             // messages that reach it
}

func sampleOf(p retry.Policy, levels int, seed uint64) *samples {
	s := &samples{make([][]time.Duration, levels), make([]int, levels+1)}
	for i := range lawSamples {
		id, at := idOf(seed, i).String(), epoch
		for n := 1; n <= levels; n++ {
			s.alive[n-1]++
			d := p.Decide(retry.Failure{N: n, Seed: id, Sent: epoch, First: epoch, Ended: at, Err: errFailed})
			if d.Action != retry.ActionRetry {
				break
			}
			s.waits[n-1] = append(s.waits[n-1], d.At.Sub(at))
			at = d.At
		}
	}
	for n := range s.waits {
		slices.Sort(s.waits[n])
	}
	return s
}

// law is that of attempt n; of a young message the policy's age does not count.
func (s *samples) law(n int, young bool) law {
	waits := s.waits[n-1]
	if len(waits) == 0 {
		return law{}
	}
	l := law{goes: float64(len(waits)) / float64(s.alive[n-1])}
	if young {
		l.goes = 1
	}
	parts := min(lawParts, len(waits))
	for k := range parts {
		from, to := k*len(waits)/parts, (k+1)*len(waits)/parts
		l.waits = append(l.waits, spreadWait{waits[from].Seconds(), waits[to-1].Seconds(), float64(to-from) / float64(len(waits))})
	}
	return l
}

// within returns the mean of times that a timeout ends, in seconds, and the share that it ends. Zero:
// there is no timeout.
func (t Times) within(timeout time.Duration) (mean, cut float64) {
	if timeout == 0 {
		return t.Mean().Seconds(), 0
	}
	const parts = 4096
	for k := range uint64(parts) {
		d := t.draw((2*k + 1) << 51) // the middles of equal parts of what can be drawn
		if d > timeout {
			d = timeout
			cut += 1.0 / parts
		}
		mean += d.Seconds() / parts
	}
	return mean, cut
}

// trafficEnd is when the last message is sent.
func (s *Scenario) trafficEnd() time.Duration {
	t := &s.Traffic
	end := time.Duration(len(t.Series)) * t.Every
	if t.Rate > 0 {
		end = max(end, t.until(s.Horizon))
	}
	for _, b := range t.Bursts {
		end = max(end, b.At+b.Over)
	}
	return end
}

// expected returns how many messages are expected to arrive in each step of so many seconds.
func (s *Scenario) expected(step float64) []float64 {
	t := &s.Traffic
	all := make([]float64, int(s.trafficEnd().Seconds()/step)+1)
	all[0] = float64(t.Backlog)
	add := func(from, to, n float64) { // n messages, evenly
		if to <= from {
			all[min(int(from/step), len(all)-1)] += n
			return
		}
		for k := int(from / step); k < len(all); k++ {
			lo, hi := max(from, float64(k)*step), min(to, float64(k+1)*step)
			if hi <= lo {
				break
			}
			all[k] += n * (hi - lo) / (to - from)
		}
	}
	if t.Rate > 0 {
		until := t.until(s.Horizon).Seconds()
		add(0, until, t.Rate*until)
	}
	for _, b := range t.Bursts {
		add(b.At.Seconds(), (b.At + b.Over).Seconds(), float64(b.Messages))
	}
	for i, n := range t.Series {
		add(float64(i)*t.Every.Seconds(), float64(i+1)*t.Every.Seconds(), float64(n))
	}
	return all
}
