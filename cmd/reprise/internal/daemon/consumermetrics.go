package daemon

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise/adapters/repriseotel"
)

// consumerMetrics are those of a consumer, by OpenTelemetry and its exporter for
// Prometheus: any program that uses adapters/repriseotel has the same under the same names.
type consumerMetrics struct {
	telemetry *repriseotel.Telemetry
	registry  *prometheus.Registry
}

// newConsumerMetrics measures a consumer of the queue at url, and traces it by tracers.
func newConsumerMetrics(url string, tracers trace.TracerProvider) (*consumerMetrics, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(
		exporter.WithRegisterer(registry),
		exporter.WithoutTargetInfo(), exporter.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("making the metrics of the consumer: %w", err)
	}
	telemetry, err := repriseotel.New(url, repriseotel.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		TracerProvider: tracers,
	})
	if err != nil {
		return nil, err
	}
	return &consumerMetrics{telemetry, registry}, nil
}
