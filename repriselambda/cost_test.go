package repriselambda_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// idle are functions whose handlers do nothing.
func idle(tb testing.TB) map[string]function {
	tb.Helper()
	cfg := repriselambda.Config{Client: agreeable{}, Logger: slog.New(slog.DiscardHandler)}
	messages, err := repriselambda.SQS(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	batches, err := repriselambda.SQSBatch(reprise.BatchHandlerFunc(func(context.Context, []*reprise.Message) []error { return nil }), repriselambda.BatchConfig{Config: cfg})
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]function{"messages": messages, "batches": batches}
}

// succeed has f work off n messages without a failure.
func (f function) succeed(tb testing.TB, n int) func() {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	var event repriselambda.Event
	for i := range n {
		event.Records = append(event.Records, repriselambda.Record{
			MessageID:      "m-" + strconv.Itoa(i),
			ReceiptHandle:  "h",
			Attributes:     map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": now, "ApproximateFirstReceiveTimestamp": now},
			EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders",
		})
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		response, err := f(ctx, event)
		if err != nil || len(response.BatchItemFailures) > 0 {
			tb.Fatal(response, err)
		}
	}
}

// BenchmarkInvocation is what an invocation costs by itself: messages whose handlers
// do nothing, and no call.
func BenchmarkInvocation(b *testing.B) {
	for name, f := range idle(b) {
		for _, n := range []int{10, 1000} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				invoke := f.succeed(b, n)
				b.ReportAllocs()
				for b.Loop() {
					invoke()
				}
			})
		}
	}
}

// TestCostOfAMessage: what one more message in an event allocates; in a batch it takes
// less than alone.
func TestCostOfAMessage(t *testing.T) {
	most := map[string]float64{"messages": 12.5, "batches": 3.5}
	for name, f := range idle(t) {
		few, many := testing.AllocsPerRun(20, f.succeed(t, 100)), testing.AllocsPerRun(20, f.succeed(t, 1100))
		if per := (many - few) / 1000; per > most[name] {
			t.Errorf("%s: one more allocates %.2f times, want %v at most", name, per, most[name])
		}
	}
}
