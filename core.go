package reprise

import (
	"math/rand/v2"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/budget"
	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/internal/giveups"
	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// core decides what becomes of the messages of a consumer. It is plain data, guarded by
// the mutex of its shell, the [Consumer]. Its methods are called with the mutex held:
// [Consumer.enter] and [Consumer.lock] take that, and they alone hand the core out.
type core struct {
	*settings

	// The messages in our hands.
	held     map[string]*delivery       // by id
	ready    fifo                       // leased and free to start
	batches  *collector                 // makes batches of them; nil: handlers get one at a time
	gates    gates                      // what keeps messages from being ready: outages, paused keys
	groups   *groups.Machine[*delivery] // FIFO queues: of the messages that are held
	waiting  int                        // not started
	running  int                        // in a handler
	hung     int                        // of them, those whose handlers ignore the end of their contexts
	settling int                        // finished
	stuck    int                        // of these, refused again and again while SQS answers others

	// The places that they run in, and the goroutines that run and receive them.
	dials    dials  // what can be turned at run time
	share    share  // of the pool's places
	floor    *floor // who may start; its pool's, if it has one
	workers  int    // goroutines that run handlers
	summoned bool   // a worker was started that is yet to look for a message
	pollers  []*poller
	reserved int // places asked for by receives under way

	// Their settlement.
	deletes    outbox
	hides      outbox
	copies     outbox // to the dead-letter queue
	requeues   outbox // to the queue itself
	heartbeats calls.Machine[*delivery]
	answered   time.Time   // when SQS last confirmed a settlement or a heartbeat
	stuckError error       // the last refusal of a message that is stuck
	unsendable unsendable  // what the dead-letter queue does not take
	expiring   expirations // the messages that are left to expire
	after      afterwork   // what follows deletes
	follow     followUp    // what the ends of messages mean for others

	// Knowledge that later decisions use.
	policy   retry.Policy  // cfg.Retry with the queue's limits filled in
	facts    queueFacts    // what the queue's attributes say
	memory   memory.Memory // of messages no longer in our hands
	budget   budget.Budget // of messages in flight
	giveUps  giveups.Watch // whether most messages are given up
	taskTime ewma          // how long handlers take
	lastMove time.Time     // the latest start or end of a handler
	waker    waker         // makes parked messages visible
	chance   *rand.Rand    // the jitter of our own waits; retries leave nothing to chance

	// The section under way, and time.
	effects  []effect     // that it has left
	now      time.Time    // of the section under way: see lock
	alarms   alarms.Clock // of all that waits for a time
	keeping  alarms.Alarm // when leases are looked at
	startDue alarms.Alarm // when the next handler may start, for which only that is missing
	quiet    alarms.Alarm // ends that most messages are given up, when none is any more

	// The stop.
	draining bool
	softEnd  time.Time // while draining: handlers should have ended by then
	hardEnd  time.Time // while draining: what is not settled by then will not be
	closed   bool      // nothing may be started any more

	// Reports to users.
	health        healthState
	counts        Counts
	report        Report
	untold        []Settled            // what the observer is yet to hear of
	reports       reports              // what the log and observers are yet to hear of
	said          map[string]time.Time // when each rate-limited complaint was last logged
	deadLetterLog deadLetterLog
}

// setAlarms says what the alarms do that a core has from its beginning.
func (c *core) setAlarms() {
	c.keeping.Do = c.keepLeases
	c.startDue.Do = func(time.Time) {} // the epilogue starts it
	c.quiet.Do = c.perhapsQuiet
	for _, o := range c.outboxes() {
		o.linger.Do = func(now time.Time) { c.lingered(o, now) }
	}
}
