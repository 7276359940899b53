package breaker

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// A simulation holds consumers that all use a Breaker against one dependency, in
// virtual time and without goroutines: only what the recovery from an outage
// depends on. Messages that failed while a breaker was closed or ramping wait out
// a backoff; those that failed while it was open or half-open are held, and those
// of a consumer whose breaker begins to ramp are woken.
type simulation struct {
	scenario
	random *rand.Rand
	now    time.Time
	queue  events
	order  int // of events at one instant

	consumers []*consumer
	all       []*work
	ready     []*work
	left      int
	calls     int // under way
	deadUntil time.Time
	coldSince time.Time // when the dependency came back last
	deaths    int

	result
}

// scenario is what is simulated.
type scenario struct {
	messages, consumers, concurrency int
	takes                            time.Duration // an attempt
	errors                           float64       // the share of attempts that fail without an outage
	healthy, outage                  time.Duration // before the outage, and the outage
	backoff                          time.Duration // the longest; the first is a second
	// capacity is how many attempts at once the dependency bears, so long after
	// it came back: more take longer and fail, three times as many bring it down
	// for five seconds. nil: any number.
	capacity func(back time.Duration) float64
	// oracle uses no breaker: consumers know when the outage ends and what is borne.
	oracle bool
}

type result struct {
	done                      time.Duration // from the end of the outage to the last message
	late                      time.Duration // the same without the message's own backoff since
	firstMinute, firstHour    int           // attempts of the outage's
	overload                  float64       // most attempts at once, as a multiple of what is borne
	attempts, collapses, left int
}

type work struct {
	id, attempts int
	waits        bool
	since        time.Time     // when it began to wait
	waited       time.Duration // since the outage
	change       int           // counts, so that an old wake-up does nothing
	owner        *consumer
}

type consumer struct {
	Breaker
	active    int
	held      []*work
	canary    bool
	restUntil time.Time
	change    int
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simulate runs a scenario until nothing is left, for six hours after the outage at
// most.
func simulate(s scenario, seed uint64) result {
	sim := &simulation{scenario: s, random: rand.New(rand.NewPCG(seed, 1)), now: epoch, left: s.messages}
	sim.coldSince = sim.back()
	for range s.consumers {
		sim.consumers = append(sim.consumers, &consumer{Breaker: New(20)})
	}
	for i := range s.messages {
		sim.all = append(sim.all, &work{id: i})
	}
	sim.ready = append(sim.ready, sim.all...)
	sim.after(0, sim.start)
	if s.oracle {
		sim.ask()
	}
	for end := sim.back().Add(6 * time.Hour); sim.left > 0 && len(sim.queue) > 0 && sim.now.Before(end); {
		e := heap.Pop(&sim.queue).(event)
		sim.now = e.at
		e.do()
	}
	sim.done, sim.result.left = sim.now.Sub(sim.back()), sim.left
	return sim.result
}

func (s *simulation) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.queue, event{s.now.Add(d), s.order, do})
}

// back is when the outage ends.
func (s *simulation) back() time.Time { return epoch.Add(s.healthy + s.outage) }

func (s *simulation) down() bool {
	return !s.now.Before(epoch.Add(s.healthy)) && s.now.Before(s.back()) || s.now.Before(s.deadUntil)
}

// borne is how many attempts at once the dependency bears.
func (s *simulation) borne() float64 {
	if s.capacity == nil || s.now.Before(s.back()) || s.now.Before(s.deadUntil) {
		return math.Inf(1)
	}
	return s.capacity(s.now.Sub(s.coldSince))
}

// ask lets the oracle start what is borne by now.
func (s *simulation) ask() {
	s.start()
	s.after(100*time.Millisecond, s.ask)
}

// start starts what every consumer may.
func (s *simulation) start() {
	for _, c := range s.consumers {
		for s.mayStart(c) {
			w := s.take(c)
			if w == nil {
				break
			}
			c.canary = c.State() == HalfOpen
			s.attempt(c, w, c.Round())
		}
	}
}

func (s *simulation) mayStart(c *consumer) bool {
	if c.active >= s.concurrency {
		return false
	}
	if s.oracle {
		return !s.now.Before(s.back()) && float64(s.calls+1) <= s.borne()
	}
	switch c.State() {
	case Open:
		return false
	case HalfOpen:
		return !c.canary
	case Ramping:
		return c.active < c.Level() && !s.now.Before(c.restUntil)
	}
	return true
}

