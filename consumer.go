// Package reprise consumes Amazon SQS queues, and retries work that fails.
//
// A [Consumer] receives messages, runs a [Handler] for each, and then does with the message
// what the handler decided: it deletes it, retries it after a backoff with jitter, releases
// it, or dead-letters it with the story of its failures. It keeps the lease on every message
// it holds from receipt until SQS has acknowledged the settlement, batches its calls, and
// drains without loss when it is stopped.
//
//	consumer, err := reprise.New(sqsClient, queueURL, reprise.JSON(ship), reprise.Config{})
//	if err != nil {
//		return err
//	}
//	return consumer.Run(ctx) // blocks; nil after a clean drain
//
// Package [github.com/reprise-sqs/reprise/retry] decides when a message is tried again and
// when it is given up. Its functions are pure, so that the same policy can be shown,
// simulated and run.
package reprise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Consumer consumes one queue. [New] or [NewBatchConsumer] makes it or, in a [Pool],
// [Pool.Add] or [Pool.AddBatch]. It runs once.
//
// It is the shell of a [consumer.Machine], which makes the decisions. Handlers, requests and
// observers run here, and without the mutex.
type Consumer struct {
	cfg         Config
	queue       queueURL
	copyTo      queueURL       // where copies of messages to be tried again go: queue, or the retry lane
	batch       consumer.Batch // zero: handlers get one message at a time
	pool        *Pool          // nil: its handlers have places of their own
	retryLaneOf *Consumer      // whose retry lane its queue is; nil: its queue is no retry lane
	clock       serverClock
	log         *slog.Logger

	client       meteredClient
	platform     platform
	handler      Handler
	retryLane    *Consumer    // of Config.RetryLane; nil: there is none
	batchHandler BatchHandler // nil: handlers get one message at a time

	runCtx    context.Context         // Run's, without its end
	pollCtx   context.Context         // of receives
	workCtx   context.Context         // of handlers; ends with cause ErrStopping
	settleCtx context.Context         // of settlements and heartbeats
	stopPolls context.CancelFunc      // these three end the three contexts above
	stopWork  context.CancelCauseFunc //
	stopCalls context.CancelFunc      //
	tasks     sync.WaitGroup          // every goroutine of ours that is not in a handler
	emptied   chan struct{}           // capacity 1: tells drain to look whether all is settled

	pollLimit, settleLimit deadline

	lastRead lastRead // of the queue's attributes

	// returnsCancelled: the endpoint makes the messages of a cancelled receive visible
	// again.
	returnsCancelled atomic.Bool

	started atomic.Bool

	mu         *machineLock                // its pool's, if it has one
	guarded    *consumer.Machine           // by mu: enter and look hand it out
	report     Report                      // by mu
	closed     bool                        // by mu: report is set
	working    atomic.Int64                // workers, which run handlers
	deadLetter queueURL                    // by mu: zero if there is none, or it is not known
	ringsAt    time.Time                   // by mu: when the timer of arm fires; zero: it is not set
	callers    goroutines[consumer.Effect] // by mu: for all effects but handlers
	workers    goroutines[struct{}]        // by mu: for handlers
}

// Run consumes until ctx ends, then drains within Config.StopBudget: running
// handlers end, messages that have not started are released, settlements are
// acknowledged. It returns nil after a clean drain, [ErrDrainTimeout] if the
// budget ended first, and an error at once if Run was called before. With a
// Config.RetryLane it consumes that queue too, and both drain side by side.
//
// Errors of SQS do not end Run: they are logged and shown by [Consumer.Status], and the
// requests are retried. A bug in this package does, if it panics: Run cancels the handlers' contexts
// with the cause ErrStopping, logs the stack, and returns an error without settling anything more.
// The messages come again when their leases end. All consumers of a pool end then.
func (c *Consumer) Run(ctx context.Context) error {
	switch {
	case c.retryLaneOf != nil:
		return fmt.Errorf("reprise: %s is the retry lane of %s: run that queue's consumer, which runs both", c.queue.name, c.retryLaneOf.queue.name)
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
	c.makeContexts(ctx)

	c.learn(ctx)
	c.enter(func(m *consumer.Machine) {
		m.Start(ctx.Err() != nil)
		m.LearnLater()
	})

	c.log.Info("consuming", "concurrency", c.cfg.Concurrency)
	select {
	case <-ctx.Done():
	case <-c.mu.broken:
	}
	return c.drain()
}

// makeContexts makes the contexts of a consumer that begins to run.
func (c *Consumer) makeContexts(ctx context.Context) {
	c.runCtx = context.WithoutCancel(ctx)
	c.pollCtx, c.stopPolls = context.WithCancel(c.runCtx)
	c.workCtx, c.stopWork = context.WithCancelCause(c.runCtx)
	c.settleCtx, c.stopCalls = context.WithCancel(c.runCtx)
}

// Status returns what the consumer is doing. It may be called at any time from any
// goroutine.
func (c *Consumer) Status() (s Status) {
	if !c.look(func(m *consumer.Machine) { s = statusOf(m.Status(m.Now()), c.client.counts()) }) {
		c.mu.Lock()
		defer c.mu.Unlock()
		s = c.brokenStatus()
	}
	return s
}

// Report returns a report on what happened to all messages. It is zero until Run has returned.
func (c *Consumer) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}
