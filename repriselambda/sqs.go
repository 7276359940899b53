// Package repriselambda runs the handlers of package reprise in AWS Lambda.
//
// [SQS] makes a function for an SQS event source mapping: the same [reprise.Handler]
// under the same [retry.Policy] as in a [reprise.Consumer], with partial batch
// responses.
//
//	handle, err := repriselambda.SQS(reprise.JSON(ship), repriselambda.Config{Client: sqsClient})
//	if err != nil {
//		log.Fatal(err)
//	}
//	lambda.Start(handle)
//
// An invocation is a consumer that lives as long as the invocation: what it
// receives is the event's records, and what it deletes is left out of the reply, so
// that Lambda deletes it. So attempts, waits, dead letters and the order of message
// groups are decided by the very code that decides them in a process of one's own.
//
// [RetryHandler] makes a function of the same kind, whose messages are the failures
// of functions that are invoked asynchronously: it runs them again, for hours or days.
// [Async] is for those functions.
package repriselambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// Config says how [SQS] works. Only Client must be set.
type Config struct {
	// Client makes the requests to SQS: a *sqs.Client as it is. Nothing is received
	// or deleted through it, that is Lambda's work. It is used for
	// ChangeMessageVisibilityBatch where messages failed, SendMessageBatch where they
	// are given up or sent again, and GetQueueAttributes, once for the queue and once
	// for its dead-letter queue in the life of the process.
	Client reprise.Client

	// Concurrency is how many handlers run at once in one invocation. Default: 10.
	Concurrency int

	// Retry decides when a failed message is attempted again and when it is given
	// up. Its MaxAttempts, if zero, is the queue's own maxReceiveCount; where the
	// queue's attributes cannot be read, [retry.DefaultMaxAttempts].
	Retry retry.Policy

	// Via says how messages that are to come again are given back. FIFO queues know
	// [reprise.ViaVisibility] only. Default: [reprise.ViaAuto].
	Via reprise.Via

	// DeadLetterURL is the queue that receives what is given up. Default: the target
	// of the queue's own RedrivePolicy; where the queue's attributes cannot be read,
	// none: what is given up is hidden for 12 hours and comes again.
	DeadLetterURL string

	// Name says who wrote a dead letter's story. Default: the host's name.
	Name string

	// Observer is told what happens. To it, a message is deleted when it has been left
	// out of the reply. A Finding is told once in the life of the process. Default:
	// nobody.
	Observer reprise.Observer

	// Logger gets what an operator must know. Default: slog.Default().
	Logger *slog.Logger
}

// SQS returns a function for lambda.Start of aws-lambda-go that handles the events
// of an SQS event source mapping. The mapping must have the function response type
// ReportBatchItemFailures: without it Lambda deletes what failed.
//
// The function's errors are those of events that no mapping sends. All messages of
// such an event come again.
//
// Handlers' contexts carry what the invocation's does. They end with time left to
// settle: 3 seconds before the function's deadline, or a quarter of the time if that is
// less.
//
// It may be called concurrently; invocations share nothing but what the attributes
// of the queue say.
func SQS(h reprise.Handler, cfg Config) (func(context.Context, Event) (Response, error), error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	f := &function{handler: h, cfg: cfg, sources: make(map[string]*source)}
	const some = "https://sqs.us-east-1.amazonaws.com/000000000000/some" // the events say which
	if _, err := reprise.New(cfg.Client, some, h, f.consumerConfig(&source{}, nil)); err != nil {
		return nil, fmt.Errorf("repriselambda.SQS: %w", err)
	}
	return f.handle, nil
}

// function is what outlives an invocation.
type function struct {
	handler reprise.Handler
	cfg     Config

	mu      sync.Mutex
	sources map[string]*source // by URL
}

