package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
)

// Spec says what a [Consumer] is made of.
type Spec struct {
	// Settings are those of the machine, with their defaults filled in; New sets Queue, CopyTo,
	// PollTimeout, SoftBudget, Keyed, HasProbe and TellSettled. A DeadLetterURL is the name of a
	// queue of Service; empty: the target of the queue's own redrive policy.
	Settings consumer.Settings
	Process  *world.Process // where it runs; its clock must not go back
	Service  *world.Service
	Queue    *world.Queue
	Latency  world.Latency // of each request, and of each reply
	Faults   map[world.Action]world.Faults
	Size     int // of each message, in bytes

	// Handler says what a run of the handler does. It is called when the run begins.
	Handler func(*Message) Run
	// Key returns the key of a message's breaker; nil: all have one.
	Key func(payload any) string
	// Probe tests whether the dependency is back; nil: a message is run to find out.
	Probe func() error

	// These functions are told of what has happened; nil: they are skipped.
	Attempted func(Attempt)
	Settled   func(consumer.Settled) // the Cargo of its Subject is opaque: see [ID]
	Reported  func(consumer.Report)
	Requested func(Request)
}

// Request is a request that has ended, or that gets no reply any more.
type Request struct {
	Kind     RequestKind
	Messages int  // in the request, of a receive in its reply
	Failed   bool // nothing is known of its messages
}

// RequestKind is what a request is for.
type RequestKind uint8

// The kinds of requests.
const (
	ReceiveRequest    RequestKind = iota // a long poll
	DeleteRequest                        // done, or replaced by a copy
	HideRequest                          // the wait before the next attempt
	RenewRequest                         // a heartbeat
	WakeRequest                          // the end of a wait, when a dependency is back
	CopyRequest                          // copies to be tried again
	DeadLetterRequest                    // messages that are given up
	RequestKinds                         // how many there are
)

// requested reports a request. A batch of which nothing was left to ask has made none.
func (c *Consumer) requested(kind RequestKind, messages int, err error) {
	if c.Requested != nil && (messages > 0 || kind == ReceiveRequest) {
		c.Requested(Request{kind, messages, err != nil})
	}
}

// Requests that get no reply count as lost after these times, as in the root package.
const (
	settleTimeout    = 30 * time.Second
	heartbeatTimeout = 5 * time.Second
	pollSlack        = 22 * time.Second // how much longer than its long poll a receive may take
	stopGrace        = 3 * time.Second
	skewNoise        = 3 * time.Second // a smaller difference of two clocks is not noticed
)

// Consumer is a simulated consumer. It is made by [New].
type Consumer struct {
	Spec

	machine *consumer.Machine
	link    *world.Link // of most requests
	beats   *world.Link // of heartbeats, which are not awaited so long
	start   func(consumer.Effect)

	latest  time.Time     // that now has returned
	ahead   time.Duration // how far SQS's clock is ahead of ours, as of the last receive
	timer   *world.Timer
	ringsAt time.Time // what the timer is set to; zero: it is not set

	running   []*delivery  // their handlers run
	receiving []*receiving // receives under way
	onStopped func(Left)   // of the stop under way; nil: there is none
}

// New makes a consumer. It receives nothing before [Consumer.Start].
func New(s Spec) (*Consumer, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("making a simulated consumer: %w", err)
	}
	set := &s.Settings
	set.Queue = placeOf(s.Queue)
	set.CopyTo = set.Queue
	set.PollTimeout = set.LongPoll + pollSlack
	set.SoftBudget = set.StopBudget - min(stopGrace, set.StopBudget/4)
	set.Keyed, set.HasProbe, set.TellSettled = s.Key != nil, s.Probe != nil, s.Settled != nil

	c := &Consumer{Spec: s, machine: consumer.New(s.Settings), latest: s.Process.Now()}
	c.link = s.Process.NewLink(s.Latency, settleTimeout)
	c.beats = s.Process.NewLink(s.Latency, min(heartbeatTimeout, set.Lease/5))
	c.link.Faults, c.beats.Faults = s.Faults, s.Faults
	c.start = c.startEffect
	c.timer = s.Process.NewTimer(func() {
		m := c.enter()
		c.ringsAt = time.Time{}
		m.Ring()
		c.leave()
	})
	return c, nil
}

