package simulate

import (
	"context"
	"math"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

// A fluid is a simulation of rates: it moves expected numbers of messages through the queue in short
// steps, in the place of single messages. Messages in the queue are cohorts in the order in which they
// became visible. The attempts of a step are what the handlers, the breaker and the dependency permit.
// Those that fail come back spread over the waits that the policy can draw for the attempt's number.
//
// The breaker is the real one of a consumer that stands for all: it gets a share of the outcomes.
type fluid struct {
	*Scenario
	step  float64 // in seconds
	now   int     // the number of the step
	laws  []law   // by the attempt that has failed
	cells []cell  // by era, class and attempt
	used  []int   // cells from which messages wait
	queue cohorts

	traffic []float64 // the messages that arrive in each step
	ends    calendar  // of runs
	ended   [4]calendar

	running, waiting float64
	open             []float64 // unsettled messages by era
	arrived          float64
	settled          [4]float64 // in all: done, dead, failed attempts, expired
	attempts         attemptsFlow
	perMessage       []float64

	breaker breaker.Breaker
	quiet   float64 // seconds without a run while the breaker is ramping
	credit  float64 // of attempts of a consumer
	draws   uint64
	tokens  float64     // of the dependency's capacity
	takes   float64     // seconds of a run that the dependency accepts
	cut     float64     // the share of these that the timeout ends
	fails   []heldFails // in the present step, if they change

	measures
	result *Result
}

// The classes of messages.
const (
	ordinary = iota
	permanent
	always
	classes
)

// The indexes of fluid.ended and fluid.settled.
const (
	flowDone = iota
	flowDead
	flowFailed
	flowExpired
)

// attemptsFlow are expected numbers of attempts.
type attemptsFlow struct {
	started, succeeded, failed, permanent, unavailable, rejected, cut float64
}

const (
	// fluidSteps is how many steps the traffic has at the most, and fluidCells how many numbers are
	// kept of messages that wait: longer steps make both fewer.
	fluidSteps = 100_000
	fluidCells = 6_000_000
	// settledAll: fewer messages than this are none.
	settledAll = 0.5
)

// runFluid simulates the rates of s, which is valid and has its defaults.
func runFluid(ctx context.Context, s *Scenario, progress func(Progress)) (*Result, error) {
	f := newFluid(s)
	for f.result.Stop == 0 {
		if f.now%1024 == 0 {
			if ctx.Err() != nil {
				f.result.Stop = StopInterrupted
				break
			}
			if progress != nil {
				progress(Progress{f.at(f.now), int(f.arrived), int(f.settled[flowDone] + f.settled[flowDead] + f.settled[flowExpired]), int(f.attempts.started)})
			}
		}
		f.advance()
	}
	f.finish()
	if f.result.Stop == StopInterrupted {
		return f.result, context.Cause(ctx)
	}
	return f.result, nil
}

func newFluid(s *Scenario) *fluid {
	f := &fluid{Scenario: s, breaker: breaker.New(s.Fleet.Threshold), tokens: s.Dependency.Burst, result: &Result{Scenario: *s}}
	f.takes, f.cut = s.Handler.Takes.within(s.Fleet.Timeout)
	eras := len(s.Dependency.Outages) + 1
	end := max(s.trafficEnd(), s.Horizon)
	for _, o := range s.Dependency.Outages {
		end = max(end, o.At+o.For)
	}
	for width := 0; ; width++ {
		if f.step = widths[width].Seconds(); s.Horizon > 0 {
			f.step = min(f.step, max(s.Horizon.Seconds()/100, 0.01))
		}
		if width+1 < len(widths) && end.Seconds()/f.step > fluidSteps {
			continue
		}
		f.laws = lawsOf(s)
		kept := 0.0
		for _, l := range f.laws {
			kept += float64(eras) * (l.longest()/f.step + 4)
		}
		if width+1 == len(widths) || kept <= fluidCells {
			break
		}
	}
	f.traffic = s.expected(f.step)
	f.cells = make([]cell, eras*classes*len(f.laws))
	f.open = make([]float64, eras)
	f.series = newSeries(s.Bucket)
	f.recoveries, f.inOutages = make([]recovery, len(s.Dependency.Outages)), make([]float64, len(s.Dependency.Outages))
	for i, o := range s.Dependency.Outages {
		f.recoveries[i].Outage, f.recoveries[i].Recovered, f.recoveries[i].Cleared = o, -1, -1
	}
	f.result.Notes = append(s.notes(), fluidNote)
	return f
}

// fluidNote tells readers what they look at.
const fluidNote = "these are expected numbers, not single messages: chance is left out; messages are right to 3 %, attempts to 10 %, times to recover to 30 %, cost to 30 % and percentiles to 35 % where both were compared"

// at is the time of the start of a step.
func (f *fluid) at(step int) time.Duration {
	return time.Duration(math.Round(float64(step) * f.step * float64(time.Second)))
}

// advance simulates a step.
func (f *fluid) advance() {
	f.arrive()
	f.comeBack()
	f.expire()
	s := f.serve()
	f.count(s)
	f.now++
	f.measure(s)
	switch end := f.at(f.now); {
	case f.Horizon > 0 && end >= f.Horizon, end >= MaxHorizon:
		f.result.Stop = StopHorizon
	case f.Horizon == 0 && f.now >= len(f.traffic) && f.unsettled() < settledAll:
		f.result.Stop = StopSettled
	}
}

// unsettled is how many messages are neither done nor given up nor expired.
func (f *fluid) unsettled() float64 {
	return f.arrived - f.settled[flowDone] - f.settled[flowDead] - f.settled[flowExpired]
}

// arrive has the messages of the step arrive, and those whose delay is over become visible.
func (f *fluid) arrive() {
	f.queue.begin(f.now)
	f.now0()
	era := 0
	for _, o := range f.Dependency.Outages {
		if f.at(f.now) >= o.At+o.For {
			era++
		}
	}
	n := f.arrivals(f.now)
	f.arrived += n
	f.open[era] += n
	f.period.Arrived = f.whole(&f.rounded.arrived, f.arrived)
	delay := int(math.Round(f.Queue.Delay.Seconds() / f.step))
	n = f.arrivals(f.now - delay)
	if f.delayed = 0; delay > 0 {
		for k := range delay {
			f.delayed += f.arrivals(f.now - k)
		}
	}
	if n == 0 {
		return
	}
	sent := (float64(f.now-delay) + 0.5) * f.step
	h := &f.Handler
	for class, share := range [classes]float64{permanent: h.Permanent, always: (1 - h.Permanent) * h.Always, ordinary: (1 - h.Permanent) * (1 - h.Always)} {
		if m := n * share; m > 0 {
			f.queue.add(f.index(era, class, 0), amount{m, m * sent})
		}
	}
}

// arrivals is how many messages are sent in a step.
func (f *fluid) arrivals(step int) float64 {
	if step < 0 || step >= len(f.traffic) {
		return 0
	}
	return f.traffic[step]
}

// index is the place of a cell.
func (f *fluid) index(era, class, level int) int { return (era*classes+class)*len(f.laws) + level }

// comeBack makes the messages visible whose wait is over.
func (f *fluid) comeBack() {
	kept := f.used[:0]
	for _, i := range f.used {
		c := &f.cells[i]
		due := c.due.advance(f.now)
		due.n = min(max(due.n, 0), c.all.n)
		due.sent = min(max(due.sent, 0), c.all.sent)
		c.all.n -= due.n
		c.all.sent -= due.sent
		f.waiting -= due.n
		if due.n > 0 {
			f.queue.add(i, due)
		}
		if c.all.n < negligible/1000 { // less than a step adds, because to clear a long calendar takes long
			f.waiting -= c.all.n
			c.forget()
			continue
		}
		kept = append(kept, i)
	}
	f.used = kept
	f.waiting = max(f.waiting, 0)
}

// expire has the queue delete what has been visible for longer than its retention.
func (f *fluid) expire() {
	oldest := f.now - int(f.Queue.Retention.Seconds()/f.step)
	for f.queue.oldest() < oldest {
		f.queue.take(math.Inf(1), true, func(i int, a amount) {
			f.settled[flowExpired] += a.n
			f.open[i/(classes*len(f.laws))] -= a.n
		})
	}
}

// count moves the messages whose attempts begin in this step, by how the attempts end.
func (f *fluid) count(s served) {
	a := &f.attempts
	a.started += s.started()
	a.unavailable += s.unavailable + s.blindUnavailable + s.probes
	a.rejected += s.rejected + s.blindRejected
	accepted := s.accepted * (1 - f.cut)
	a.cut += s.accepted * f.cut
	moved := s.moved()
	if len(f.Handler.Changes) > 0 {
		f.fails = f.Handler.failsWithin(f.at(f.now), f.at(f.now+1))
	}
	mid := (float64(f.now) + 0.5) * f.step
	if moved > 0 {
		f.queue.take(moved, false, func(i int, m amount) {
			level := i % len(f.laws)
			class := i / len(f.laws) % classes
			if level == 0 {
				f.waits.add(mid-m.sent/m.n, m.n)
			}
			fails := 0.0
			switch class {
			case permanent, always:
				fails = 1
			default:
				fails = f.failing(level)
			}
			if a := m.scaled(accepted / moved); a.n > 0 {
				if ok := a.scaled(1 - fails); ok.n > 0 {
					f.attempts.succeeded += ok.n
					f.latencies.add(mid+f.takes-ok.sent/ok.n, ok.n)
					f.settle(i, ok, flowDone, f.takes)
				}
				if class == permanent {
					f.attempts.permanent += a.n
					f.settle(i, a, flowDead, f.takes)
				} else if fails > 0 {
					f.attempts.failed += a.n * fails
					f.fail(i, a.scaled(fails), f.takes)
				}
			}
			f.fail(i, m.scaled(s.accepted*f.cut/moved), f.takes)
			f.fail(i, m.scaled(s.unavailable/moved), s.unavailableTakes)
			f.fail(i, m.scaled(s.rejected/moved), f.Dependency.Rejects.Seconds())
			f.queue.add(i, m.scaled((s.blindUnavailable+s.blindRejected)/moved))
		})
	}
	f.ends.begins(f.now, f.step, s.accepted, f.takes)
	f.ends.begins(f.now, f.step, s.unavailable+s.blindUnavailable, s.unavailableTakes)
	f.ends.begins(f.now, f.step, s.rejected+s.blindRejected, f.Dependency.Rejects.Seconds())
	failed := s.unavailable + s.blindUnavailable + s.rejected + s.blindRejected + s.probes
	f.ended[flowFailed].begins(f.now, f.step, failed, min(s.unavailableTakes, f.takes))
	f.running = max(0, f.running+s.started()-s.probes-f.ends.advance(f.now).n)
	for kind := range f.ended[:flowExpired] {
		f.settled[kind] += max(0, f.ended[kind].advance(f.now).n)
	}
}

// failing is the chance that an attempt of the step fails, by the number of those before it.
func (f *fluid) failing(level int) (chance float64) {
	if len(f.Handler.Changes) == 0 {
		return chanceOf(f.Handler.Fails, level+1)
	}
	for _, h := range f.fails {
		chance += h.share * chanceOf(h.fails, level+1)
	}
	return chance
}

// settle notes that messages are settled after a run of so many seconds.
func (f *fluid) settle(i int, m amount, as int, takes float64) {
	f.ended[as].begins(f.now, f.step, m.n, takes)
	f.open[i/(classes*len(f.laws))] -= m.n
	n := min(i%len(f.laws)+1, mostAttempts)
	for len(f.perMessage) <= n {
		f.perMessage = append(f.perMessage, 0)
	}
	f.perMessage[n] += m.n
}

// fail has messages wait whose attempt fails after so many seconds, or gives them up.
func (f *fluid) fail(i int, m amount, takes float64) {
	if m.n < negligible {
		return // and forget it
	}
	f.ended[flowFailed].begins(f.now, f.step, m.n, takes)
	level := i % len(f.laws)
	l := &f.laws[level]
	if dead := m.scaled(1 - l.goes); dead.n > 0 {
		f.settle(i, dead, flowDead, takes)
	}
	if l.goes == 0 {
		return
	}
	m = m.scaled(l.goes)
	if level+1 < len(f.laws) { // the last attempt of a policy without a limit stands for all that follow
		i++
	}
	c := &f.cells[i]
	if c.all.n == 0 {
		f.used = append(f.used, i)
	}
	c.waits(f.now, f.step, m, takes, l)
	f.waiting += m.n
}
