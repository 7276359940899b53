// Package repriselambda runs the handlers of package reprise in AWS Lambda.
//
// [SQS] makes a function for an SQS event source mapping: the same [reprise.Handler]
// under the same [retry.Policy] as in a [reprise.Consumer], with partial batch
// responses. [SQSBatch] does the same for a [reprise.BatchHandler].
//
//	handle, err := repriselambda.SQS(reprise.JSON(ship), repriselambda.Config{Client: sqsClient})
//	if err != nil {
//		log.Fatal(err)
//	}
//	lambda.Start(handle)
//
// Each invocation is a consumer that lives as long as the invocation: it receives the event's
// records, and the messages that it deletes are left out of the reply, so that Lambda deletes them.
// So attempts, waits, dead letters and the order of message groups are decided by the same code as
// in a process of your own.
//
// [RetryHandler] makes a function of the same kind for the failures of functions that are invoked
// asynchronously: it retries them, for hours or days. [Async] is for those functions.
package repriselambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// Config are the settings of [SQS] and, in [BatchConfig], of [SQSBatch]. Only Client must be set.
type Config struct {
	// Client makes the requests to SQS: a *sqs.Client. Nothing is received or deleted through it,
	// because Lambda does that. It is used for ChangeMessageVisibilityBatch after failures, for
	// SendMessageBatch when messages are given up or sent again, and for GetQueueAttributes, of
	// the queue and of its dead-letter queue, at the first invocation and about every ten minutes.
	Client reprise.Client

	// Concurrency is how many handlers, of messages or batches, run at once in one invocation.
	// Default: 10.
	Concurrency int

	// Retry decides when a failed message is attempted again and when it is given
	// up. Its MaxAttempts, if zero, is the queue's own maxReceiveCount; if the queue's attributes
	// cannot be read, [retry.DefaultMaxAttempts].
	Retry retry.Policy

	// Via is how messages that will come again are given back. FIFO queues support only
	// [reprise.ViaVisibility]. Default: [reprise.ViaAuto].
	Via reprise.Via

	// DeadLetterURL is the queue that receives messages that are given up. Default: the target of
	// the queue's own RedrivePolicy; if the queue's attributes cannot be read, none: then messages
	// that are given up are hidden for 12 hours and come again.
	DeadLetterURL string

	// Name says who wrote a dead letter's story. Default: the host's name.
	Name string

	// SigningKeys sign the histories of copies and the stories of dead letters, as
	// [reprise.Config].SigningKeys does: histories without a valid signature are ignored. Default:
	// none.
	SigningKeys []reprise.SigningKey

	// Observer is called for events. For it, a message is deleted when it has been left out of the
	// reply. Each Finding is reported once in the life of the process. Default: none.
	Observer reprise.Observer

	// Logger gets what an operator must know. Default: slog.Default().
	Logger *slog.Logger
}

// SQS returns a function for lambda.Start of aws-lambda-go that handles the events
// of an SQS event source mapping. The mapping must have the function response type
// ReportBatchItemFailures: without it Lambda deletes messages that failed.
//
// The function's errors are those of events that no mapping sends: among them those without Records,
// such as the pings that keep functions warm. All messages of such an event come again. An event
// whose Records are an empty list succeeds.
//
// Handlers' contexts have the values of the invocation's context. They end with time left to
// settle: 3 seconds before the function's deadline, or a quarter of the time if that is less.
//
// It may be called concurrently; invocations share only the attributes of the queue.
func SQS(h reprise.Handler, cfg Config) (func(context.Context, Event) (Response, error), error) {
	return newFunction("SQS", cfg, func(client reprise.Client, url string, in *invocation, l *limit, c reprise.Config) (*reprise.Consumer, error) {
		return reprise.New(client, url, l.handler(in.handler(h)), c)
	})
}

// maxRecords is the largest number of messages in an event of a mapping, and in a batch.
const maxRecords = 10_000

// BatchConfig are the settings of [SQSBatch]. Only Client must be set.
type BatchConfig struct {
	// Config has all settings except the size of batches. With a Concurrency above 10 set a Size:
	// together they permit 100,000 messages in handlers at once.
	Config

	// Size and Bytes make batches smaller than the event, as those of
	// [reprise.BatchConfig] do. Default: 10,000 messages and 16 MiB, at least as large as an event.
	Size, Bytes int
}

