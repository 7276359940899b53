package receiving

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
)

// canned is a client with messages that are made before the measurement, so that only the consumer
// is measured.
type canned struct {
	batches []*sqs.ReceiveMessageOutput

	mu       sync.Mutex
	receives int
	deleted  int
	total    int
	done     chan struct{} // closed when all are deleted
}

func newCanned(messages int) *canned {
	c := &canned{total: messages, done: make(chan struct{})}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	for n := range messages {
		if n%10 == 0 {
			c.batches = append(c.batches, &sqs.ReceiveMessageOutput{})
		}
		id, body, handle := "message-"+strconv.Itoa(n), "body", "handle-"+strconv.Itoa(n)
		last := c.batches[len(c.batches)-1]
		last.Messages = append(last.Messages, types.Message{
			MessageId: &id, Body: &body, ReceiptHandle: &handle,
			Attributes: map[string]string{
				"ApproximateReceiveCount": "1", "SentTimestamp": now, "ApproximateFirstReceiveTimestamp": now,
			},
		})
	}
	return c
}

func (c *canned) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	c.mu.Lock()
	if c.receives < len(c.batches) {
		out := c.batches[c.receives]
		c.receives++
		c.mu.Unlock()
		return out, nil
	}
	c.mu.Unlock()
	<-ctx.Done()
	return nil, ctx.Err()
}

func (c *canned) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	out := &sqs.DeleteMessageBatchOutput{Successful: make([]types.DeleteMessageBatchResultEntry, len(in.Entries))}
	for i := range in.Entries {
		out.Successful[i].Id = in.Entries[i].Id
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleted += len(in.Entries); c.deleted == c.total {
		close(c.done)
	}
	return out, nil
}

func (c *canned) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	panic("nothing fails here")
}

func (c *canned) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	panic("nothing is sent here")
}

func (c *canned) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

// consume runs the consumer that build makes until every message of c is deleted.
func (c *canned) consume(tb testing.TB, build func(reprise.Client, string, reprise.Config) (*reprise.Consumer, error)) {
	tb.Helper()
	const url = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
	consumer, err := build(c, url, reprise.Config{
		Logger:     slog.New(slog.DiscardHandler),
		StopBudget: 20 * time.Millisecond, // the last receive never returns
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	go func() {
		<-c.done
		stop()
	}()
	if err := consumer.Run(ctx); err != nil {
		tb.Fatal(err)
	}
}

// single makes a consumer of single messages.
func single(client reprise.Client, url string, cfg reprise.Config) (*reprise.Consumer, error) {
	return reprise.New(client, url, reprise.HandlerFunc(kit.Succeed), cfg)
}

// TestAllocationsPerMessage: the allocations that the consumer adds to those of the SDK. A received
// batch is one allocation, a delete batch a few.
func TestAllocationsPerMessage(t *testing.T) {
	batches := func(size int) func(reprise.Client, string, reprise.Config) (*reprise.Consumer, error) {
		all := reprise.BatchHandlerFunc(func(context.Context, []*reprise.Message) []error { return nil })
		return func(client reprise.Client, url string, cfg reprise.Config) (*reprise.Consumer, error) {
			return reprise.NewBatchConsumer(client, url, all, reprise.BatchConfig{Size: size, Config: cfg})
		}
	}
	for name, build := range map[string]func(reprise.Client, string, reprise.Config) (*reprise.Consumer, error){
		"one at a time": single, "batches of 10": batches(10), "batches of 1000": batches(1000),
		"with signing keys, no history": func(client reprise.Client, url string, cfg reprise.Config) (*reprise.Consumer, error) {
			cfg.SigningKeys = []reprise.SigningKey{kit.SigningKey(t, "k1")}
			return single(client, url, cfg)
		},
		"asked for their messages": func(client reprise.Client, url string, cfg reprise.Config) (*reprise.Consumer, error) {
			return reprise.New(client, url, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				if reprise.MessageFrom(ctx) != m {
					return kit.ErrUnavailable
				}
				return nil
			}), cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const messages = 20_000
			c := newCanned(messages)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c.consume(t, build)
			runtime.ReadMemStats(&after)
			per := float64(after.Mallocs-before.Mallocs) / messages
			t.Logf("%.2f allocations, %.0f bytes per message, the stub's own included", per, float64(after.TotalAlloc-before.TotalAlloc)/messages)
			if per > 2 {
				t.Errorf("%.2f allocations per message, want at most 2", per)
			}
		})
	}
}

// TestAllocationsInAPool: a pool adds no allocation for a message.
func TestAllocationsInAPool(t *testing.T) {
	const messages = 20_000
	pool := kit.PoolOf(t, 10)
	first, second := newCanned(messages/2), newCanned(messages/2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var both sync.WaitGroup
	with := func(share reprise.Share) func(reprise.Client, string, reprise.Config) (*reprise.Consumer, error) {
		return func(client reprise.Client, url string, cfg reprise.Config) (*reprise.Consumer, error) {
			return pool.Add(client, url, reprise.HandlerFunc(kit.Succeed), share, cfg)
		}
	}
	both.Go(func() { first.consume(t, with(reprise.Share{Weight: 3})) })
	both.Go(func() { second.consume(t, with(reprise.Share{Priority: 1})) })
	both.Wait()
	runtime.ReadMemStats(&after)
	per := float64(after.Mallocs-before.Mallocs) / messages
	t.Logf("%.2f allocations, %.0f bytes per message, the stub's own included", per, float64(after.TotalAlloc-before.TotalAlloc)/messages)
	if per > 2 {
		t.Errorf("%.2f allocations per message, want at most 2", per)
	}
}
