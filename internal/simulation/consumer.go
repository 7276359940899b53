package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
)

// Spec configures a [Consumer].
type Spec struct {
	// Settings are those of the machine, with their defaults filled in; New sets Queue, CopyTo,
	// PollTimeout, SoftBudget, Keyed, HasProbe, TellSettled and AfterDelete. A DeadLetterURL is the
	// name of a queue of Service; empty: the target of the queue's redrive policy.
	Settings consumer.Settings
	Process  *world.Process // that runs the consumer
	Service  *world.Service
	Queue    *world.Queue
	Lane     *world.Queue  // gets the copies; nil: Queue. See [Consumer.IsLaneOf]
	Latency  world.Latency // of each request, and of each reply
	Faults   map[world.Action]world.Faults
	Size     int // of each message, in bytes

	// Handler returns what a run of the handler does. It is called when the run begins.
	Handler func(*Message) Run
	// BatchHandler is used instead of Handler if Settings.Batch makes this a consumer of batches.
	BatchHandler func([]*Message) Run
	// Key returns the key of a message's breaker; nil: all messages share one breaker.
	Key func(payload any) string
	// Probe tests whether the dependency of a key is back; nil: a message is run to find out.
	Probe func(key string) error
	// ProbeTakes returns how long a probe runs; nil: Latency.Base.
	ProbeTakes func() time.Duration
	// Measure returns the size of a message and its number of attributes, without the history of a
	// copy. The payload of a message that was moved back is a *[DeadLetter]. Nil: Size, and no
	// attributes.
	Measure func(payload any) (bytes, attributes int)
	// Damaged reports whether the digest of a message is wrong. It gets the same payload as Measure.
	// Nil: no digest is wrong.
	Damaged func(payload any) bool
	// Signs reports whether the consumer signs histories and ignores those that are not signed.
	Signs bool
	// CountsFail reports whether requests for the queue's counts can fail, by the Faults of the empty
	// action.
	CountsFail bool
	// Observed reports whether the consumer tells an observer of each attempt before it takes the
	// next message.
	Observed bool

	// These functions are called after the event that they are named after. Each may be nil.
	Attempted func(Attempt)
	Settled   func(consumer.Settled) // the Cargo of its Subject is opaque: see [ID]
	Deleted   func(consumer.Subject) // Config.AfterDelete
	Reported  func(consumer.Report)
	Requested func(Request)
	Watcher   Watcher
}

// Watcher gets what a consumer and its queue tell each other about each message.
type Watcher interface {
	Arrived(*engine.Delivery)                                          // a receive has brought it
	Asks(RequestKind, []Asked)                                         // a request begins
	Answered(k RequestKind, batch []Asked, got []world.Entry, e error) // it has ended; with an error nothing is known; batch is nil for a WakeRequest
}

// Asked is a message that a request is about.
type Asked struct {
	ID      string
	Payload any // as it was sent
	Receipt engine.Receipt
	Outcome consumer.Outcome
	History string // that its copy carries
}

// Request is a request that has ended, or that will get no reply.
type Request struct {
	Kind     RequestKind
	Messages int  // in the request; for a receive, in its reply
	Failed   bool // nothing is known about its messages
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

// String returns what a request of the kind does, in the words of a story.
func (k RequestKind) String() string {
	return [RequestKinds]string{"receive", "delete", "hide", "renew", "wake", "copy", "dead-letter"}[k]
}

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
)

// Consumer is a simulated consumer. It is made by [New].
type Consumer struct {
	Spec
	Link  *world.Link // of most requests
	Beats *world.Link // of heartbeats, which have a shorter timeout

	machine *consumer.Machine
	pool    *Pool // nil: the consumer does not share its places
	begin   func(consumer.Effect)
	dead    *world.Queue // nil: there is none

	ahead   clocks.Ahead // how far SQS's clock is ahead of ours, by the replies to receives
	timer   *world.Timer
	ringsAt time.Time // what the timer is set to; zero: it is not set

	running   []*shift     // of the handlers that run
	cutOff    []cutRun     // those whose contexts have ended since interrupt was called last
	receiving []*receiving // receives under way
	received  []*receiving // ended receives, for reuse
	onStopped func(Left)   // of the stop under way; nil: there is none
}

