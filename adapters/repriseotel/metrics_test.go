package repriseotel_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/otel/attribute"
	nometric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// measured is telemetry with metrics only, and their reader.
func measured(t *testing.T, queueURL string) (*repriseotel.Telemetry, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	telemetry, err := repriseotel.New(queueURL, repriseotel.Config{
		TracerProvider: notrace.NewTracerProvider(),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return telemetry, reader
}

// readings returns the values of metrics: the count and the sum of histograms. Values of zero are
// left out on request.
func readings(t *testing.T, reader *sdkmetric.ManualReader, zeros bool) string {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, scope := range rm.ScopeMetrics {
		slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		for _, m := range scope.Metrics {
			fmt.Fprintf(&b, "%s %T, unit %q: %s\n", m.Name, m.Data, m.Unit, m.Description)
			var lines []string
			add := func(set attribute.Set, zero bool, format string, args ...any) {
				if zeros || !zero {
					lines = append(lines, fmt.Sprintf("  %s: %s\n", values(set.ToSlice()), fmt.Sprintf(format, args...)))
				}
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value == 0, "%d", p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value == 0, "%d", p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Count == 0, "%d, %vs in all", p.Count, math.Round(p.Sum*1000)/1000)
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
			slices.Sort(lines)
			b.WriteString(strings.Join(lines, ""))
		}
	}
	return b.String()
}

// verdict has the handler end as the body says, each message after a different time: handlers that
// end at the same time may share a request or not.
func verdict(_ context.Context, m *reprise.Message) error {
	time.Sleep(time.Duration(len(m.Body)) * time.Second)
	switch m.Body {
	case "fails once":
		if m.Attempt == 1 {
			return errWarehouse
		}
	case "asks to wait":
		if m.Attempt == 1 {
			return reprise.RetryAfter(90*time.Second, errWarehouse)
		}
	case "is given back":
		if m.Receives == 1 {
			return reprise.Release(10*time.Second, errWarehouse)
		}
	case "is hopeless":
		return reprise.Permanent(errWarehouse)
	case "fails every time":
		return reprise.Unavailable(errWarehouse)
	case "panics":
		panic("no such order")
	case "takes its time":
		time.Sleep(3 * time.Minute)
	}
	return nil
}

var bodies = []string{"succeeds", "fails once", "asks to wait", "is given back", "is hopeless", "fails every time", "panics", "takes its time"}

// TestMetricsOfAllThatHappens: names, units, kinds, attributes and values, with one message for
// each possible outcome.
func TestMetricsOfAllThatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(5)
		telemetry, reader := measured(t, q.URL())
		sender, err := reprise.NewSender(q.Client(), q.URL(), reprise.SenderConfig{Linger: -1})
		if err != nil {
			t.Fatal(err)
		}
		var messages []reprise.Outgoing
		for _, body := range bodies {
			messages = append(messages, reprise.Outgoing{Body: body})
		}
		if _, err := telemetry.Send(t.Context(), sender, messages...); err != nil {
			t.Fatal(err)
		}
		if _, err := telemetry.Send(t.Context(), sender, reprise.Outgoing{}); err == nil {
			t.Fatal("a message without a body was sent")
		}
		if _, err := sender.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		policy := every
		policy.MaxAttempts = 2
		consumer := q.ConsumeWith(q.Client(), reprise.HandlerFunc(verdict), reprise.Config{Retry: policy, Observer: telemetry.Observer()})
		stop, err := telemetry.Watch(consumer.Consumer)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		golden(t, "metrics-waiting.txt", strings.ReplaceAll(gauges(readings(t, reader, false)), q.Name(), "orders"))
		q.WaitEmpty(time.Hour)
		consumer.Stop()
		golden(t, "metrics.txt", strings.ReplaceAll(readings(t, reader, false), q.Name(), "orders"))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if left := gauges(readings(t, reader, true)); strings.Contains(left, ": 1\n") {
			t.Errorf("gauges of a consumer that is no longer watched:\n%s", left)
		}
	})
}

