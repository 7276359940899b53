package repriseotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// metrics are the instruments of a queue. Their common attributes are made once: recording
// allocates nothing unless something failed.
type metrics struct {
	meter metric.Meter
	queue queue

	consumed   metric.Int64Counter
	sent       metric.Int64Counter
	requests   metric.Float64Histogram
	processes  metric.Float64Histogram
	attempts   metric.Int64Counter
	retries    metric.Int64Counter
	delays     metric.Float64Histogram
	exhausted  metric.Int64Counter
	settlings  metric.Int64Counter
	deadLetter metric.Int64Counter
	extensions metric.Int64Counter
	expiries   metric.Int64Counter

	ofQueue   attributes
	ofReceive attributes
	ofRequest values[reprise.Operation, attributes]
	ofSend    attributes            // of a Sender, for requests
	ofSent    attributes            // and for messages
	ofRun     map[string]attributes // by error.type; empty: none
	ofOutcome values[reprise.Outcome, attributes]
	ofReason  values[retry.Reason, attributes]
	ofSettled values[reprise.Outcome, [2]attributes] // not requeued, requeued
}

// values has a value for each member of an enumeration. The values of members known to this version
// are made once, those of members that a newer version of the library adds are made on demand.
type values[K ~uint8, V any] struct {
	known  []V
	making func(K) V
}

// valuesTo has a value for every K up to last.
func valuesTo[K ~uint8, V any](last K, making func(K) V) values[K, V] {
	v := values[K, V]{make([]V, last+1), making}
	for k := range v.known {
		v.known[k] = making(K(k))
	}
	return v
}

func (v *values[K, V]) of(k K) V {
	if int(k) < len(v.known) {
		return v.known[k]
	}
	return v.making(k)
}

// attributes are attributes for both counters and histograms.
type attributes struct {
	all    []attribute.KeyValue
	add    []metric.AddOption
	record []metric.RecordOption
}

func attributesOf(all ...attribute.KeyValue) attributes {
	option := metric.WithAttributeSet(attribute.NewSet(all...))
	return attributes{all: all, add: []metric.AddOption{option}, record: []metric.RecordOption{option}}
}

// with returns a with more attributes.
func (a attributes) with(more ...attribute.KeyValue) attributes {
	return attributesOf(append(a.all[:len(a.all):len(a.all)], more...)...)
}

// newMetrics makes the instruments.
func newMetrics(meter metric.Meter, q queue) (*metrics, error) {
	m := &metrics{meter: meter, queue: q}
	var problems []error
	counter := func(name, unit, description string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		problems = append(problems, err)
		return made
	}
	consumed, err := messagingconv.NewClientConsumedMessages(meter)
	problems = append(problems, err)
	sent, err := messagingconv.NewClientSentMessages(meter)
	problems = append(problems, err)
	requests, err := messagingconv.NewClientOperationDuration(meter, metric.WithExplicitBucketBoundaries(requestBounds...))
	problems = append(problems, err)
	processes, err := messagingconv.NewProcessDuration(meter, metric.WithExplicitBucketBoundaries(processBounds...))
	problems = append(problems, err)
	m.consumed, m.sent, m.requests, m.processes = consumed.Inst(), sent.Inst(), requests.Inst(), processes.Inst()

	m.attempts = counter(metricAttempts, "{attempt}", "Runs of the handler, by what became of the message.")
	m.retries = counter(metricRetries, "{retry}", "Attempts after which the message waits to be tried again, by why.")
	m.delays, err = meter.Float64Histogram(metricDelay, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(delayBounds...),
		metric.WithDescription("How long messages wait between attempts."))
	problems = append(problems, err)
	m.exhausted = counter(metricExhausted, "{message}", "Messages given up after an attempt since a limit was reached, by which.")
	m.settlings = counter(metricSettled, "{message}", "Messages that left the consumer, by what became of them.")
	m.deadLetter = counter(metricDeadLetter, "{message}", "Messages that the dead-letter queue has taken.")
	m.extensions = counter(metricExtensions, "{message}", "Leases that were renewed.")
	m.expiries = counter(metricExpiring, "{message}", "Messages that their queue will drop before they can be tried again.")
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("making the instruments: %w", err)
	}
	m.makeAttributes()
	m.begin()
	return m, nil
}

// makeAttributes makes the attributes.
func (m *metrics) makeAttributes() {
	m.ofQueue = attributesOf(destinationName(m.queue.name))
	conventional := attributesOf(m.queue.attributes()...)
	m.ofReceive = conventional.with(operationName(operationReceive))
	m.ofSent = conventional.with(operationName(operationSend))
	m.ofSend = m.ofSent.with(typeSend)
	m.ofRequest = valuesTo(reprise.OpAttributes, func(op reprise.Operation) attributes { return conventional.with(requestOf(op)...) })
	run := conventional.with(operationName(operationProcess))
	m.ofRun = map[string]attributes{"": run}
	for _, kind := range errorTypes {
		m.ofRun[kind] = run.with(errorType(kind))
	}
	m.ofOutcome = valuesTo(reprise.OutcomePark, func(o reprise.Outcome) attributes { return m.ofQueue.with(keyOutcome.String(o.String())) })
	m.ofSettled = valuesTo(reprise.OutcomePark, func(o reprise.Outcome) [2]attributes {
		outcome := keyOutcome.String(o.String())
		return [2]attributes{m.ofQueue.with(outcome, keyRequeued.Bool(false)), m.ofQueue.with(outcome, keyRequeued.Bool(true))}
	})
	m.ofReason = valuesTo(retry.ReasonCrash, func(r retry.Reason) attributes { return m.ofQueue.with(keyReason.String(r.String())) })
}