const (
	// maxSettleTime is the end of an invocation that is kept for settling, for the
	// reply a fifth of it; of short invocations it is a quarter.
	maxSettleTime = 3 * time.Second

	// lease is longer than a function may run, and is never renewed: no message that
	// succeeds costs a call. What holds a message during the invocation is the queue's
	// visibility timeout, of which Lambda sees to it that it is no shorter than the
	// function's.
	lease = time.Hour
)

// handle works off one event.
func (f *function) handle(ctx context.Context, event Event) (Response, error) {
	if len(event.Records) == 0 {
		return event.response(nil), nil
	}
	url, err := event.queueURL()
	if err != nil {
		return Response{}, fmt.Errorf("repriselambda: the event is not one of an SQS event source mapping: %w", err)
	}
	handler, stop := f.handler, context.CancelFunc(nil)
	var budget time.Duration // zero: the consumer's default
	if end, ok := ctx.Deadline(); ok {
		settling := min(maxSettleTime, time.Until(end)/4)
		budget = max(settling*4/5, time.Millisecond)
		end = end.Add(-settling)
		handler = endingAt(end, handler)
		ctx, stop = context.WithDeadline(ctx, end)
	} else {
		ctx, stop = context.WithCancel(ctx)
	}
	defer stop()

	queue := f.source(url)
	in := newInvocation(ctx, stop, f.cfg.Client, queue, event)
	cfg := f.consumerConfig(queue, in)
	cfg.StopBudget = budget
	consumer, err := reprise.New(in, url, handler, cfg)
	if err != nil {
		return Response{}, fmt.Errorf("repriselambda: %w", err) // Config.DeadLetterURL is the queue itself
	}
	if err := consumer.Run(ctx); errors.Is(err, reprise.ErrDrainTimeout) {
		report := consumer.Report()
		f.cfg.Logger.ErrorContext(ctx, "the function's time was over; what is not settled comes back after the queue's visibility timeout",
			"queue", url, "running", report.Abandoned, "unsettled", report.Unsettled)
	}
	return event.response(in.succeeded()), nil
}

var errNoTime = errors.New("the function's time is nearly over")

// endingAt is h with a context that ends at that time: an attempt that took too long
// has failed, and there is time left to say so. What would not end in time, by the
// longest run that succeeded in this invocation, is not begun: it is released.
func endingAt(end time.Time, h reprise.Handler) reprise.Handler {
	var longest atomic.Int64
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		began := time.Now()
		if left := end.Sub(began); left <= time.Duration(longest.Load()) {
			return reprise.Release(0, errNoTime)
		}
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		if err := h.Handle(ctx, m); err != nil {
			return err
		}
		for took, known := int64(time.Since(began)), longest.Load(); took > known && !longest.CompareAndSwap(known, took); {
			known = longest.Load()
		}
		return nil
	})
}

// consumerConfig is the configuration of the consumer of one invocation.
func (f *function) consumerConfig(queue *source, in *invocation) reprise.Config {
	user := f.cfg.Observer
	user.Finding = queue.once(user.Finding)
	own := reprise.Observer{
		Attempt: func(_ context.Context, a reprise.Attempt) { in.attempted(a) },
		Settled: func(_ context.Context, s reprise.Settled) { in.over(s.Message.ID) },
	}
	return reprise.Config{
		Concurrency:   f.cfg.Concurrency,
		Retry:         f.cfg.Retry,
		Via:           f.cfg.Via,
		FIFO:          reprise.FIFOBlock,
		InFlightQuota: -1,
		Lease:         lease,
		DeadLetterURL: f.cfg.DeadLetterURL,
		Name:          f.cfg.Name,
		// A breaker would hold the messages of one invocation, at the price of its time.
		Outage:   reprise.Outage{Off: true},
		Observer: reprise.Observers(user, own),
		Logger:   slog.New(occasional{f.cfg.Logger.Handler(), queue}),
	}
}

// source returns what is kept of the queue at url.
func (f *function) source(url string) *source {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[url]
	if s == nil {
		s = &source{}
		f.sources[url] = s
	}
	return s
}
