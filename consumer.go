// Package reprise works off Amazon SQS queues whose work sometimes fails.
//
// A [Consumer] receives messages, runs a [Handler] for each, and settles what
// the handler decided: deleted, retried after a backoff with jitter, released,
// or dead-lettered with the story of its failures. It keeps the lease on every
// message it holds from receipt until SQS has acknowledged the settlement,
// batches its calls, and drains without loss when it is stopped.
//
//	consumer, err := reprise.New(sqsClient, queueURL, reprise.JSON(ship), reprise.Config{})
//	if err != nil {
//		return err
//	}
//	return consumer.Run(ctx) // blocks; nil after a clean drain
//
// When a message is tried again and when it is given up is the business of
// package [github.com/reprise-sqs/reprise/retry], which is pure: the same policy
// can be shown, simulated and run.
package reprise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise/internal/budget"
	"github.com/reprise-sqs/reprise/internal/giveups"
	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// Consumer works off one queue. It is made by [New] or [NewBatchConsumer], or in a
// [Pool] by [Pool.Add] or [Pool.AddBatch], and runs once.
//
// Its state is plain data under one mutex; whatever waits or calls (a handler, a
// request, an observer) does so without it.
type Consumer struct {
	client    meteredClient
	queue     queueURL
	copyTo    queueURL  // where copies go that come again: queue, or that of retryLane
	retryLane *Consumer // of Config.RetryLane; nil: there is none
	handler   Handler
	cfg       Config
	log       *slog.Logger
	clock     serverClock

	workFunc func() // work or workBatches, made a func once

	runCtx    context.Context         // Run's, without its end
	pollCtx   context.Context         // of receives
	workCtx   context.Context         // of handlers; ends with cause ErrStopping
	settleCtx context.Context         // of settlements and heartbeats
	stopPolls context.CancelFunc      // each closes the context above it
	stopWork  context.CancelCauseFunc //
	stopCalls context.CancelFunc      //
	stopping  chan struct{}           // closed by drain
	tasks     sync.WaitGroup          // every goroutine of ours that is not in a handler
	freed     chan struct{}           // capacity 1: a poller may find room now
	leased    chan struct{}           // capacity 1: the keeper's next look has moved closer
	renewing  chan struct{}           // a token for each heartbeat request under way
	emptied   chan struct{}           // capacity 1, used while draining: look again

	pollLimit, settleLimit deadline

	// returnsCancelled: the endpoint makes messages visible again that a cancelled
	// receive was being handed.
	returnsCancelled atomic.Bool

	started atomic.Bool

	mu         *sync.Mutex                // its pool's, if it has one
	pool       *Pool                      // nil: its handlers have places of their own
	share      share                      // of the pool's places
	chance     *rand.Rand                 // the jitter of our own waits; retries leave nothing to chance
	crew       crew                       // goroutines for requests and whatever else is started
	handling   crew                       // those of the workers
	policy     retry.Policy               // cfg.Retry with the queue's limits filled in
	facts      queueFacts                 // what the queue's attributes say
	held       map[string]*delivery       // every message in our hands, by id
	ready      fifo                       // leased and free to start
	batches    *collector                 // makes batches of them; nil: handlers get one at a time
	gates      gates                      // what keeps messages from being ready: outages, paused keys
	dials      dials                      // what can be turned at run time
	waker      waker                      // makes parked messages visible
	groups     *groups.Machine[*delivery] // FIFO queues: of the messages that are held
	expiring   expirations                // the messages that are left to
	unsendable unsendable                 // what the dead-letter queue does not take
	memory     memory.Memory              // of messages no longer in our hands
	waiting    int                        // held, not started; ready, or behind others of their group
	running    int                        // held, in a handler
	hung       int                        // of them, those whose handlers ignore the end of their contexts
	lastMove   time.Time                  // the latest start or end of a handler
	settling   int                        // held, finished
	stuck      int                        // of these, refused again and again while SQS answers others
	stuckError error                      // the last refusal of one of them
	answered   time.Time                  // when SQS last confirmed a settlement or a heartbeat
	reserved   int                        // places asked for by receives under way
	workers    int                        // of them, those that run handlers
	summoned   bool                       // a worker was started that is yet to look for a message
	pollers    int                        // goroutines receiving
	keepAt     time.Time                  // when the keeper looks next; zero: not planned
	deletes    outbox
	hides      outbox
	copies     outbox // to the dead-letter queue
	requeues   outbox // to the queue itself
	floor      *floor // who may start; its pool's, if it has one
	after      afterwork
	follow     followUp // what the ends of messages mean for others
	draining   bool
	softEnd    time.Time     // while draining: handlers should have ended by then
	hardEnd    time.Time     // while draining: what is not settled by then will not be
	closed     bool          // nothing may be started any more
	taskTime   ewma          // how long handlers take
	budget     budget.Budget // of messages in flight
	health     healthState
	counts     Counts
	untold     []Settled // what the observer is yet to hear of
	report     Report
	said       map[string]time.Time // when each rate-limited complaint was last logged

	giveUps       giveups.Watch // whether most messages are given up
	quietTimer    *time.Timer   // ends that when none is any more; nil: it has never begun
	deadLetterLog deadLetterLog
	ordered       ordered // what the log and the observer are yet to hear of, one after the other
}

