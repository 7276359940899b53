package reprise

import (
	"context"
	"fmt"
	"time"
)

// BatchHandler works on several messages at once: one insert of a thousand rows in
// place of a thousand inserts. See [NewBatchConsumer].
//
// HandleBatch returns nil if all messages succeeded, or one verdict for each: errs[i]
// is on ms[i], and settles it as the error of a [Handler] would. Each message has
// an attempt, a lease, a backoff and a dead letter of its own: one that fails costs
// its neighbours nothing. A panic is an attempt that failed, of every message of
// the batch; so is a slice of any other length, an empty one included. ms may be
// reordered, and verdicts then follow it.
//
// On FIFO queues a batch can hold several messages of a group, in order. Behind the
// first that fails, whatever its verdict, the rest of its group in the batch is run
// again, behind it: what the handler says of them is ignored, and counts as no
// attempt. So a handler that works message by message stops a group at its first
// failure, and may return any verdict on what is behind.
//
// The context ends as a Handler's does. It is that of the whole batch: its
// [context.Cause] is [ErrLeaseLost] only when the leases on all of its messages are
// lost. When some are, the others' work goes on: [MessageContext] tells which, and
// what is returned on those is ignored, except success, which still deletes. HandleBatch
// is called concurrently, at most [Config].Concurrency calls at once.
type BatchHandler interface {
	HandleBatch(ctx context.Context, ms []*Message) (errs []error)
}

// BatchHandlerFunc lets an ordinary function be a [BatchHandler].
type BatchHandlerFunc func(ctx context.Context, ms []*Message) []error

// HandleBatch calls f.
func (f BatchHandlerFunc) HandleBatch(ctx context.Context, ms []*Message) []error { return f(ctx, ms) }

// BatchConfig says how a consumer of batches works. The zero BatchConfig works.
//
// Size, Linger and Bytes say when what has been received goes to the [BatchHandler]:
// when it is Size messages or Bytes, or when the first of them was received Linger ago,
// whichever comes first, and a handler is free. Messages that wait keep their leases.
// When the consumer stops, what waits runs at once if there is time for it, and is given
// back otherwise; so are messages that wait for a [Handler]. An outage's canary
// runs alone, and what follows it while handlers are started again does not linger.
type BatchConfig struct {
	// Config says the rest. Its Concurrency counts batches, at once; Prefetch is a batch
	// by default, ten messages at least; HandlerTimeout is for a batch; and Rate counts
	// messages, a batch of ten taking the time of ten.
	Config

	// Size is the most messages of a batch, from 1 to 10,000, and together with
	// Concurrency 100,000 in handlers at once. More than the default asks for a
	// Linger long enough to receive them. Default: 10, as many as one receive brings.
	Size int

	// Linger is how long the first message of a batch may wait for others after its
	// receipt, at most 1 h. Negative: not at all; a batch is then what is here when
	// a handler is free. Default: 1 s.
	Linger time.Duration

	// Bytes is the most that the bodies and attributes of a batch may have, in bytes
	// as SQS counts them; a larger message is a batch of its own. It bounds the memory
	// for messages too: receiving pauses while the consumer holds as much as
	// Concurrency batches and one more may have, whatever the messages are waiting
	// for. What receives under way bring comes on top. Default: 16 MiB, so that ten of
	// the largest messages make a batch.
	Bytes int
}

const (
	defaultBatchSize   = maxBatch
	defaultBatchLinger = time.Second
	defaultBatchBytes  = 16 << 20

	maxBatchSize   = 10_000
	maxBatchLinger = time.Hour
)

// batchDefaults returns b with the defaults of what a batch is.
func (b BatchConfig) batchDefaults() BatchConfig {
	if b.Size == 0 {
		b.Size = defaultBatchSize
	}
	switch {
	case b.Linger == 0:
		b.Linger = defaultBatchLinger
	case b.Linger < 0:
		b.Linger = 0
	}
	if b.Bytes == 0 {
		b.Bytes = defaultBatchBytes
	}
	return b
}

// validateBatch returns every problem of what a batch is, with its defaults filled in.
func (b BatchConfig) validateBatch() []error {
	var problems []error
	bad := func(field string, value any, problem string) {
		problems = append(problems, fmt.Errorf("BatchConfig.%s is %v: %s", field, value, problem))
	}
	if b.Size < 1 || b.Size > maxBatchSize {
		bad("Size", b.Size, fmt.Sprintf("set 1 to %d messages, or 0 for %d", maxBatchSize, defaultBatchSize))
	}
	if b.Linger > maxBatchLinger {
		bad("Linger", b.Linger, fmt.Sprintf("set at most %v, 0 for %v, or a negative duration for none", maxBatchLinger, defaultBatchLinger))
	}
	if b.Bytes < 1 {
		bad("Bytes", b.Bytes, fmt.Sprintf("set a positive number, or 0 for %d", defaultBatchBytes))
	}
	return problems
}

// batchSize is how many messages a handler gets at once, at most.
func (c *Consumer) batchSize() int { return max(1, c.batch.Size) }
