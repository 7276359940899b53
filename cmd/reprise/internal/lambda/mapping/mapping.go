// Package mapping runs SQS event source mappings on this machine: the part of Lambda between a
// queue and a function. It receives, gathers batches, invokes, reads partial batch responses and
// deletes the messages that succeeded, on the queues of the embedded server.
//
// Some of it is simpler here. Without a MaximumConcurrency a mapping runs five batches at once,
// as Lambda does at first, and does not grow to 1,000 under load; provisioned pollers do not
// exist; and a batch window is kept exactly, where Lambda may wait for 20 s on a queue with
// little traffic.
package mapping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Config describes a mapping in the words of Lambda's CreateEventSourceMapping. See
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
type Config struct {
	// Queue is the ARN of the queue, which must exist; required.
	Queue string
	// Function is the function's name, for the log.
	Function string
	// BatchSize is the most messages of one event: 1 to 10,000, on a FIFO queue to 10.
	// Default: 10.
	BatchSize int
	// Window is how long a batch may wait for more messages, 0 to 5 minutes, counted
	// from its first one. It ends early when the batch has BatchSize messages or 6 MB.
	// More than 10 messages need a window, and a FIFO queue has none. Default: none.
	Window time.Duration
	// MaximumConcurrency is the most events that the function handles at once, 2 to
	// 1,000. Default: 5.
	MaximumConcurrency int
	// ReportBatchItemFailures lets the function's reply name the messages that failed. Default:
	// the reply is ignored, and an event fails as a whole.
	ReportBatchItemFailures bool
	// Filters are patterns of FilterCriteria. A message that matches none is deleted,
	// as Lambda does. Default: no filter.
	Filters []string
	// TimeScale is how many times as fast a Window passes. Default: 1.
	TimeScale float64
	// Logger gets failed events and what happens to their messages. Default: slog.Default().
	Logger *slog.Logger
}

// Limits of Lambda.
const (
	maxBatchSize     = 10_000
	maxFIFOBatchSize = 10
	maxReceive       = 10 // messages of one ReceiveMessage
	maxWindow        = 5 * time.Minute
	minConcurrency   = 2
	maxConcurrency   = 1000
	maxFilters       = 10 // 5 unless the account's quota was raised

	defaultBatchSize   = 10
	defaultConcurrency = 5
)

// Invoke invokes the function and waits for its answer. An error means that the function was not
// reached; see [emulator.Error].
type Invoke func(ctx context.Context, event []byte) (emulator.Result, error)

// Mapping is a mapping between a queue and a function.
type Mapping struct {
	cfg     Config
	server  *sqsserver.Server
	url     string
	fifo    bool
	filters filters
	invoke  Invoke
	limit   *limit
	log     *slog.Logger
}

// New returns a mapping of a queue of server to the function that invoke invokes. Its
// error names everything in cfg that Lambda would refuse.
func New(server *sqsserver.Server, invoke Invoke, cfg Config) (*Mapping, error) {
	ctx := sqsserver.WithoutFaults(context.Background())
	url, err := queueURL(ctx, server, cfg.Queue)
	if err != nil {
		return nil, err
	}
	attributes, err := server.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []string{"All"}})
	if err != nil {
		return nil, fmt.Errorf("reading the attributes of %s: %w", cfg.Queue, err)
	}
	fifo := attributes.Attributes["FifoQueue"] == "true"
	cfg.BatchSize = cmp.Or(cfg.BatchSize, defaultBatchSize)
	cfg.MaximumConcurrency = cmp.Or(cfg.MaximumConcurrency, defaultConcurrency)
	cfg.TimeScale = cmp.Or(cfg.TimeScale, 1)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	filters, filterErr := compileFilters(cfg.Filters)
	if err := errors.Join(cfg.validate(fifo), filterErr); err != nil {
		return nil, fmt.Errorf("mapping of %s to %s: %w", cfg.Queue, cfg.Function, err)
	}
	return &Mapping{
		cfg: cfg, server: server, url: url, fifo: fifo, filters: filters, invoke: invoke,
		limit: newLimit(cfg.MaximumConcurrency),
		log:   cfg.Logger.With("queue", cfg.Queue, "function", cfg.Function),
	}, nil
}

// queueURL returns the URL for direct calls of the queue with that ARN.
func queueURL(ctx context.Context, server *sqsserver.Server, arn string) (string, error) {
	part := strings.Split(arn, ":")
	if len(part) != 6 || part[0] != "arn" || part[2] != "sqs" {
		return "", fmt.Errorf("queue %q is not the ARN of a queue: write it like arn:aws:sqs:us-east-1:000000000000:orders", arn)
	}
	out, err := server.GetQueueUrl(ctx, &sqsserver.GetQueueUrlInput{QueueName: part[5], QueueOwnerAWSAccountId: part[4]})
	if err != nil {
		return "", fmt.Errorf("finding queue %s: %w", arn, err)
	}
	return out.QueueUrl, nil
}

// validate returns what Lambda would refuse of the mapping alone.
func (c *Config) validate(fifo bool) error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	most := maxBatchSize
	if fifo {
		most = maxFIFOBatchSize
	}
	if c.BatchSize < 1 || c.BatchSize > most {
		refuse("BatchSize is %d: for this queue it may be 1 to %d", c.BatchSize, most)
	}
	switch {
	case c.Window < 0 || c.Window > maxWindow:
		refuse("the batch window is %v: it may be 0 to %v", c.Window, maxWindow)
	case fifo && c.Window > 0:
		refuse("the batch window is %v: a FIFO queue has none, leave it out", c.Window)
	case !fifo && c.BatchSize > maxReceive && c.Window < time.Second:
		refuse("BatchSize is %d and the batch window %v: Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10", c.BatchSize, c.Window)
	}
	if c.MaximumConcurrency < minConcurrency || c.MaximumConcurrency > maxConcurrency {
		refuse("MaximumConcurrency is %d: it may be %d to %d", c.MaximumConcurrency, minConcurrency, maxConcurrency)
	}
	if !(c.TimeScale > 0) || math.IsInf(c.TimeScale, 1) { // NaN is not above 0 either
		refuse("TimeScale is %v: it is a positive factor", c.TimeScale)
	}
	return errors.Join(problems...)
}

// Run receives and invokes until ctx ends. It returns when the last event that was
// running then has been answered and settled. Messages that no function has seen by
// then become visible again.
func (m *Mapping) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for m.limit.acquire(ctx) {
		b := m.gather(ctx)
		if ctx.Err() != nil {
			m.release(b.messages)
			return
		}
		running.Go(func() { m.limit.release(m.handle(ctx, b)) })
	}
}
