package repriseotel_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
)

// The snippets of docs/telemetry.md.
func ExampleTelemetry_Watch() {
	var client *sqs.Client
	var queueURL string
	var handler reprise.Handler
	consume := func(ctx context.Context) error {
		telemetry, err := repriseotel.New(queueURL, repriseotel.Config{})
		if err != nil {
			return err
		}
		consumer, err := reprise.New(client, queueURL, handler, reprise.Config{
			Observer: telemetry.Observer(),
		})
		if err != nil {
			return err
		}
		if _, err := telemetry.Watch(consumer); err != nil {
			return err
		}
		return consumer.Run(ctx)
	}
	fmt.Println(consume(context.Background()))
}

func ExampleTelemetry_Send() {
	var telemetry *repriseotel.Telemetry
	var sender *reprise.Sender
	http.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		_, err := telemetry.Send(r.Context(), sender, reprise.Outgoing{Body: `{"order":1}`})
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	})
}

func ExampleTelemetry_Inject() {
	var telemetry *repriseotel.Telemetry
	var sender *reprise.Sender
	submit := func(ctx context.Context, done func(reprise.Sent)) error {
		m := reprise.Outgoing{Body: `{"order":1}`}
		telemetry.Inject(ctx, &m)
		return sender.Submit(ctx, m, done)
	}
	fmt.Println(submit(context.Background(), func(reprise.Sent) {}))
}

func ExampleTelemetry_Observer() {
	var telemetry *repriseotel.Telemetry
	var mine reprise.Observer
	config := reprise.Config{
		Observer: reprise.Observers(telemetry.Observer(), mine),
	}
	fmt.Println(config.Concurrency)
}

// A span that the handler starts from its context is a child of the attempt's span.
func Example() {
	provider := sdktrace.NewTracerProvider()
	telemetry, err := repriseotel.New("https://sqs.us-east-1.amazonaws.com/123456789012/orders", repriseotel.Config{
		TracerProvider: provider,
		MeterProvider:  sdkmetric.NewMeterProvider(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	observer := telemetry.Observer()

	// The consumer does this:
	ctx, trail := observer.Starting(context.Background(), &reprise.Message{ID: "m-1", Body: "order", Attempt: 1})
	// The handler may do this:
	span := trace.SpanFromContext(ctx)
	span.AddEvent("shipped")

	fmt.Println(span.(sdktrace.ReadOnlySpan).Name(), span.(sdktrace.ReadOnlySpan).SpanKind())
	fmt.Println(len(trail), "bytes for the next attempt")
	// Output:
	// process orders consumer
	// 55 bytes for the next attempt
}
