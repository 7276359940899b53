package repriselambda_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
)

// BenchmarkRetries is what an invocation of the retry handler costs by itself: ten
// records that are due, and a Lambda that takes each at once.
func BenchmarkRetries(b *testing.B) {
	w := new(willing)
	handle, err := repriselambda.RetryHandler(repriselambda.RetryConfig{Client: w, Lambda: w, Concurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	var event repriselambda.Event
	for i := range 10 {
		body := recordOfFailure("request-"+strconv.Itoa(i), order, "RetriesExhausted", `{"errorType":"Timeout","errorMessage":"the database does not answer"}`)
		event.Records = append(event.Records, repriselambda.Record{MessageID: "m-" + strconv.Itoa(i), ReceiptHandle: "h", Body: body, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:retry"})
	}
	time.Sleep(time.Second) // until they are due
	b.ReportAllocs()
	for b.Loop() {
		w.invoked = w.invoked[:0]
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		response, err := handle(ctx, event)
		cancel()
		if err != nil || len(response.BatchItemFailures) > 0 || len(w.invoked) != 10 {
			b.Fatal(response, len(w.invoked), err)
		}
	}
}
