package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Why runs fail.
var (
	errFailed      = errors.New("simulate: the attempt failed")
	errPermanent   = retry.Permanent(errors.New("simulate: the message is faulty"))
	errUnavailable = errors.New("simulate: the dependency is unavailable")
	errRejected    = errors.New("simulate: the dependency rejects what is beyond its capacity")
)

// node is a consumer of the fleet.
type node struct {
	*simulation.Consumer
	running int
}

// stopBudget is the time of a graceful stop, as in a consumer by default.
const stopBudget = 25 * time.Second

// start starts a consumer.
func (r *run) start() error {
	f, n := &r.Fleet, new(node)
	process := r.loop.Start(fmt.Sprintf("consumer %d", r.started), 0, 0)
	deadLetters := ""
	if r.dead != nil {
		deadLetters = r.dead.Name()
	}
	spread := max(r.Network.Spread, 0)
	spec := simulation.Spec{
		Settings: consumer.Settings{
			Settings: plan.Settings{HandlerTimeout: f.Timeout, Lease: f.Lease, Via: plan.Via(slices.Index(vias, f.Via)), DeadLetterURL: deadLetters},
			Retry:    r.Policy, Concurrency: f.Concurrency, Prefetch: max(f.Prefetch, 0), Rate: f.Rate, LongPoll: f.LongPoll, StopBudget: stopBudget,
			InFlightQuota: r.Queue.InFlightQuota, FIFO: consumer.FIFO(max(slices.Index(waits, f.Waits), 0)),
			Seed: draw(r.Seed, forProbe, uint64(r.started), 0), BreakerOff: f.NoBreaker, Threshold: f.Threshold,
		},
		Process: process, Service: r.service, Queue: r.queue, Size: r.Traffic.Bytes,
		Latency: world.Latency{Base: r.Network.Latency, Spread: spread, Most: r.Network.Latency + 1000*spread},
		Faults: map[world.Action]world.Faults{"": {
			LoseRequest: r.Network.LoseRequest, LoseReply: r.Network.LoseReply, Throttle: r.Network.Throttle, Fail: r.Network.Fail,
		}},
		Handler:   func(m *simulation.Message) simulation.Run { return r.handle(n, m) },
		Attempted: func(a simulation.Attempt) { r.attempted(n, a) },
		Settled:   r.settles, Requested: r.requested,
	}
	if f.Probe {
		probes := uint64(0)
		spec.Probe = func(string) error {
			probes++
			if o := r.outage(); o != nil && unit(draw(r.Seed, forOutage, probes, 1)) < o.Share {
				return errUnavailable
			}
			return nil
		}
	}
	c, err := simulation.New(spec)
	if err != nil {
		return err
	}
	n.Consumer = c
	r.started++
	r.nodes = append(r.nodes, n)
	c.Start()
	return nil
}

// restart ends consumers, the oldest first, and has others come.
func (r *run) restart(how Restart) {
	for range min(how.Consumers, len(r.nodes)) {
		n := r.nodes[0]
		r.nodes = r.nodes[1:]
		if how.Kill {
			n.Process.Crash()
			r.running -= n.running
			r.result.Attempts.Cut += n.running
		} else {
			n.Stop(func(simulation.Left) {})
		}
		r.loop.After(how.Down, "the scenario", func() { _ = r.start() }) // as the first, which could be started
	}
}

// handle is the model of the handler.
func (r *run) handle(n *node, m *simulation.Message) simulation.Run {
	one, now := m.Payload.(*message), r.loop.Since()
	if one.attempts == 0 {
		one.began = now
	}
	one.attempts++
	if one.waits {
		one.waits = false
		r.waiting--
	}
	n.running++
	r.running++
	r.now.Started++
	r.result.Attempts.Started++
	r.called(now)

	i, k := uint64(one.number), uint64(one.attempts)
	takes := r.Handler.Takes.draw(draw(r.Seed, forTakes, i, k))
	if o := r.outage(); o != nil && unit(draw(r.Seed, forOutage, i, k)) < o.Share {
		if o.Takes > 0 {
			takes = o.Takes
		}
		return simulation.Run{Takes: takes, Err: errUnavailable, Unavailable: true}
	}
	if !r.takesRequest(now) {
		return simulation.Run{Takes: r.Dependency.Rejects, Err: errRejected, Unavailable: true}
	}
	fails := r.Handler.Fails
	switch {
	case one.permanent:
		return simulation.Run{Takes: takes, Err: errPermanent}
	case one.always, len(fails) > 0 && unit(draw(r.Seed, forFailure, i, k)) < fails[min(m.Attempt, len(fails))-1]:
		return simulation.Run{Takes: takes, Err: errFailed}
	}
	return simulation.Run{Takes: takes}
}

// outage is the outage that the dependency has now; nil: none.
func (r *run) outage() *Outage {
	now := r.loop.Since()
	for i := range r.Dependency.Outages {
		if o := &r.Dependency.Outages[i]; now >= o.At && now < o.At+o.For {
			return o
		}
	}
	return nil
}

// takesRequest reports whether the dependency has capacity for a request, and uses it up.
func (r *run) takesRequest(now time.Duration) bool {
	d := &r.Dependency
	if d.Capacity == 0 {
		return true
	}
	r.tokens = min(r.tokens+d.Capacity*(now-r.filled).Seconds(), d.Burst)
	r.filled = now
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// attempted counts the end of an attempt.
func (r *run) attempted(n *node, a simulation.Attempt) {
	one, now := a.Payload.(*message), r.loop.Since()
	n.running--
	r.running--
	counts := &r.result.Attempts
	r.result.Last = now
	if int(one.number) < r.Trace {
		r.trace(one, a)
	}
	switch {
	case a.Err == nil:
		counts.Succeeded++
		if one.state == done {
			counts.Repeated++
		} else {
			one.ended = now
			r.now.Done++
			r.ends(one, done)
		}
		return
	case errors.Is(a.Err, errUnavailable):
		counts.Unavailable++
	case errors.Is(a.Err, errRejected):
		counts.Rejected++
	case errors.Is(a.Err, context.Canceled), errors.Is(a.Err, context.DeadlineExceeded):
		counts.Cut++
	case errors.Is(a.Err, errPermanent):
		counts.Permanent++
	default:
		counts.Failed++
	}
	r.now.Failed++
	if a.Outcome == consumer.OutcomeRetry && one.state == open && !one.waits {
		one.waits = true
		r.waiting++
	}
}

// trace lists an attempt.
func (r *run) trace(one *message, a simulation.Attempt) {
	traced := Traced{
		Message: int(one.number), ID: a.OriginID, Attempt: a.Attempt,
		Started: a.Started.Sub(epoch), Ended: a.Ended.Sub(epoch), Succeeded: a.Err == nil, Outcome: a.Outcome.String(),
	}
	if !a.Due.IsZero() {
		traced.Due = a.Due.Sub(epoch)
	}
	r.result.Trace = append(r.result.Trace, traced)
}

// settles takes in what SQS has confirmed.
func (r *run) settles(s consumer.Settled) {
	one := simulation.PayloadOf(s.Subject).(*message)
	switch {
	case s.Outcome == consumer.OutcomeDeadLetter:
		r.given++
		if one.state == open {
			r.now.Dead++
			r.ends(one, given)
		}
	case s.Requeued:
		one.renewed = r.loop.Since()
	}
}

// ends notes that a message is settled.
func (r *run) ends(one *message, as state) {
	if one.waits {
		one.waits = false
		r.waiting--
	}
	if one.state == open {
		r.settled++
		r.progressed(one)
	}
	one.state = as
}