// take takes a held message as a canary, otherwise one that is ready.
func (s *simulation) take(c *consumer) (w *work) {
	lists := []*[]*work{&s.ready, &c.held}
	if c.State() == HalfOpen {
		lists[0], lists[1] = lists[1], lists[0]
	}
	for _, list := range lists {
		if len(*list) > 0 {
			w, *list = (*list)[0], (*list)[1:]
			return w
		}
	}
	return nil
}

// attempt runs w.
func (s *simulation) attempt(c *consumer, w *work, round int) {
	s.attempts++
	if down := s.now.Sub(epoch.Add(s.healthy)); down >= 0 && down < s.outage {
		if down < time.Minute {
			s.firstMinute++
		}
		if down < time.Hour {
			s.firstHour++
		}
	}
	s.calls++
	c.active++
	failed, stretch := s.down() || s.random.Float64() < s.errors, 1.0
	if borne := s.borne(); !s.down() && !math.IsInf(borne, 1) {
		load := float64(s.calls) / borne
		s.overload = max(s.overload, load)
		if load > 1 {
			stretch = load
			failed = failed || s.random.Float64() > 1/load
		}
		if load > 3 {
			s.collapses++
			s.deadUntil = s.now.Add(5 * time.Second)
			s.coldSince = s.deadUntil
			s.deaths++
			failed = true
		}
	}
	deaths := s.deaths
	took := time.Duration(float64(s.takes) * stretch * (0.9 + 0.2*s.random.Float64()))
	s.after(took, func() {
		s.calls--
		c.active--
		s.ended(c, w, round, failed || deaths != s.deaths || s.down(), took)
		s.start()
	})
}

// ended takes in the end of an attempt.
func (s *simulation) ended(c *consumer, w *work, round int, failed bool, took time.Duration) {
	blind := func() bool {
		return c.State() == Open || c.State() == HalfOpen || c.State() == Ramping && !c.Rising()
	}
	before := blind()
	if !s.oracle {
		s.judge(c, w, round, failed, took)
	}
	switch {
	case !failed:
		s.left--
		s.late = max(s.late, s.now.Sub(s.back())-w.waited)
	case before || blind():
		c.held = append(c.held, w)
	default:
		s.park(c, w)
	}
}

// judge tells the breaker of an attempt's end, and does what follows.
func (s *simulation) judge(c *consumer, w *work, round int, failed bool, took time.Duration) {
	before := c.State()
	name := string(rune(w.id))
	switch {
	case before == Closed:
		switch c.Attempted(name, failed, s.now) {
		case Open:
			c.Open(s.now, s.random.Float64())
		case Ramping:
			c.Relapse(took, s.concurrency, s.now)
		}
	case before == HalfOpen && c.canary && !failed:
		c.Answered(took, s.now)
	case before == HalfOpen && c.canary:
		c.Open(s.now, s.random.Float64())
	case before == Ramping:
		c.Ended(round, name, failed, took, s.concurrency, s.now, s.random.Float64())
	}
	if c.State() == Open && before != Open {
		c.change++
		change := c.change
		s.after(c.NextProbe().Sub(s.now), func() {
			if c.change == change && c.State() == Open {
				c.Probe()
				c.canary = false
				s.start()
			}
		})
	}
	if c.State() == Ramping {
		if rest := c.Rest(took); rest > 0 {
			c.restUntil = s.now.Add(rest)
			s.after(rest, s.start)
		}
	}
	if c.State() != before && (c.State() == Ramping || c.State() == Closed) {
		s.wake(c)
	}
}

// park lets w wait out its backoff.
func (s *simulation) park(c *consumer, w *work) {
	w.attempts++
	most := min(s.backoff, time.Second<<min(w.attempts-1, 20))
	w.waits, w.owner, w.since = true, c, s.now
	w.change++
	change := w.change
	s.after(time.Duration(float64(most)*s.random.Float64()), func() {
		if w.change == change {
			s.come(w)
			s.start()
		}
	})
}

// wake cuts the waits of c's messages short.
func (s *simulation) wake(c *consumer) {
	for _, w := range s.all {
		if w.waits && w.owner == c {
			w.change++
			s.come(w)
		}
	}
}

// come ends w's wait.
func (s *simulation) come(w *work) {
	w.waits = false
	if s.back().After(w.since) {
		w.since = s.back()
	}
	w.waited += max(0, s.now.Sub(w.since))
	s.ready = append(s.ready, w)
}
