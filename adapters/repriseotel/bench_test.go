package repriseotel_test

import (
	"context"
	"testing"
	"time"

	nometric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
)

// message tells an observer of one message as a consumer would: received, run, settled.
func message(ctx context.Context, o reprise.Observer, m *reprise.Message) {
	if o.Received != nil {
		o.Received(ctx, reprise.Received{Message: m})
	}
	after := *m
	if o.Starting != nil {
		ctx, after.Trail = o.Starting(ctx, m)
	}
	o.Attempt(ctx, reprise.Attempt{Message: &after, Started: m.Received, Duration: time.Millisecond})
	o.Settled(ctx, reprise.Settled{Message: &after, Requests: 1})
}

// BenchmarkMessage measures the cost of telemetry for a message that succeeds.
func BenchmarkMessage(b *testing.B) {
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	for name, cfg := range map[string]repriseotel.Config{
		"metrics":              {MeterProvider: metrics, TracerProvider: notrace.NewTracerProvider()},
		"traces, all sampled":  {MeterProvider: nometric.NewMeterProvider(), TracerProvider: sdktrace.NewTracerProvider()},
		"traces, none sampled": {MeterProvider: nometric.NewMeterProvider(), TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))},
	} {
		b.Run(name, func(b *testing.B) {
			telemetry, err := repriseotel.New(orders, cfg)
			if err != nil {
				b.Fatal(err)
			}
			o := telemetry.Observer()
			m := &reprise.Message{ID: "id", OriginID: "id", Body: "order", Attempt: 1, Receives: 1, Received: time.Now(), Attributes: numbered(2)}
			b.ReportAllocs()
			for b.Loop() {
				message(b.Context(), o, m)
			}
		})
	}
}

// TestMetricsAllocateNothing: metrics allocate nothing for messages that succeed.
func TestMetricsAllocateNothing(t *testing.T) {
	telemetry, err := repriseotel.New(orders, repriseotel.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		TracerProvider: notrace.NewTracerProvider(),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := telemetry.Observer()
	m := &reprise.Message{ID: "id", Body: "order", Attempt: 1}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		o.Received(ctx, reprise.Received{Message: m})
		o.Attempt(ctx, reprise.Attempt{Message: m, Duration: time.Millisecond})
		o.Settled(ctx, reprise.Settled{Message: m})
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
