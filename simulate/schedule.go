package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Alone is a policy without a queue: messages are first attempted together, and each attempt comes
// when the policy says.
type Alone struct {
	Policy retry.Policy
	// Messages is how many seeds are drawn, up to MaxMessages. Default: 10,000.
	Messages int
	// Fails is the chance that an attempt fails. Default: 1, so that the whole schedule is seen.
	Fails float64
	// Takes is how long an attempt takes. Default: nothing.
	Takes time.Duration
	// Seed selects the messages.
	Seed uint64
	// Progress is called before each attempt is drawn, with its number and how many messages reach
	// it. Default: nothing is called.
	Progress func(attempt, messages int)
}

// Schedule is when the attempts of many messages come, counted from the first attempt.
type Schedule struct {
	// Attempts has the attempts that some message reaches, at most [MaxListed].
	Attempts []Spread
	// Ends is when the last attempt of a message comes.
	Ends Quantiles
	// Load has how many retries, of all messages, begin in each minute of the first day.
	Load []int
	// Succeeded and GivenUp are how many messages ended so. The others would go on after the list.
	Succeeded, GivenUp int
}

// MaxListed is how many attempts a [Schedule] has at the most.
const MaxListed = 1000

// Spread is when one attempt comes.
type Spread struct {
	N int // its number, 1 for the first
	// Reached is how many messages reach it.
	Reached              int
	Least, P10, Median   time.Duration
	Mean, P90, P99, Most time.Duration
}

// day is how much [Schedule.Load] covers.
const day = 24 * time.Hour

// NewSchedule draws the attempts of messages. It calls [retry.Policy.Decide] for each, so that the
// schedule cannot differ from a consumer's; SQS rounds waits up to whole seconds. If ctx ends, it
// returns the attempts drawn so far, with the context's cause.
func NewSchedule(ctx context.Context, a Alone) (*Schedule, error) {
	fill(&a.Messages, 10_000)
	fill(&a.Fails, 1)
	var problems checks
	problems.count("the number of messages", a.Messages, 1, MaxMessages)
	problems.share("the share of attempts that fail", a.Fails)
	problems.between("the time of an attempt", a.Takes, 0, maxTakes)
	if err := errors.Join(append(problems, a.Policy.Validate())...); err != nil {
		return nil, fmt.Errorf("the schedule is invalid:\n%w", err)
	}
	return a.schedule(ctx)
}