// begin records zeros for events that have not happened yet: otherwise an alert on an increase
// would miss the first one.
func (m *metrics) begin() {
	ctx := context.Background()
	for _, c := range []metric.Int64Counter{m.extensions, m.expiries} {
		c.Add(ctx, 0, m.ofQueue.add...)
	}
	for o, about := range m.ofOutcome.known {
		switch reprise.Outcome(o) {
		case reprise.OutcomeKeep, reprise.OutcomePark: // not the outcome of a run
		default:
			m.attempts.Add(ctx, 0, about.add...)
		}
		if reprise.Outcome(o) != reprise.OutcomeHold { // the message stays
			m.settlings.Add(ctx, 0, m.ofSettled.known[o][0].add...)
		}
	}
	for _, r := range []retry.Reason{retry.ReasonPolicy, retry.ReasonRetryAfter} {
		m.retries.Add(ctx, 0, m.ofReason.of(r).add...)
	}
	for _, r := range limits {
		m.exhausted.Add(ctx, 0, m.ofReason.of(r).add...)
		m.deadLetter.Add(ctx, 0, m.ofReason.of(r).add...)
	}
	for _, r := range []retry.Reason{retry.ReasonPermanent, retry.ReasonSkip, retry.ReasonCrash} {
		m.deadLetter.Add(ctx, 0, m.ofReason.of(r).add...)
	}
}

// limits are the reasons for giving up messages that might have succeeded later.
var limits = []retry.Reason{retry.ReasonAttempts, retry.ReasonAge, retry.ReasonReceives, retry.ReasonRetention}

func (m *metrics) observer() reprise.Observer {
	return reprise.Observer{Received: m.received, Attempt: m.attempt, Settled: m.settled, Call: m.call, Expiring: m.expiring}
}

func (m *metrics) received(ctx context.Context, _ reprise.Received) {
	m.consumed.Add(ctx, 1, m.ofReceive.add...)
}

func (m *metrics) attempt(ctx context.Context, e reprise.Attempt) {
	m.processes.Record(ctx, e.Duration.Seconds(), m.ofRun[typeOf(e)].record...)
	m.attempts.Add(ctx, 1, m.ofOutcome.of(e.Outcome).add...)
	if e.Outcome == reprise.OutcomeDeadLetter {
		for _, limit := range limits {
			if e.Reason == limit {
				m.exhausted.Add(ctx, 1, m.ofReason.of(limit).add...)
			}
		}
	}
	held := e.Outcome == reprise.OutcomeHold && e.Reason != retry.ReasonUnavailable
	if e.Outcome == reprise.OutcomeRetry || held && e.Reason != retry.ReasonRelease {
		m.retries.Add(ctx, 1, m.ofReason.of(e.Reason).add...)
		m.delays.Record(ctx, max(0, e.Due.Sub(e.Started.Add(e.Duration)).Seconds()), m.ofReason.of(e.Reason).record...)
	}
}

func (m *metrics) settled(ctx context.Context, e reprise.Settled) {
	requeued := 0
	if e.Requeued {
		requeued = 1
	}
	m.settlings.Add(ctx, 1, m.ofSettled.of(e.Outcome)[requeued].add...)
	if e.Outcome == reprise.OutcomeDeadLetter {
		m.deadLetter.Add(ctx, 1, m.ofReason.of(e.Reason).add...)
	}
}

func (m *metrics) expiring(ctx context.Context, _ reprise.Expiring) {
	m.expiries.Add(ctx, 1, m.ofQueue.add...)
}

func (m *metrics) call(ctx context.Context, e reprise.Call) {
	about := m.ofRequest.of(e.Operation)
	if e.Err != nil {
		about = about.with(errorType(codeOf(e.Err)))
	}
	ctx = context.WithoutCancel(ctx) // record the duration of cancelled requests too
	m.requests.Record(ctx, e.Duration.Seconds(), about.record...)
	if e.Operation == reprise.OpHeartbeat && e.Err == nil {
		m.extensions.Add(ctx, int64(e.Entries-e.Failed), m.ofQueue.add...)
	}
}

// requestOf returns the conventions' names for a consumer's request.
func requestOf(o reprise.Operation) []attribute.KeyValue {
	name := operationName(o.String())
	switch o {
	case reprise.OpReceive:
		return []attribute.KeyValue{name, typeReceive}
	case reprise.OpDelete, reprise.OpVisibility:
		return []attribute.KeyValue{name, typeSettle}
	case reprise.OpHeartbeat:
		return []attribute.KeyValue{operationName(reprise.OpVisibility.String()), typeSettle}
	case reprise.OpSend:
		return []attribute.KeyValue{name, typeSend}
	}
	return []attribute.KeyValue{name} // the conventions have no type for GetQueueAttributes
}

// codeOf is the error.type of a request: SQS's own code, if there is one.
func codeOf(err error) string {
	if api, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err); ok && api.ErrorCode() != "" {
		return api.ErrorCode()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errorTimeout
	}
	return errorOther
}