// TestMetricsBeginWithZero: counters exist before they have counted anything.
func TestMetricsBeginWithZero(t *testing.T) {
	telemetry, reader := measured(t, orders)
	consumer, err := reprise.New(sqs.New(sqs.Options{}), orders, reprise.HandlerFunc(verdict), reprise.Config{Observer: telemetry.Observer()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := telemetry.Watch(consumer); err != nil {
		t.Fatal(err)
	}
	golden(t, "metrics-first.txt", readings(t, reader, true))
}

// TestConsumersThatShareTelemetry: consumers that share telemetry are all measured: the values of
// one do not hide those of another.
func TestConsumersThatShareTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		telemetry, reader := measured(t, q.URL())
		for _, stopped := range []bool{false, true, false} {
			consumer := q.Consume(reprise.HandlerFunc(verdict), reprise.Config{Observer: telemetry.Observer()})
			if _, err := telemetry.Watch(consumer.Consumer); err != nil {
				t.Fatal(err)
			}
			if stopped {
				consumer.Stop()
			}
		}
		time.Sleep(time.Second)
		got := gauges(readings(t, reader, true))
		for _, want := range []string{"reprise.state=ok: 2\n", "reprise.state=stopped: 1\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
}

// TestNothingToWatch: Watch without a consumer is an error at once, not only when metrics are
// collected.
func TestNothingToWatch(t *testing.T) {
	telemetry, _ := measured(t, orders)
	if _, err := telemetry.Watch(nil); err == nil || !strings.Contains(err.Error(), "reprise.New") {
		t.Errorf("watching nil: %v, want an error that says what to pass", err)
	}
}

// gauges are the readings that Watch adds.
func gauges(readings string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(readings) {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, "reprise.inflight") || strings.HasPrefix(line, "reprise.circuit") || strings.HasPrefix(line, "reprise.consumer.")
		}
		if in {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestMetricsOfAnOutage: the breaker's state and the held messages are measured, and a held message
// does not count as a retry.
func TestMetricsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		telemetry, reader := measured(t, q.URL())
		consumer := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Unavailable(errWarehouse) }),
			reprise.Config{Retry: every, Concurrency: 1, Outage: reprise.Outage{Threshold: 2}, Observer: telemetry.Observer()})
		if _, err := telemetry.Watch(consumer.Consumer); err != nil {
			t.Fatal(err)
		}
		q.Send("one", "two", "three")
		time.Sleep(time.Second)
		got := readings(t, reader, false)
		for _, want := range []string{
			"reprise.state=open: 1\n",
			"reprise.outcome=hold: 1\n",
			"reprise.outcome=retry: 1\n",
			"reprise.reason=policy: 1\n",
			"reprise.state=backoff: 1\n",
			"reprise.state=processing: 2\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the readings lack %q:\n%s", want, got)
			}
		}
	})
}

// TestMetricsOfRequestsThatFail: failed requests have the code of the error, and held failures of a
// FIFO queue count as retries.
func TestMetricsOfRequestsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
		telemetry, reader := measured(t, q.URL())
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Limit: 1})
		q.ConsumeWith(q.Direct(), reprise.HandlerFunc(verdict), reprise.Config{
			Retry:    retry.Policy{Backoff: retry.Constant(5 * time.Second), Jitter: retry.None},
			Observer: telemetry.Observer(),
		})
		q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "fails once", MessageGroupId: "g"})
		q.WaitEmpty(time.Minute)
		got := readings(t, reader, false)
		for _, want := range []string{
			"error.type=RequestThrottled messaging.destination.name=" + q.Name() + " messaging.operation.name=ReceiveMessage",
			"reprise.outcome=hold: 1\n",
			"reprise.reason=policy: 1\n",
			"reprise.reason=policy: 1, 5s in all\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the readings lack %q:\n%s", want, got)
			}
		}
	})
}

// TestMetricsOfAHeldRelease: a message of a FIFO queue that is given back and held is no retry, unlike one that fails
// and is held.
func TestMetricsOfAHeldRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
		telemetry, reader := measured(t, q.URL())
		runs := 0
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			if runs++; runs == 1 {
				return reprise.Release(10*time.Second, errWarehouse)
			}
			return nil
		}), reprise.Config{Retry: every, Observer: telemetry.Observer()})
		q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageGroupId: "g"})
		q.WaitEmpty(time.Minute)
		if got := readings(t, reader, false); !strings.Contains(got, "reprise.outcome=hold: 1\n") || strings.Contains(got, "reprise.reason=release") {
			t.Errorf("want one attempt that is held and no retry:\n%s", got)
		}
	})
}

// TestTurnedOff: with providers that do nothing, the consumer gets no function to call, so
// telemetry costs nothing.
func TestTurnedOff(t *testing.T) {
	telemetry, err := repriseotel.New("https://sqs.us-east-1.amazonaws.com/123456789012/orders", repriseotel.Config{
		TracerProvider: notrace.NewTracerProvider(),
		MeterProvider:  nometric.NewMeterProvider(),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := telemetry.Observer()
	if o.Received != nil || o.Starting != nil || o.Attempt != nil || o.Settled != nil || o.Call != nil || o.Expiring != nil || o.Finding != nil || o.Outage != nil || o.Stopped != nil {
		t.Errorf("the observer listens: %+v", o)
	}
	stop, err := telemetry.Watch(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