// schedule draws the schedule, on all processors: each message has draws of its own, and no figure depends
// on their order.
func (a *Alone) schedule(ctx context.Context) (s *Schedule, err error) {
	portions := a.portions(runtime.GOMAXPROCS(0))
	s = &Schedule{Load: make([]int, day/time.Minute)}
	var spreads sync.WaitGroup
	var times, before []time.Duration // of this attempt; of the one before, whose spread may still be found
	for n := 1; n <= MaxListed; n++ {
		reached := 0
		for _, p := range portions {
			reached += len(p.alive)
		}
		if reached == 0 {
			break
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		if a.Progress != nil {
			a.Progress(n, reached)
		}
		times, before = before, times
		times = slices.Grow(times[:0], reached)[:reached]
		var drawn sync.WaitGroup
		rest := times
		for _, p := range portions {
			mine := rest[:len(p.alive)]
			rest = rest[len(p.alive):]
			drawn.Go(func() { p.attempt(a, n, mine) })
		}
		drawn.Wait()
		spreads.Wait()
		s.Attempts = append(s.Attempts, Spread{})
		spread, sorted := &s.Attempts[n-1], times
		spreads.Go(func() { *spread = spreadOf(n, sorted) })
	}
	spreads.Wait()
	ends := times[:0]
	for _, p := range portions {
		ends = append(ends, p.ends...)
		s.Succeeded += p.succeeded
		s.GivenUp += p.givenUp
		for minute, retries := range p.load {
			s.Load[minute] += retries
		}
	}
	s.Ends = quantilesOf(ends)
	return s, err
}

// portion is some of the messages of a schedule.
type portion struct {
	first int
	ids   string
	at    []time.Duration // of the attempt, by message
	alive []uint32        // the messages that reach it
	ends  []time.Duration
	load  []int

	succeeded, givenUp int
}

// portions returns the messages in n portions.
func (a *Alone) portions(n int) []*portion {
	all := make([]*portion, 0, n)
	for i := range n {
		from, to := i*a.Messages/n, (i+1)*a.Messages/n
		p := &portion{first: from, at: make([]time.Duration, to-from), alive: make([]uint32, to-from), ends: make([]time.Duration, 0, to-from), load: make([]int, day/time.Minute)}
		for j := range p.alive {
			p.alive[j] = uint32(j) //nolint:gosec // G115: at most MaxMessages
		}
		all = append(all, p)
	}
	return all
}

// attempt draws attempt n of the messages that reach it; times gets when it comes.
func (p *portion) attempt(a *Alone, n int, times []time.Duration) {
	if n == 1 {
		p.ids = idsOf(p.first, len(p.alive), a.Seed)
	}
	next := p.alive[:0]
	for k, i := range p.alive {
		at := p.at[i]
		times[k] = at
		if n > 1 && at < day {
			p.load[at/time.Minute]++
		}
		if a.Fails < 1 && unit(draw(a.Seed, forFailure, uint64(p.first)+uint64(i), uint64(n))) >= a.Fails { //nolint:gosec // G115: not negative
			p.succeeded++
			p.ends = append(p.ends, at)
			continue
		}
		d := a.Policy.Decide(retry.Failure{N: n, Seed: p.ids[i*idLength:][:idLength], Sent: epoch, First: epoch, Ended: epoch.Add(at + a.Takes)})
		if d.Action == retry.ActionDeadLetter {
			p.givenUp++
			p.ends = append(p.ends, at)
			continue
		}
		p.at[i] = d.At.Sub(epoch)
		next = append(next, i)
	}
	p.alive = next
}

func spreadOf(n int, times []time.Duration) Spread {
	q := quantilesOf(times)
	return Spread{
		N: n, Reached: q.Count, Least: q.Least, P10: times[len(times)/10], Median: q.P50, Mean: q.Mean, P90: q.P90, P99: q.P99, Most: q.Most,
	}
}

// idLength is the length of a message's id, in one string of all.
const idLength = 36

// idsOf returns the ids of n messages, one after the other. They are those of a simulation.
func idsOf(first, n int, seed uint64) string {
	text := make([]byte, 0, n*idLength)
	for i := range n {
		text = append(text, idOf(seed, first+i).String()...)
	}
	return string(text)
}

// Forms are the closed forms of a policy, where they exist: of messages of which each attempt fails
// with the same chance, independently of the others.
type Forms struct {
	// Attempts is the mean number of attempts, DeadLettered the share of messages that are given up.
	Attempts, DeadLettered float64
	// Wait is the mean sum of the waits of a message whose every attempt fails, Deviation its
	// standard deviation. HasWait reports whether they are known, HasDeviation whether that is: not
	// if the policy never gives up, if MaxAge can cut waits short, or under the maximum of
	// decorrelated jitter.
	Wait, Deviation       time.Duration
	HasWait, HasDeviation bool
}

// NewForms returns the closed forms of p for attempts that fail with chance fails, from 0 to 1. Its
// rules do not count.
func NewForms(p retry.Policy, fails float64) Forms {
	p = p.WithDefaults()
	if p.MaxAttempts < 0 {
		return Forms{Attempts: 1 / (1 - fails)}
	}
	m := float64(p.MaxAttempts)
	f := Forms{Attempts: m, DeadLettered: math.Pow(fails, m), HasWait: true, HasDeviation: true}
	if fails < 1 {
		f.Attempts = (1 - f.DeadLettered) / (1 - fails)
	}
	mean, variance, most, growth := 0.0, 0.0, 0.0, 1.0
	before := 0.0
	for n := 1; n < p.MaxAttempts; n++ {
		lo, hi := p.Bounds(n)
		least, longest := lo.Seconds(), hi.Seconds()
		most += longest
		if p.Jitter != retry.Decorrelated {
			mean += (least + longest) / 2
			variance += (longest - least) * (longest - least) / 12
			continue
		}
		growth *= 1.5
		mean += least * (2*growth - 1)
		f.HasDeviation = false
		// Up to here no draw meets the maximum: each longest wait is three times the one before.
		f.HasWait = f.HasWait && n <= chain && math.Abs(longest-3*max(before, least)) < 1e-6*longest
		before = longest
	}
	if p.MaxAge > 0 && most > (p.MaxAge-p.MaxAge/10).Seconds() {
		f.HasWait = false
	}
	if f.HasDeviation = f.HasWait && f.HasDeviation; f.HasDeviation {
		f.Deviation = seconds(math.Sqrt(variance))
	}
	if f.HasWait {
		f.Wait = seconds(mean)
	}
	return f
}

// chain is the number of waits after which decorrelated jitter no longer depends on the first one.
const chain = 32

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// Herd returns the minute of the first day, after the first, in which the most retries begin, and how
// many.
func (s *Schedule) Herd() (minute, retries int) {
	if len(s.Load) < 2 {
		return 0, 0
	}
	retries = slices.Max(s.Load[1:])
	return slices.Index(s.Load[1:], retries) + 1, retries
}
