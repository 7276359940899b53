package repriseotel

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// TestValuesOfANewerLibrary: outcomes, reasons, operations and states that a newer library adds are
// counted under the names that the library gives them.
func TestValuesOfANewerLibrary(t *testing.T) {
	const newer = 200
	reader := sdkmetric.NewManualReader()
	known, err := parseQueue("https://sqs.us-east-1.amazonaws.com/123456789012/orders")
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(scope), known)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	message := new(reprise.Message)
	m.attempt(ctx, reprise.Attempt{Message: message, Outcome: newer, Reason: newer})
	m.attempt(ctx, reprise.Attempt{Message: message, Outcome: reprise.OutcomeRetry, Reason: newer + 1})
	m.settled(ctx, reprise.Settled{Message: message, Outcome: newer + 2})
	m.settled(ctx, reprise.Settled{Message: message, Outcome: reprise.OutcomeDeadLetter, Reason: newer + 3})
	m.call(ctx, reprise.Call{Operation: newer + 4, Duration: time.Second})
	w, err := newWatch(m, func() reprise.Status {
		return reprise.Status{Health: newer + 5, Breakers: []reprise.BreakerStatus{{State: newer + 6}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Unregister() }()

	var rm metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &rm); err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if p.Value == 1 {
						labels = append(labels, m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder()))
					}
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if p.Count == 1 {
						labels = append(labels, m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder()))
					}
				}
			}
		}
	}
	all := strings.Join(labels, "\n")
	for _, want := range []string{
		reprise.Outcome(newer).String(), retry.Reason(newer + 1).String(), reprise.Outcome(newer + 2).String(), retry.Reason(newer + 3).String(),
		reprise.Operation(newer + 4).String(), reprise.Health(newer + 5).String(), reprise.BreakerState(newer + 6).String(),
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing is counted under %s:\n%s", want, all)
		}
	}
}