// SQSBatch is [SQS] for handlers of batches. A batch has all messages of the event that may go
// together, unless the BatchConfig makes it smaller: on a FIFO queue, if a message must first go to
// the dead-letter queue, the rest of its group is another batch. Each message has a verdict, as
// [reprise.BatchHandler] documents.
//
// The contexts that [reprise.MessageContext] returns end with time left to settle, too. A failure
// that the handler reports then counts as an attempt. A batch that would not end in time, judged by
// the longest batch of the invocation in which a message succeeded, is not started: its messages
// come back at once.
func SQSBatch(h reprise.BatchHandler, cfg BatchConfig) (func(context.Context, Event) (Response, error), error) {
	batch := reprise.BatchConfig{Size: cmp.Or(cfg.Size, maxRecords), Bytes: cfg.Bytes, Linger: -1}
	return newFunction("SQSBatch", cfg.Config, func(client reprise.Client, url string, in *invocation, l *limit, c reprise.Config) (*reprise.Consumer, error) {
		batch := batch
		batch.Config = c
		batch.Observer = reprise.Observers(l.observer(), c.Observer)
		return reprise.NewBatchConsumer(client, url, l.batchHandler(in.batchHandler(h)), batch)
	})
}

// function is the state that outlives an invocation.
type function struct {
	newConsumer newConsumer
	cfg         Config

	mu      sync.Mutex
	sources map[string]*source // by URL
}

// newConsumer makes the consumer of one invocation.
type newConsumer func(reprise.Client, string, *invocation, *limit, reprise.Config) (*reprise.Consumer, error)

// newFunction returns the function of that name; newConsumer makes its consumers.
func newFunction(name string, cfg Config, n newConsumer) (func(context.Context, Event) (Response, error), error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	f := &function{newConsumer: n, cfg: cfg, sources: make(map[string]*source)}
	const some = "https://sqs.us-east-1.amazonaws.com/000000000000/some" // the events name the queue
	if _, err := n(cfg.Client, some, nil, nil, f.consumerConfig(&source{}, nil)); err != nil {
		return nil, fmt.Errorf("repriselambda.%s: %w", name, err)
	}
	return f.handle, nil
}

const (
	// maxSettleTime is the time at the end of an invocation that is reserved for settling, and a
	// fifth of it for the reply; in short invocations it is a quarter.
	maxSettleTime = 3 * time.Second

	// lease is longer than a function may run, and is never renewed: messages that succeed cost no
	// call. During the invocation the queue's visibility timeout holds the messages, and Lambda
	// makes sure that it is no shorter than the function's timeout.
	lease = time.Hour
)

// handle handles one event.
func (f *function) handle(ctx context.Context, event Event) (Response, error) {
	switch {
	case event.Records == nil: // a program made it, and not JSON
		return Response{}, errNoRecords
	case len(event.Records) == 0:
		return event.response(nil), nil
	}
	url, err := event.queueURL()
	if err != nil {
		return Response{}, fmt.Errorf("repriselambda: the event is not one of an SQS event source mapping: %w", err)
	}
	invoked := ctx
	var stop context.CancelFunc
	var l *limit             // nil: none
	var budget time.Duration // zero: the consumer's default
	if end, ok := ctx.Deadline(); ok {
		settling := min(maxSettleTime, time.Until(end)/4)
		budget = max(settling*4/5, time.Millisecond)
		end = end.Add(-settling)
		l = newLimit(end)
		ctx, stop = context.WithDeadline(ctx, end)
	} else {
		ctx, stop = context.WithCancel(ctx)
	}
	defer stop()

	queue := f.source(url)
	in := newInvocation(ctx, stop, f.cfg.Client, queue, url, event)
	cfg := f.consumerConfig(queue, in)
	cfg.StopBudget = budget
	consumer, err := f.newConsumer(in, url, in, l, cfg)
	if err != nil {
		return Response{}, fmt.Errorf("repriselambda: %w", err) // Config.DeadLetterURL is the queue itself
	}
	if err := consumer.Run(ctx); errors.Is(err, reprise.ErrDrainTimeout) {
		report := consumer.Report()
		in.hideUnsettled(invoked, report.Unsettled)
		f.cfg.Logger.ErrorContext(ctx, "the function's time was over; what is not settled comes back after the queue's visibility timeout",
			"queue", url, "running", report.Abandoned, "unsettled", report.Unsettled)
	}
	return event.response(in.succeeded()), nil
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
		SigningKeys:   f.cfg.SigningKeys,
		// A breaker would hold the messages of one invocation, and use up its time.
		Outage:   reprise.Outage{Off: true},
		Observer: reprise.Observers(user, own),
		Logger:   slog.New(occasional{f.cfg.Logger.Handler(), queue}),
	}
}

// source returns the state of the queue at url.
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