// check returns every problem of s.
func (s *Spec) check() error {
	var problems []error
	bad := func(is bool, problem string) {
		if is {
			problems = append(problems, errors.New(problem))
		}
	}
	bad(s.Process == nil || s.Service == nil || s.Queue == nil || s.Handler == nil, "Process, Service, Queue or Handler is nil: set all four")
	bad(s.Settings.Concurrency < 1, fmt.Sprintf("Concurrency is %d: set at least 1", s.Settings.Concurrency))
	bad(s.Settings.Lease < 2*time.Second, fmt.Sprintf("Lease is %v: set at least 2s", s.Settings.Lease))
	bad(s.Settings.LongPoll < time.Second, fmt.Sprintf("LongPoll is %v: set at least 1s", s.Settings.LongPoll))
	bad(s.Settings.StopBudget <= 0, fmt.Sprintf("StopBudget is %v: set a positive duration", s.Settings.StopBudget))
	bad(!s.Settings.BreakerOff && s.Settings.Threshold < 1, "Threshold is not positive: set at least 1, or BreakerOff")
	bad(s.Settings.Batch.Size > 0, "batches are not simulated: leave Batch zero")
	bad(s.Settings.AfterDelete, "AfterDelete is not simulated: leave it false")
	if name := s.Settings.DeadLetterURL; name != "" && s.Service != nil {
		bad(s.Service.Queue(name) == nil, fmt.Sprintf("DeadLetterURL %q names no queue of the service: create it first", name))
	}
	return errors.Join(problems...)
}

// placeOf is what the machine knows of a queue. It has no other URL than its name.
func placeOf(q *world.Queue) consumer.Queue {
	return consumer.Queue{URL: q.Name(), Name: q.Name(), FIFO: q.Settings().FIFO}
}

// Start has the consumer receive.
func (c *Consumer) Start() {
	m := c.enter()
	m.Learned(c.facts())
	c.count(m)
	m.Start(false)
	c.leave()
}

// facts is what the queue's attributes say.
func (c *Consumer) facts() consumer.Facts {
	set := c.Queue.Settings()
	f := consumer.Facts{ARN: c.Queue.Name(), Largest: c.Queue.Largest, Plan: plan.Queue{
		ARN: c.Queue.Name(), FIFO: set.FIFO, Visibility: set.Visibility, Retention: set.Retention, Delay: set.Delay,
	}}
	name := c.Settings.DeadLetterURL
	if set.DeadLetter != "" {
		f.Plan.MaxReceives, f.Plan.DeadLetterARN = set.MaxReceives, set.DeadLetter
		if name == "" {
			name = set.DeadLetter
		}
	}
	if dead := c.Service.Queue(name); dead != nil {
		f.DeadLetter, f.Plan.DeadLetterRetention = placeOf(dead), dead.Settings().Retention
	}
	return f
}

// count tells m how many messages the queue has.
func (c *Consumer) count(m *consumer.Machine) {
	visible, inFlight, _ := c.Queue.Counts()
	m.Counted(inFlight, visible)
}

// Operate calls do in a section of the machine, as an operator's call does: to pause and resume it, to
// change its concurrency or rate, to wake messages.
func (c *Consumer) Operate(do func(*consumer.Machine)) {
	do(c.enter())
	c.leave()
}

// Status returns what the consumer is doing.
func (c *Consumer) Status() consumer.Status { return c.enter().Status(c.now()) }

// Sections of the machine.

// enter begins a section, which leave ends.
func (c *Consumer) enter() *consumer.Machine {
	c.machine.Begin(c.now(), c.ahead)
	return c.machine
}

func (c *Consumer) leave() {
	c.machine.End()
	if next := c.machine.Next(); !next.IsZero() && (c.ringsAt.IsZero() || next.Before(c.ringsAt)) {
		c.ringsAt = next
		c.timer.Set(next)
	}
	c.machine.Effects(c.start)
	if c.Settled != nil {
		for _, s := range c.machine.TakeSettled() {
			c.Settled(s)
		}
	}
}

// now never goes back.
func (c *Consumer) now() time.Time {
	if now := c.Process.Now(); now.After(c.latest) {
		c.latest = now
	}
	return c.latest
}

// startEffect begins to carry e out. It begins no section: an effect that needs one is an event
// of its own.
func (c *Consumer) startEffect(e consumer.Effect) {
	switch e.Kind {
	case consumer.Work:
		c.Process.After(0, c.work)
	case consumer.Interrupt:
		c.cut(e.Delivery.Cargo.(*delivery), consumer.CutLeaseLost)
	case consumer.Receive:
		c.receive(e.Poller, e.N)
	case consumer.Send:
		c.Process.After(0, func() { c.send(e.Outbox, e.Batch) })
	case consumer.Heartbeat:
		c.Process.After(0, func() { c.heartbeat(e.Batch) })
	case consumer.Wake:
		c.wake(e.Waking)
	case consumer.Count:
		c.Process.After(0, func() { c.Operate(c.count) })
	case consumer.Probe:
		c.Process.After(c.Latency.Base, func() {
			err := c.Probe()
			c.enter().ProbeEnded(e.Gate, e.N, e.Started, err)
			c.leave()
		})
	case consumer.TellReports:
		c.Process.After(0, c.tellReports)
	case consumer.TellSettled: // leave tells of what is settled
	case consumer.Emptied:
		c.Process.After(0, c.emptied)
	default:
		panic(fmt.Sprintf("simulation: effect %d needs a setting that New refuses", e.Kind))
	}
}

// tellReports takes the machine's reports, so that they do not pile up.
func (c *Consumer) tellReports() {
	for r := c.enter().NextReport(); r != nil; r = c.machine.NextReport() {
		if c.Reported != nil {
			c.Reported(r)
		}
	}
}
