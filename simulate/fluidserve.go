package simulate

import (
	"math"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

// served is the attempts that begin in a step, by how they end. Those that are blind fail while the
// breaker does not yet know that the dependency is back: they count as no attempt.
type served struct {
	accepted, unavailable, rejected float64
	blindUnavailable, blindRejected float64
	probes                          float64 // canaries that failed
	unavailableTakes                float64 // seconds
}

func (s *served) moved() float64 {
	return s.accepted + s.unavailable + s.rejected + s.blindUnavailable + s.blindRejected
}

func (s *served) started() float64 { return s.moved() + s.probes }

// conditions are those of a step.
type conditions struct {
	consumers  float64
	down       float64 // the share of requests that an outage has fail
	takesDown  float64 // seconds of such a run
	unaccepted float64 // the share of accepted runs that are cut, which counts as unavailable
}

func (f *fluid) conditions() conditions {
	c := conditions{consumers: float64(f.Fleet.Consumers), takesDown: f.takes, unaccepted: f.cut}
	from, to := f.at(f.now), f.at(f.now+1)
	share := func(at, lasts time.Duration) float64 {
		return max(0, float64(min(to, at+lasts)-max(from, at))) / float64(to-from)
	}
	for _, o := range f.Dependency.Outages {
		if part := share(o.At, o.For); part > 0 {
			c.down += part * o.Share
			if o.Takes > 0 {
				c.takesDown = o.Takes.Seconds()
			}
		}
	}
	if t := f.Fleet.Timeout.Seconds(); t > 0 {
		c.takesDown = min(c.takesDown, t)
	}
	for _, r := range f.Fleet.Restarts {
		c.consumers -= share(r.At, r.Down) * float64(r.Consumers)
	}
	c.consumers = max(c.consumers, 0)
	return c
}

// serve begins the attempts of a step.
func (f *fluid) serve() served {
	c := f.conditions()
	s := served{unavailableTakes: c.takesDown}
	if c.consumers < negligible {
		return s
	}
	most := f.slots(c)
	if f.Fleet.NoBreaker || f.breaker.State() == breaker.Closed && f.breaker.Quiet() && c.down == 0 && f.cut == 0 && (f.Dependency.Capacity == 0 || min(most, f.queue.total) <= f.available(f.step)) {
		f.refill(f.step)
		f.attempt(&s, c, min(most, f.queue.total))
		if !f.Fleet.NoBreaker {
			f.breaker.Succeeded(int(min(s.accepted/c.consumers, mostOutcomes)))
		}
		return s
	}
	f.throughBreaker(&s, c, most)
	return s
}

// refill adds the capacity of so many seconds. What the dependency saves of it is at most its burst.
func (f *fluid) refill(seconds float64) {
	d := &f.Dependency
	f.tokens = min(f.tokens, d.Burst) + d.Capacity*seconds
}

// available is how many requests the dependency takes within so many seconds.
func (f *fluid) available(seconds float64) float64 {
	if f.Dependency.Capacity == 0 {
		return math.Inf(1)
	}
	return min(f.tokens, f.Dependency.Burst) + f.Dependency.Capacity*seconds
}

// slots is how many attempts handlers have time for in this step.
func (f *fluid) slots(c conditions) float64 {
	free := c.consumers*float64(f.Fleet.Concurrency) - (f.running - f.ends.next(f.now).n)
	if free <= 0 {
		return 0
	}
	part := func(takes float64) float64 { return max(min(1, takes/f.step), 1e-9) } // of runs that begin in a step, that are running at its end
	down, up, rejected := part(c.takesDown), part(f.takes), part(f.Dependency.Rejects.Seconds())
	n := free / (c.down*down + (1-c.down)*up)
	if f.Dependency.Capacity > 0 {
		if taken := f.available(f.step); n*(1-c.down) > taken {
			// What is beyond the capacity is rejected, and makes room for more.
			n = max((free-taken*(up-rejected))/(c.down*down+(1-c.down)*rejected), taken/(1-c.down))
		}
	}
	if r := f.Fleet.Rate; r > 0 {
		n = min(n, r*c.consumers*f.step)
	}
	return n
}

// attempt has n requests made to the dependency, and returns how many it accepts.
func (f *fluid) attempt(s *served, c conditions, n float64) (accepted float64) {
	unavailable := n * c.down
	accepted = n - unavailable
	rejected := 0.0
	if f.Dependency.Capacity > 0 {
		rejected = max(0, accepted-f.tokens)
		accepted -= rejected
		f.tokens -= accepted
	}
	s.accepted += accepted
	s.unavailable += unavailable
	s.rejected += rejected
	return accepted
}

const (
	// instants is how many times in a second the breaker is asked what it permits, and mostOutcomes
	// how many outcomes it gets each time while it is closed.
	instants     = 20
	mostOutcomes = 200
	// names are those of messages, of which the breaker distinguishes as many as its threshold.
	names = 2048
)

// throughBreaker begins the attempts that the breaker of a consumer permits, times the consumers.
func (f *fluid) throughBreaker(s *served, c conditions, most float64) {
	times := max(1, int(f.step*instants))
	length := f.step / float64(times)
	left := f.queue.total
	for k := range times {
		now := epoch.Add(f.at(f.now) + time.Duration(float64(k)*length*float64(time.Second)))
		f.refill(length)
		switch f.breaker.State() {
		case breaker.Closed:
			n := min(most/float64(times), left) / c.consumers
			accepted := f.attempt(s, c, n*c.consumers)
			bad := 1.0
			if n > 0 {
				bad = 1 - accepted*(1-c.unaccepted)/(n*c.consumers)
			}
			f.tell(n, bad, now)
		case breaker.Open, breaker.HalfOpen:
			if now.Before(f.breaker.NextProbe()) || left < c.consumers && !f.Fleet.Probe {
				continue
			}
			f.probe(s, c, now)
		case breaker.Ramping:
			f.ramp(s, c, length, min(most, left-s.moved()), now)
		}
		left = max(0, f.queue.total-s.moved())
	}
}

// tell tells the closed breaker of n outcomes, of which a share is bad.
func (f *fluid) tell(n, bad float64, now time.Time) {
	f.credit += n
	whole := math.Floor(f.credit)
	f.credit -= whole
	for range int(min(whole, mostOutcomes)) {
		switch f.breaker.Attempted(f.name(), f.chance() < bad, now) {
		case breaker.Open:
			f.breaker.Open(now, f.chance())
			return
		case breaker.Ramping:
			f.breaker.Relapse(time.Duration(f.takes*float64(time.Second)), f.Fleet.Concurrency, now)
			return
		}
	}
}

// probe has each consumer find out whether the dependency is back.
func (f *fluid) probe(s *served, c conditions, now time.Time) {
	f.breaker.Probe()
	down := f.chance() < c.down
	takes := time.Duration(f.takes * float64(time.Second))
	switch {
	case down && f.Fleet.Probe:
	case down:
		s.probes += c.consumers
	case f.Fleet.Probe:
		takes = f.Network.Latency
	default:
		f.attempt(s, conditions{}, c.consumers)
	}
	if down {
		f.breaker.Open(now, f.chance())
	} else {
		f.breaker.Answered(takes, now)
	}
	f.credit, f.quiet = 0, 0
}

// ramp begins the attempts that the level of the breaker permits.
func (f *fluid) ramp(s *served, c conditions, length, most float64, now time.Time) {
	takes := c.down*c.takesDown + (1-c.down)*f.takes
	rate := float64(f.breaker.Level()) / takes
	if rest := f.breaker.Rest(time.Duration(takes * float64(time.Second))); rest > 0 {
		rate = 1 / (takes + rest.Seconds())
	}
	if r := f.Fleet.Rate; r > 0 {
		rate = min(rate, r)
	}
	f.credit = min(f.credit+rate*length, float64(f.Fleet.Concurrency)+1)
	n := math.Floor(min(f.credit, most/c.consumers))
	if n < 1 {
		if f.quiet += length; f.quiet > 1 && most < c.consumers && !now.Before(f.breaker.Promising()) {
			f.breaker.Idle(f.Fleet.Concurrency, now)
			f.quiet = 0
		}
		return
	}
	f.credit -= n
	f.quiet = 0
	var one served
	f.attempt(&one, c, n*c.consumers)
	if f.breaker.Rising() {
		s.unavailable += one.unavailable
		s.rejected += one.rejected
	} else {
		s.blindUnavailable += one.unavailable
		s.blindRejected += one.rejected
	}
	s.accepted += one.accepted
	bad := 1 - one.accepted*(1-c.unaccepted)/(n*c.consumers)
	took := time.Duration(takes * float64(time.Second))
	for range int(n) {
		failed := f.chance() < bad
		f.breaker.Ended(f.breaker.Round(), f.name(), failed, took, f.Fleet.Concurrency, now, f.chance())
		if f.breaker.State() != breaker.Ramping {
			break
		}
	}
}

// chance is a random number from 0 to 1.
func (f *fluid) chance() float64 {
	f.draws++
	return unit(draw(f.Seed, forFluid, f.draws, 0))
}

// name is one of a message that the breaker has not heard of for a while.
func (f *fluid) name() string { return messageNames[f.draws%names] }

var messageNames = func() (all [names]string) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()
