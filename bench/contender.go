package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// workload is the source of a contender's messages.
type workload interface {
	Work(n int)   // put n messages into the queue and wait until they are deleted
	Calls() int64 // requests made so far
	Close()       // end the waiting receives
}

// contender is a running consumer of a queue that waits for messages.
type contender struct {
	name  string
	queue workload
	done  func() error // waits for its end, after queue.Close
}

// stop ends the contender.
func (c *contender) stop() error {
	c.queue.Close()
	if err := c.done(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// startRawLoop starts the loop that one writes without a library: k goroutines, each of which
// receives ten messages, handles them and deletes them. It does not retry, renews no lease and
// ignores the entries of a batch's reply: it is a lower bound, not a consumer.
func startRawLoop(name string, queue workload, client reprise.Client, url string, k int, handled func([]types.Message)) *contender {
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	errs := make(chan error, k)
	for range k {
		loops.Go(func() {
			if err := rawLoop(ctx, client, url, handled); ctx.Err() == nil {
				errs <- err
			}
		})
	}
	return &contender{name, queue, func() error {
		cancel()
		loops.Wait()
		close(errs)
		return <-errs
	}}
}

// rawLoop works until a call fails; when ctx ends, the next call fails.
func rawLoop(ctx context.Context, client reprise.Client, url string, handled func([]types.Message)) error {
	for {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:                    &url,
			MaxNumberOfMessages:         10,
			WaitTimeSeconds:             20,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return err
		}
		if len(out.Messages) == 0 {
			continue
		}
		handled(out.Messages)
		entries := make([]types.DeleteMessageBatchRequestEntry, len(out.Messages))
		for i, m := range out.Messages {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(positions[i]), ReceiptHandle: m.ReceiptHandle}
		}
		if _, err := client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries}); err != nil {
			return err
		}
	}
}

// inTurn handles messages one after the other, in the loop: a slow handler delays all messages
// behind it.
func inTurn(messages []types.Message) {
	for _, m := range messages {
		handle(*m.Body)
	}
}

// atOnce handles messages in parallel, as consumers do: so the cost of the goroutines alone can be
// separated from that of a consumer.
func atOnce(messages []types.Message) {
	var handlers sync.WaitGroup
	for _, m := range messages {
		handlers.Go(func() { handle(*m.Body) })
	}
	handlers.Wait()
}

var positions = [10]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// trivial is a handler with no work to do.
var trivial = reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
	handle(m.Body)
	return nil
})

// startConsumer starts a consumer with a trivial handler and otherwise default settings.
func startConsumer(name string, queue workload, client reprise.Client, url string, concurrency int) (*contender, error) {
	return startHandler(name, queue, client, url, trivial, reprise.Config{Concurrency: concurrency})
}

// startHandler is startConsumer with another handler and configuration. It logs
// nothing.
func startHandler(name string, queue workload, client reprise.Client, url string, handler reprise.Handler, cfg reprise.Config) (*contender, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	consumer, err := reprise.New(client, url, handler, cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	return &contender{name, queue, func() error {
		cancel()
		return <-ended
	}}, nil
}

var errEmpty = errors.New("a message without a body")

// handle is the work that every contender does for a message: only a check, which the compiler
// cannot remove.
func handle[B ~string | ~[]byte](body B) {
	if len(body) == 0 {
		panic(errEmpty)
	}
}
