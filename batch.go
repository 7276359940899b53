package reprise

import (
	"context"
	"fmt"
	"time"
)

// BatchHandler works on several messages at once: one insert of a thousand rows instead of a
// thousand inserts. See [NewBatchConsumer].
//
// HandleBatch returns nil if all messages succeeded, or one verdict for each message: errs[i] is
// the verdict on ms[i], and settles it as the error of a [Handler] would. Each message has an
// attempt, a lease, a backoff and a dead letter of its own: a message that fails does not affect
// the others. A panic is an attempt that failed, of every message of the batch; so is a slice of
// any other length, an empty one included. ms may be reordered, and verdicts then follow it.
//
// On FIFO queues a batch can have several messages of a group, in order. If one of them
// fails, the messages of its group behind it run again, after it: their verdicts are
// ignored, and no attempt is counted for them. So a handler that works message by message
// stops a group at its first failure, and may return any verdict on the rest.
//
// The context ends as a Handler's does. It is that of the whole batch: its [context.Cause] is
// [ErrLeaseLost] only when the leases on all of its messages are lost. When some leases are
// lost, the work on the other messages continues: [MessageContext] tells which are lost, and the
// verdicts on those are ignored, except success, which still deletes. HandleBatch is called
// concurrently, at most [Config].Concurrency calls at once.
type BatchHandler interface {
	HandleBatch(ctx context.Context, ms []*Message) (errs []error)
}

// BatchHandlerFunc is an adapter that makes an ordinary function a [BatchHandler].
type BatchHandlerFunc func(ctx context.Context, ms []*Message) []error

// HandleBatch calls f.
func (f BatchHandlerFunc) HandleBatch(ctx context.Context, ms []*Message) []error { return f(ctx, ms) }

// BatchConfig configures a consumer of batches. The zero BatchConfig works.
//
// A batch goes to the [BatchHandler] when it has Size messages or Bytes, or when its first
// message was received Linger ago, whichever comes first, and a handler is free. Messages
// that wait keep their leases. When the consumer stops, messages that wait run at once if
// there is time for them, and are given back otherwise, as those are that wait for a
// [Handler]. In an outage the canary runs alone, and while handlers are started again
// afterwards messages do not linger.
type BatchConfig struct {
	// Config has the other settings. Concurrency counts batches; the default of Prefetch is
	// one batch, ten messages at least; HandlerTimeout is that of a batch; and Rate counts
	// messages: a batch of ten uses up the rate of ten.
	Config

	// Size is how many messages a batch has at most, from 1 to 10,000; Size times
	// Concurrency is at most 100,000. More than the default needs a Linger that is long
	// enough to receive them. Default: 10, as many as one receive brings.
	Size int

	// Linger is how long the first message of a batch may wait for others after its
	// receipt, at most 1 h. Negative: not at all; a batch is then made of the messages that
	// are ready when a handler is free. Default: 1 s.
	Linger time.Duration

	// Bytes is how many bytes the bodies and attributes of a batch may have together, as
	// SQS counts them; a larger message is a batch of its own. It also limits the memory
	// for messages: receiving pauses while the consumer holds as many bytes as Concurrency
	// batches and one more may have. The messages of receives under way come on top.
	// Default: 16 MiB, so that ten of the largest messages make a batch.
	Bytes int
}

const (
	defaultBatchSize   = maxBatch
	defaultBatchLinger = time.Second
	defaultBatchBytes  = 16 << 20

	maxBatchSize   = 10_000
	maxBatchLinger = time.Hour
)

// batchDefaults returns b with the defaults of Size, Linger and Bytes.
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

// validateBatch returns every problem of Size, Linger and Bytes, whose defaults are filled
// in.
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

// batchSize returns how many messages a handler gets at once, at most.
func (c *Consumer) batchSize() int { return max(1, c.batch.Size) }
