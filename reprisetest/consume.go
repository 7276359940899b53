package reprisetest

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// Consumer is a consumer at work on a [Queue], until the test ends or stops it.
type Consumer struct {
	*reprise.Consumer

	cancel context.CancelFunc // ends Run's context
	crash  context.CancelFunc // ends the connection, and every handler
	done   chan struct{}      // closed when Run has returned
	err    error              // its result
}

// Consume starts a consumer of q that reaches the server directly, without HTTP.
// It logs to the test's output unless cfg has a Logger, and is stopped when the
// test ends.
func (q *Queue) Consume(h reprise.Handler, cfg reprise.Config) *Consumer {
	q.tb.Helper()
	return q.ConsumeWith(q.Direct(), h, cfg)
}

// ConsumeWith is Consume through a client of the caller's, such as [Queue.Client]:
// the real SDK.
func (q *Queue) ConsumeWith(client reprise.Client, h reprise.Handler, cfg reprise.Config) *Consumer {
	q.tb.Helper()
	return q.consume(cfg, func(alive context.Context, cfg reprise.Config) (*reprise.Consumer, error) {
		client, h := severable{client, alive}, mortal{h, alive}
		if q.pool != nil {
			return q.pool.Add(client, q.URL(), h, q.share, cfg)
		}
		return reprise.New(client, q.URL(), h, cfg)
	})
}

// In returns q for consumers that share the places of pool: those that it starts are
// made by [reprise.Pool.Add] with that share.
//
//	q.In(pool, reprise.Share{Priority: 1}).Consume(handler, reprise.Config{})
func (q *Queue) In(pool *reprise.Pool, s reprise.Share) *Queue {
	pooled := *q
	pooled.pool, pooled.share = pool, s
	return &pooled
}

// ConsumeBatch is Consume with a handler of batches.
func (q *Queue) ConsumeBatch(h reprise.BatchHandler, cfg reprise.BatchConfig) *Consumer {
	q.tb.Helper()
	return q.ConsumeBatchWith(q.Direct(), h, cfg)
}

// ConsumeBatchWith is ConsumeWith with a handler of batches.
func (q *Queue) ConsumeBatchWith(client reprise.Client, h reprise.BatchHandler, cfg reprise.BatchConfig) *Consumer {
	q.tb.Helper()
	return q.consume(cfg.Config, func(alive context.Context, common reprise.Config) (*reprise.Consumer, error) {
		client, h := severable{client, alive}, mortalBatch{h, alive}
		cfg.Config = common
		if q.pool != nil {
			return q.pool.AddBatch(client, q.URL(), h, q.share, cfg)
		}
		return reprise.NewBatchConsumer(client, q.URL(), h, cfg)
	})
}

// consume starts the consumer that build returns, for as long as its context lives.
func (q *Queue) consume(cfg reprise.Config, build func(alive context.Context, cfg reprise.Config) (*reprise.Consumer, error)) *Consumer {
	q.tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(q.tb.Output(), nil))
	}
	alive, crash := context.WithCancel(context.Background())
	consumer, err := build(alive, cfg)
	if err != nil {
		crash()
		q.tb.Fatalf("reprisetest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Consumer{Consumer: consumer, cancel: cancel, crash: crash, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = consumer.Run(ctx)
	}()
	q.tb.Cleanup(func() {
		c.Stop()
		crash()
	})
	return c
}

// Stop ends the consumer's work, as a SIGTERM would, and returns its report once
// it has drained.
func (c *Consumer) Stop() reprise.Report {
	c.cancel()
	<-c.done
	return c.Report()
}

// Err waits for the end of Run and returns its error.
func (c *Consumer) Err() error {
	<-c.done
	return c.err
}

// Crash ends the consumer like a killed process: from now on its requests do not arrive, replies do
// not reach it, and handlers are cancelled. It does not wait for handlers that ignore their
// contexts.
func (c *Consumer) Crash() {
	c.crash()
	c.cancel()
}

// mortal is a handler whose context ends when its process crashes.
type mortal struct {
	reprise.Handler
	alive context.Context
}

func (m mortal) Handle(ctx context.Context, msg *reprise.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.alive, cancel)()
	return m.Handler.Handle(ctx, msg)
}

// mortalBatch is mortal for a handler of batches.
type mortalBatch struct {
	reprise.BatchHandler
	alive context.Context
}

func (m mortalBatch) HandleBatch(ctx context.Context, ms []*reprise.Message) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.alive, cancel)()
	return m.BatchHandler.HandleBatch(ctx, ms)
}

// errSevered is the error of a crashed consumer's calls.
var errSevered = errors.New("reprisetest: the consumer has crashed: its connection is severed")

// severable is a client that a crash cuts off. A reply that comes after the crash is lost, although
// its request has been carried out.
type severable struct {
	client reprise.Client
	alive  context.Context
}

// through makes a call unless the connection is severed.
func through[In, Out any](s severable, ctx context.Context, in *In, opts []func(*sqs.Options), call func(context.Context, *In, ...func(*sqs.Options)) (*Out, error)) (*Out, error) {
	if s.alive.Err() != nil {
		return nil, errSevered
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.alive, cancel)() // a cut connection ends the call under way
	out, err := call(ctx, in, opts...)
	if s.alive.Err() != nil {
		return nil, errSevered
	}
	return out, err
}

func (s severable) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return through(s, ctx, in, opts, s.client.ReceiveMessage)
}

func (s severable) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return through(s, ctx, in, opts, s.client.DeleteMessageBatch)
}

func (s severable) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return through(s, ctx, in, opts, s.client.ChangeMessageVisibilityBatch)
}

func (s severable) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return through(s, ctx, in, opts, s.client.SendMessageBatch)
}

func (s severable) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return through(s, ctx, in, opts, s.client.GetQueueAttributes)
}