// Run consumes until ctx ends, then drains within Config.StopBudget: running
// handlers end, messages that have not started are released, settlements are
// acknowledged. It returns nil after a clean drain, [ErrDrainTimeout] if the
// budget ended first, and an error at once if Run was called before. With a
// Config.RetryLane it consumes that queue too, and both drain side by side.
//
// Trouble with SQS does not end Run: it is logged, shown by [Consumer.Status],
// and retried.
func (c *Consumer) Run(ctx context.Context) error {
	switch {
	case c.share.retryLaneOf != nil:
		return fmt.Errorf("reprise: %s is the retry lane of %s: run that queue's consumer, which runs both", c.queue.name, c.share.retryLaneOf.queue.name)
	case c.started.Load() || c.retryLane == nil:
		return c.consume(ctx)
	}
	return consumeAll(ctx, []*Consumer{c, c.retryLane})
}

// consumeAll is Run for several consumers, side by side: it returns when all have
// drained.
func consumeAll(ctx context.Context, all []*Consumer) error {
	ended := make([]error, len(all))
	var running sync.WaitGroup
	for i, c := range all {
		running.Go(func() {
			if err := c.consume(ctx); err != nil {
				ended[i] = fmt.Errorf("queue %s: %w", c.queue.name, err)
			}
		})
	}
	running.Wait()
	return errors.Join(ended...)
}

// consume is Run without the retry lane.
func (c *Consumer) consume(ctx context.Context) error {
	if !c.started.CompareAndSwap(false, true) {
		return errors.New("reprise: Run was called twice: make a new Consumer")
	}
	c.runCtx = context.WithoutCancel(ctx)
	c.pollCtx, c.stopPolls = context.WithCancel(c.runCtx)
	c.workCtx, c.stopWork = context.WithCancelCause(c.runCtx)
	c.settleCtx, c.stopCalls = context.WithCancel(c.runCtx)

	learned := c.learn(ctx)
	c.mu.Lock()
	c.health.set(HealthOK, "")
	c.startLoop("lease keeper", c.keepLeases)
	c.startLoop("poller", c.pollUntilStopped)
	if !learned {
		c.startLoop("reader of the queue's attributes", c.learnLater)
	}
	c.mu.Unlock()

	c.log.Info("consuming", "concurrency", c.cfg.Concurrency)
	<-ctx.Done()
	return c.drain()
}

// Status says what the consumer is doing. It may be called at any time from any
// goroutine.
func (c *Consumer) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status(time.Now())
}

// status is Status for a caller that holds c.mu.
func (c *Consumer) status(now time.Time) Status {
	health, problem := c.healthNow(now)
	return Status{
		Health:      health,
		Problem:     problem,
		Running:     c.running,
		Waiting:     c.waiting,
		Settling:    c.settling,
		Processing:  len(c.held),
		InBackoff:   c.memory.InBackoff(now),
		InFlight:    c.inFlight(now),
		Pollers:     c.pollers,
		Concurrency: c.dials.concurrency,
		Paused:      c.dials.paused,
		Breakers:    c.breakers(),
		GivingUp:    c.givingUp(now),
		LastReceive: c.health.lastReceive,
		LastSettle:  c.health.lastSettle,
		Counts:      c.counts,
		Calls:       c.client.counts(),
	}
}

// outboxes are all of them.
func (c *Consumer) outboxes() []*outbox {
	return []*outbox{&c.deletes, &c.hides, &c.copies, &c.requeues}
}

// Report says what became of every message. It is complete once Run has
// returned; before that it is zero.
func (c *Consumer) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}
