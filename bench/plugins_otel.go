package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	nometric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
	"github.com/reprise-sqs/reprise/bench/canned"
)

// withTelemetry compares the consumer with OpenTelemetry's SDK to the bare one.
// Spans go in batches, as usual, to an exporter that drops them.
func withTelemetry(w io.Writer, s scale) error {
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tenth := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(0.1)))
	all := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	var contenders []*contender
	for _, c := range []struct {
		name string
		cfg  repriseotel.Config
	}{
		{"bare", repriseotel.Config{TracerProvider: notrace.NewTracerProvider(), MeterProvider: nometric.NewMeterProvider()}},
		{"metrics", repriseotel.Config{TracerProvider: notrace.NewTracerProvider(), MeterProvider: metrics}},
		{"metrics, a tenth traced", repriseotel.Config{TracerProvider: tenth, MeterProvider: metrics}},
		{"metrics, all traced", repriseotel.Config{TracerProvider: all, MeterProvider: metrics}},
	} {
		telemetry, err := repriseotel.New(canned.URL, c.cfg)
		if err != nil {
			return err
		}
		q := canned.New()
		started, err := startHandler(c.name, q, q.SDK(tuned), canned.URL, trivial, reprise.Config{Concurrency: 10, Observer: telemetry.Observer()})
		if err != nil {
			return err
		}
		contenders = append(contenders, started)
	}
	title := "The consumer with OpenTelemetry's SDK at concurrency 10, over the SDK of AWS, replies canned below net/http"
	if err := compare(w, title, contenders, s.rounds, s.sdk); err != nil {
		return err
	}
	ctx := context.Background()
	if err := errors.Join(tenth.Shutdown(ctx), all.Shutdown(ctx), metrics.Shutdown(ctx)); err != nil {
		return fmt.Errorf("stopping OpenTelemetry: %w", err)
	}
	return nil
}
