// Package consumer is the state machine of a consumer of an SQS queue: it decides when
// messages are received, which handler starts next, what the end of an attempt means, and
// what SQS is asked to do about it.
//
// A [Machine] is plain data. It has no clock, timer, goroutine, lock, context, logger or
// client, and calls no code of the user's but the pure functions of a [retry.Policy]. Its
// shell, package reprise or a simulation, gives it inputs, which are its exported methods,
// in sections:
//
//	m.Begin(now, ahead) // the time, and how far SQS's clock is ahead of ours
//	...                 // inputs: what was received, how an attempt ended, SQS's reply
//	m.End()             // the machine decides what goes on
//	m.Effects()         // what the shell has to do
//	m.Next()            // when to begin a section without any other reason, with Ring
//
// A section needs no End if no worker, poller or alarm waits for what it changes. The shell guards
// machines that share a [Pool] with one lock.
package consumer

import (
	"math/rand/v2"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/budget"
	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/internal/giveups"
	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/internal/turns"
	"github.com/reprise-sqs/reprise/retry"
)

// Machine decides what happens to the messages of a consumer.
type Machine struct {
	Settings

	// The messages that we hold.
	held     map[string]*Delivery       // by id
	ready    fifo                       // leased, and may start now
	batches  *collector                 // makes batches of them; nil: handlers get one at a time
	gates    gates                      // which keep messages from being ready: outages, paused keys
	groups   *groups.Machine[*Delivery] // FIFO queues: of the messages that are held
	waiting  int                        // not started
	running  int                        // in a handler
	hung     int                        // of running: their handlers ignore the end of their contexts
	hanging  int                        // such handlers
	settling int                        // finished
	stuck    int                        // of settling: SQS refuses them again and again, and answers others

	// The places that they run in, and the goroutines that run and receive them.
	pool           *Pool                // nil: its handlers have places of their own
	retryLaneOf    *Machine             // whose retry lane its queue is; nil: its queue is no retry lane
	concurrency    int                  // how many handlers may run at once
	paused         bool                 // no handler may start, and nothing is received
	nextAt         time.Time            // Settings.Rate: when the next handler is due to start
	turns          turns.User[*Machine] // of the pool's places
	wholePool      bool                 // Settings.Concurrency was left to the pool
	solo           *soloTurn            // which messages may start; shared by a pool
	workers        int                  // goroutines that run handlers
	workerStarting bool                 // a worker was started and has not yet looked for a message
	pollers        []*Poller
	receiveFails   time.Time // since when receives fail, if that was logged
	reserved       int       // messages that the receives under way ask for

	// Settlements.
	deletes    Outbox
	hides      Outbox
	copies     Outbox // to the dead-letter queue
	requeues   Outbox // to the queue itself
	heartbeats calls.Machine[*Delivery]
	beatTime   movingAverage // how long SQS takes to answer heartbeats
	unkept     unkeptLeases  // leases that were renewed late, or have ended
	answered   time.Time     // when SQS last confirmed a settlement or a heartbeat
	stuckError error         // the last refusal of a message that is stuck
	unsendable unsendable    // messages that the dead-letter queue does not accept
	untaken    time.Time     // until then messages are hidden that are given up and that no dead-letter queue takes
	expiring   expirations   // messages that will expire in the queue
	unsure     time.Time     // until then messages are hidden that may expire in it: its retention is not known
	after      afterDeletes  // runs of Config.AfterDelete
	deferred   deferredWork  // what the end of one message changes for others

	// Knowledge that later decisions use.
	policy   retry.Policy  // Settings.Retry with the queue's limits filled in
	facts    Facts         // what the queue's attributes say
	reading  reading       // when they are read
	memory   memory.Memory // of messages that we no longer hold
	budget   budget.Budget // of messages in flight
	giveUps  giveups.Watch // notices when most messages are given up
	taskTime movingAverage // how long handlers take
	lastMove time.Time     // the latest start or end of a handler
	waker    waker         // makes hidden messages visible
	losses   losses        // how often receives come to nothing
	started  time.Time     // when it began to receive
	early    *earlyRetries // messages that run when they are received next, due or not; shared with the retry lane
	chance   *rand.Rand    // the jitter of our own waits; that of retries is computed from the message

	// The section under way, and time.
	effects  []Effect      // that it has left
	now      time.Time     // of the section under way: see Begin
	ahead    time.Duration // how far SQS's clock is ahead of ours
	alarms   alarms.Clock  // of everything that waits for a time
	keeping  alarms.Alarm  // when leases are looked at
	startDue alarms.Alarm  // when the next handler may start, if only its time is missing
	quiet    alarms.Alarm  // when to check whether messages are still given up

	// The stop.
	draining bool
	softEnd  time.Time // while draining: handlers should have ended by then
	hardEnd  time.Time // while draining: nothing is settled after it
	closed   bool      // nothing may be started any more

	// Reports to users.
	health        healthState
	counts        Counts
	unreported    []Settled            // not yet told to the observer
	reports       []Report             // not yet told to the log and observers, in order
	reporting     bool                 // the shell is telling them
	said          map[string]time.Time // when each rate-limited complaint was last logged
	deadLetterLog deadLetterLog
}

// New returns the machine of a consumer that has not begun to receive: see [Machine.Start].
func New(s Settings) *Machine {
	c := &Machine{
		Settings:    s,
		concurrency: s.Concurrency,
		chance:      rand.New(rand.NewPCG(s.Seed, 0)),
		policy:      s.Retry,
		turns:       turns.User[*Machine]{Weight: 1},
		solo:        new(soloTurn),
		early:       new(earlyRetries),
		held:        make(map[string]*Delivery),
		groups:      groups.New[*Delivery](),
		said:        make(map[string]time.Time),
		deletes:     Outbox{Request: DeleteMessages, name: "delete", state: stateDeleting, calls: s.newCalls(0)},
		hides:       Outbox{Request: HideMessages, name: "hide", state: stateHiding, leased: true, calls: s.newCalls(0)},
		copies:      Outbox{Request: SendDeadLetters, name: "copy", state: stateCopying, copies: true, calls: s.newCalls(maxBatchBytes)},
		requeues:    Outbox{Request: SendCopies, name: "requeue", state: stateRequeueing, leased: true, copies: true, calls: s.newCalls(maxBatchBytes)},
		heartbeats:  calls.New[*Delivery](calls.Settings{Entries: MaxBatch, Requests: renewAtOnce}),
	}
	if s.Batch.Size > 0 {
		c.batches = &collector{Batch: s.Batch}
	}
	c.keeping.Do = c.keepLeases
	c.startDue.Do = func(time.Time) {} // End starts it
	c.quiet.Do = c.checkQuiet
	for _, o := range c.outboxes() {
		o.linger.Do = func(now time.Time) { c.lingered(o, now) }
	}
	return c
}
