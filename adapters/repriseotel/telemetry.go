// Package repriseotel reports to OpenTelemetry what a [reprise.Consumer] and a [reprise.Sender] do:
// traces and metrics under the semantic conventions for messaging, and metrics of its own where the
// conventions have none.
//
//	telemetry, err := repriseotel.New(queueURL, repriseotel.Config{})
//	...
//	consumer, err := reprise.New(client, queueURL, handler, reprise.Config{Observer: telemetry.Observer()})
//	...
//	err = telemetry.Watch(consumer)
//
// Each run of the handler is a span of its own, the parent of the spans that the handler starts
// from its context. It ends with the outcome of the message, and has an event with the time that
// the message will wait. The span is linked to the context in which the message was created, and to the
// previous run if that was made in the same process or is recorded in the history of a copy. A
// settlement is a span too, from the end of the run to SQS's acknowledgement.
//
// It needs only the API of OpenTelemetry. Without an SDK, nothing is recorded.
package repriseotel

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/reprise-sqs/reprise"
)

// Config configures where telemetry is sent. The zero Config is a good default.
type Config struct {
	// TracerProvider makes the tracer. A [notrace.TracerProvider] turns traces off, at
	// no cost. Default: the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the instruments. A [nometric.MeterProvider] turns metrics
	// off, at no cost. Default: the global one.
	MeterProvider metric.MeterProvider

	// Propagator reads a message's creation context from its attributes, and writes it
	// there. Default: W3C trace context, in the attributes traceparent and tracestate.
	Propagator propagation.TextMapPropagator

	// OwnTraces makes each attempt a trace of its own, linked to the previous one. Default: the
	// attempts belong to the trace in which the message was created, or else to that of the first
	// known attempt.
	OwnTraces bool
}

// Telemetry reports on one queue. It is made by [New], and may be shared by all consumers and
// senders of the queue in this process.
type Telemetry struct {
	queue      queue
	propagator propagator
	tracing    *tracing // nil: off
	metrics    *metrics // nil: off
}

// New returns the telemetry of the queue at queueURL.
func New(queueURL string, cfg Config) (*Telemetry, error) {
	q, err := parseQueue(queueURL)
	if err != nil {
		return nil, fmt.Errorf("making telemetry: %w", err)
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.TraceContext{}
	}
	t := &Telemetry{queue: q, propagator: newPropagator(cfg.Propagator)}
	if _, off := cfg.TracerProvider.(notrace.TracerProvider); !off {
		t.tracing = newTracing(cfg.TracerProvider.Tracer(scope, trace.WithSchemaURL(schemaURL)), q, t.propagator, cfg.OwnTraces)
	}
	if _, off := cfg.MeterProvider.(nometric.MeterProvider); !off {
		t.metrics, err = newMetrics(cfg.MeterProvider.Meter(scope, metric.WithSchemaURL(schemaURL)), q)
		if err != nil {
			return nil, fmt.Errorf("making telemetry: %w", err)
		}
	}
	return t, nil
}

// Observer returns the Config.Observer for a consumer of the queue. With [reprise.Observers] you
// can combine it with your own observers. Put it after observers that leave trails: otherwise their
// trails replace this one's, and neither settlements nor links between attempts are traced.
func (t *Telemetry) Observer() reprise.Observer {
	var parts []reprise.Observer
	if t.tracing != nil {
		parts = append(parts, t.tracing.spans().observer())
	}
	if t.metrics != nil {
		parts = append(parts, t.metrics.observer())
	}
	return reprise.Observers(parts...)
}

// queue has the facts about a queue that all telemetry contains.
type queue struct {
	name, url string
	host      string
	port      int // 0: the scheme's default
	region    string
}

// parseQueue parses the URL of a queue. The region is known for AWS's own hosts:
// sqs.us-east-1.amazonaws.com, and the older us-east-1.queue.amazonaws.com.
func parseQueue(raw string) (queue, error) {
	const remedy = "pass the URL that the consumer gets, like https://sqs.us-east-1.amazonaws.com/123456789012/orders"
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return queue{}, fmt.Errorf("queue URL %q is not a URL: %s", raw, remedy)
	}
	path := strings.TrimRight(u.Path, "/")
	q := queue{url: raw, name: path[strings.LastIndexByte(path, '/')+1:], host: u.Hostname()}
	if q.name == "" {
		return queue{}, errors.New("queue URL " + strconv.Quote(raw) + " does not end in the queue's name: " + remedy)
	}
	q.port, _ = strconv.Atoi(u.Port()) // url.Parse accepts only digits
	if labels := strings.Split(q.host, "."); strings.Contains(q.host, ".amazonaws.com") {
		switch {
		case labels[0] == "sqs":
			q.region = labels[1]
		case labels[1] == "queue":
			q.region = labels[0]
		}
	}
	return q, nil
}

// attributes are the attributes of q for every span and every metric of the conventions.
func (q queue) attributes() []attribute.KeyValue {
	all := []attribute.KeyValue{systemSQS, destinationName(q.name), serverAddress(q.host)}
	if q.port != 0 {
		all = append(all, serverPort(q.port))
	}
	return all
}
