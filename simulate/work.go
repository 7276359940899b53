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

// node is a process of the fleet.
type node struct {
	*simulation.Consumer
	lane    *simulation.Consumer   // nil: there is none
	others  []*simulation.Consumer // of the further queues of a pool
	running int
}

// Start starts all its consumers.
func (n *node) Start() {
	for _, c := range n.all() {
		c.Start()
	}
}

// Stop has all its consumers stop gracefully.
func (n *node) Stop() {
	for _, c := range n.all() {
		c.Stop(func(simulation.Left) {})
	}
}

func (n *node) all() []*simulation.Consumer {
	all := []*simulation.Consumer{n.Consumer}
	if n.lane != nil {
		all = append(all, n.lane)
	}
	return append(all, n.others...)
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
		Handler:      func(m *simulation.Message) simulation.Run { return r.handle(n, []*simulation.Message{m}) },
		BatchHandler: func(all []*simulation.Message) simulation.Run { return r.handle(n, all) },
		Attempted:    func(a simulation.Attempt) { r.attempted(n, a) },
		Settled:      r.settles, Requested: func(q simulation.Request) { r.requested(q, r.Traffic.Bytes) },
	}
	if f.Batch.Size > 1 {
		spec.Settings.Batch = consumer.Batch{Size: f.Batch.Size, Linger: max(f.Batch.Linger, 0), Bytes: batchBytes}
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
	if err := r.join(n, spec); err != nil {
		return err
	}
	r.started++
	r.nodes = append(r.nodes, n)
	n.Start()
	return nil
}

// batchBytes is the most bytes of a batch, as in a consumer by default.
const batchBytes = 16 << 20

// join makes the consumer of n, and those of the retry lane and of further queues, if there are any,
// which share its handlers.
func (r *run) join(n *node, spec simulation.Spec) (err error) {
	if r.lane == nil && r.pool == nil {
		n.Consumer, err = simulation.New(spec)
		return err
	}
	ofMain := spec
	ofMain.Lane = r.lane
	if n.Consumer, err = simulation.New(ofMain); err != nil {
		return err
	}
	pool := simulation.NewPool(r.Fleet.Concurrency)
	if r.lane != nil {
		ofLane := spec
		ofLane.Queue = r.lane
		ofLane.Settings.Seed = draw(r.Seed, forProbe, uint64(r.started), 1)
		if n.lane, err = simulation.New(ofLane); err != nil {
			return err
		}
		n.lane.IsLaneOf(n.Consumer)
	}
	pool.Join(n.Consumer, consumer.Share{Weight: max(r.Fleet.Weight, 1)}, true)
	if n.lane != nil {
		pool.Join(n.lane, consumer.Share{Weight: r.Fleet.RetryLane.Weight, Priority: r.Fleet.RetryLane.Priority}, true)
	}
	return r.joinPool(n, spec, pool)
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
			n.Stop()
		}
		r.loop.After(how.Down, "the scenario", func() { _ = r.start() }) // as the first, which could be started
	}
}

// handle is the model of the handler, for one message or a batch: one request to the dependency, which
// the luck of the first message decides.
func (r *run) handle(n *node, all []*simulation.Message) simulation.Run {
	now := r.loop.Since()
	for _, m := range all {
		r.begins(n, m.Payload.(*message), now)
	}
	r.called(now)
	first := all[0].Payload.(*message)
	i, k := uint64(first.number), uint64(first.attempts)
	takes := r.handlerOf(first.queue).Takes.draw(draw(r.Seed, forTakes, i, k))
	if o := r.outage(); o != nil && unit(draw(r.Seed, forOutage, i, k)) < o.Share {
		if o.Takes > 0 {
			takes = o.Takes
		}
		return simulation.Run{Takes: takes, Err: errUnavailable, Unavailable: true}
	}
	if !r.takesRequest(now) {
		return simulation.Run{Takes: r.Dependency.Rejects, Err: errRejected, Unavailable: true}
	}
	if r.Fleet.Batch.Size <= 1 {
		return simulation.Run{Takes: takes, Err: r.errorOf(all[0])}
	}
	results := make([]simulation.Result, len(all))
	for i, m := range all {
		results[i].Err = r.errorOf(m)
	}
	return simulation.Run{Takes: takes, Ends: func() []simulation.Result { return results }}
}

// begins notes that an attempt at a message begins.
func (r *run) begins(n *node, one *message, now time.Duration) {
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
}

// errorOf is how the attempt at a message ends if the dependency takes the request; nil: it succeeds.
func (r *run) errorOf(m *simulation.Message) error {
	one := m.Payload.(*message)
	fails := r.handlerOf(one.queue).failsAt(r.loop.Since())
	switch {
	case one.permanent:
		return errPermanent
	case one.always, len(fails) > 0 && unit(draw(r.Seed, forFailure, uint64(one.number), uint64(one.attempts))) < chanceOf(fails, m.Attempt):
		return errFailed
	}
	return nil
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
	repeated := 0
	if one.state == done {
		repeated = 1
	}
	switch {
	case a.Err == nil:
		counts.Succeeded++
		counts.Repeated += repeated
		if one.state != done {
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
		counts.Repeated += repeated
	default:
		counts.Failed++
		counts.Repeated += repeated
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