// New makes a consumer. It receives nothing before [Consumer.Start].
func New(s Spec) (*Consumer, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("making a simulated consumer: %w", err)
	}
	set := &s.Settings
	set.Queue = placeOf(s.Queue)
	if set.CopyTo = set.Queue; s.Lane != nil {
		set.CopyTo = placeOf(s.Lane)
	} else {
		s.Lane = s.Queue
	}
	set.PollTimeout = set.LongPoll + pollSlack
	set.SoftBudget = set.StopBudget - min(stopGrace, set.StopBudget/4)
	set.Keyed, set.HasProbe, set.TellSettled, set.AfterDelete = s.Key != nil, s.Probe != nil, s.Settled != nil, s.Deleted != nil
	if s.ProbeTakes == nil {
		s.ProbeTakes = func() time.Duration { return s.Latency.Base }
	}

	c := &Consumer{Spec: s, machine: consumer.New(s.Settings)}
	c.Link = s.Process.NewLink(s.Latency, settleTimeout)
	c.Beats = s.Process.NewLink(s.Latency, min(heartbeatTimeout, set.Lease/5))
	c.Link.Faults, c.Beats.Faults = s.Faults, s.Faults
	c.begin = c.startEffect
	c.timer = s.Process.NewTimer(func() {
		m := c.enter()
		c.ringsAt = time.Time{}
		m.Ring()
		c.leave()
		c.interrupt()
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
	handles := s.Handler != nil
	if s.Settings.Batch.Size > 0 {
		handles = s.BatchHandler != nil
	}
	bad(s.Process == nil || s.Service == nil || s.Queue == nil || !handles, "Process, Service, Queue or Handler is nil, or BatchHandler for batches: set all four")
	bad(s.Settings.Concurrency < 1, fmt.Sprintf("Concurrency is %d: set at least 1", s.Settings.Concurrency))
	bad(s.Settings.Lease < 2*time.Second, fmt.Sprintf("Lease is %v: set at least 2s", s.Settings.Lease))
	bad(s.Settings.LongPoll < time.Second, fmt.Sprintf("LongPoll is %v: set at least 1s", s.Settings.LongPoll))
	bad(s.Settings.StopBudget <= 0, fmt.Sprintf("StopBudget is %v: set a positive duration", s.Settings.StopBudget))
	bad(!s.Settings.BreakerOff && s.Settings.Threshold < 1, "Threshold is not positive: set at least 1, or BreakerOff")
	if name := s.Settings.DeadLetterURL; name != "" && s.Service != nil {
		bad(s.Service.Queue(name) == nil, fmt.Sprintf("DeadLetterURL %q names no queue of the service: create it first", name))
	}
	return errors.Join(problems...)
}

// placeOf returns what the machine knows about a queue, whose name is also its URL.
func placeOf(q *world.Queue) consumer.Queue {
	return consumer.Queue{URL: q.Name(), Name: q.Name(), FIFO: q.Settings().FIFO}
}

// Start has the consumer receive.
func (c *Consumer) Start() {
	m := c.enter()
	m.Learned(c.learn())
	c.count(m)
	m.Start(false)
	c.leave()
}

// learn returns the facts in the queue's attributes.
func (c *Consumer) learn() consumer.Facts {
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
	if c.dead = c.Service.Queue(name); c.dead != nil {
		f.DeadLetter, f.Plan.DeadLetterRetention = placeOf(c.dead), c.dead.Settings().Retention
	}
	return f
}

// count tells m how many messages the queue has.
func (c *Consumer) count(m *consumer.Machine) {
	visible, inFlight, _ := c.Queue.Counts()
	m.Counted(inFlight, visible)
}

// countAgain calls count when the machine asks for it.
func (c *Consumer) countAgain() {
	if !c.CountsFail || c.Link.Passes("GetQueueAttributes") {
		c.Operate(c.count)
	}
}

// Operate calls do in a section of the machine. It is for calls that an operator makes: to pause and
// resume the consumer, to change its concurrency or rate, to wake messages.
func (c *Consumer) Operate(do func(*consumer.Machine)) {
	do(c.enter())
	c.leave()
}

// Status returns what the consumer is doing.
func (c *Consumer) Status() consumer.Status { return c.enter().Status(c.now()) }

// Holds and Breakers return parts of the Status: the whole Status costs as much as many events.
func (c *Consumer) Holds() int                   { return c.enter().Holds() }
func (c *Consumer) Breakers() []consumer.Breaker { return c.enter().Breakers() }

// String describes the state of the consumer, for messages of failed tests.
func (c *Consumer) String() string {
	return fmt.Sprintf("%s: %v, rings at %v", c.Queue.Name(), c.enter(), c.ringsAt)
}
