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

// BenchmarkInvocation is what an invocation costs by itself: ten messages whose
// handlers do nothing, and no call.
func BenchmarkInvocation(b *testing.B) {
	nothing := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })
	function, err := repriselambda.SQS(nothing, repriselambda.Config{Client: agreeable{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	var event repriselambda.Event
	for i := range 10 {
		event.Records = append(event.Records, repriselambda.Record{MessageID: "m-" + strconv.Itoa(i), ReceiptHandle: "h", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders"})
	}
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		response, err := function(ctx, event)
		cancel()
		if err != nil || len(response.BatchItemFailures) > 0 {
			b.Fatal(response, err)
		}
	}
}
