package repriseotel

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// tracing makes the spans of a queue's messages.
type tracing struct {
	tracer    trace.Tracer
	queue     queue
	creations propagator
	ownTraces bool
	about     []attribute.KeyValue // on every span
}

// spans makes the spans of one consumer.
type spans struct {
	*tracing

	mu   sync.Mutex
	runs map[string]run // whose messages are not yet settled, by their trail
}

// run is what is remembered about a run from its start until its message is settled.
type run struct {
	span  trace.SpanContext
	ended time.Time // zero: it has not ended, or the end was not yet reported
}

// begun is the span of a run. The run's context has it under the spans value that started it,
// because other observers may start spans inside it, and leave their own trails.
type begun struct {
	span  trace.Span
	trail string
}

func newTracing(tracer trace.Tracer, q queue, p propagator, ownTraces bool) *tracing {
	about := append(q.attributes(), queueURL(q.url))
	if q.region != "" {
		about = append(about, cloudRegion(q.region))
	}
	return &tracing{tracer: tracer, queue: q, creations: p, ownTraces: ownTraces, about: about}
}

func (t *tracing) spans() *spans { return &spans{tracing: t, runs: make(map[string]run)} }

func (s *spans) observer() reprise.Observer {
	return reprise.Observer{Starting: s.starting, Attempt: s.attempt, Settled: s.settled}
}

// starting starts the span of a run, and stores its context for the next attempt.
func (s *spans) starting(ctx context.Context, m *reprise.Message) (context.Context, string) {
	s.take(m) // it runs again without having been settled
	ctx, creation := s.creations.creation(ctx, m)
	previous := parseTrail(m)
	options := make([]trace.SpanStartOption, 0, 4)
	options = append(options, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(s.ofMessage(m)...))
	if links := links(creation, previous); len(links) > 0 {
		options = append(options, trace.WithLinks(links...))
	}
	switch {
	case s.ownTraces, !creation.IsValid() && !previous.IsValid():
		options = append(options, trace.WithNewRoot())
	case !creation.IsValid():
		ctx = trace.ContextWithRemoteSpanContext(ctx, previous)
	}
	ctx, span := s.tracer.Start(ctx, spanName(operationProcess, s.queue), options...)
	left := trail(span.SpanContext())
	if span.IsRecording() {
		s.mu.Lock()
		s.runs[left] = run{span: span.SpanContext()}
		s.mu.Unlock()
		ctx = context.WithValue(ctx, s, begun{span, left})
	}
	return ctx, left
}

// links are the links from a run to the origin of its message.
func links(creation, previous trace.SpanContext) []trace.Link {
	all := make([]trace.Link, 0, 2)
	if creation.IsValid() {
		all = append(all, trace.Link{SpanContext: creation, Attributes: []attribute.KeyValue{keyLink.String(linkCreation)}})
	}
	if previous.IsValid() {
		all = append(all, trace.Link{SpanContext: previous, Attributes: []attribute.KeyValue{keyLink.String(linkPrevious)}})
	}
	return all
}

// ofMessage are the attributes of a run's span about its message.
func (t *tracing) ofMessage(m *reprise.Message) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(t.about)+7)
	all = append(all, t.about...)
	all = append(all, operationName(operationProcess), typeProcess,
		messageID(m.ID), bodySize(len(m.Body)), keyAttempt.Int(m.Attempt), keyReceives.Int(m.Receives))
	if m.OriginID != m.ID {
		all = append(all, keyOrigin.String(m.OriginID))
	}
	return all
}

// attempt ends the span of a run, with the outcome of its message.
func (s *spans) attempt(ctx context.Context, e reprise.Attempt) {
	b, recording := ctx.Value(s).(begun)
	if !recording {
		return
	}
	span, at := b.span, e.Started.Add(e.Duration)
	defer span.End(trace.WithTimestamp(at))
	span.SetAttributes(keyOutcome.String(e.Outcome.String()))
	if e.Err != nil {
		span.SetAttributes(keyReason.String(e.Reason.String()))
	}
	if kind := typeOf(e); kind != "" {
		span.SetAttributes(errorType(kind))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	if !e.Due.IsZero() {
		span.AddEvent(eventWait(e.Outcome), trace.WithTimestamp(at), trace.WithAttributes(keyDelay.Float64(e.Due.Sub(at).Seconds())))
	}
	s.end(b.trail, e, at)
}

// end notes the end of the run that left trail, unless its message is settled already: the
// acknowledgement may be reported first.
func (s *spans) end(trail string, e reprise.Attempt, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, unsettled := s.runs[trail]
	switch {
	case !unsettled:
	case e.Outcome == reprise.OutcomeHold, e.Outcome == reprise.OutcomeLost, // there is nothing to settle
		e.Message.Trail != trail: // the settlement will not name the run: another observer's trail has replaced it
		delete(s.runs, trail)
	default:
		r.ended = at
		s.runs[trail] = r
	}
}

// take returns the remembered run that m's trail names, and forgets it.
func (s *spans) take(m *reprise.Message) (r run, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known = s.runs[m.Trail]
	delete(s.runs, m.Trail)
	return r, known
}

// settled makes the span of a settlement, from the end of its run to SQS's acknowledgement.
// Messages that were settled without a run have none.
func (s *spans) settled(ctx context.Context, e reprise.Settled) {
	r, ran := s.take(e.Message)
	switch {
	case !ran:
		return
	case r.ended.IsZero() && e.Outcome == reprise.OutcomeLost:
		return // the run's span has the outcome
	case r.ended.IsZero():
		r.ended = time.Now()
	}
	operation := settling(e)
	all := make([]attribute.KeyValue, 0, len(s.about)+7)
	all = append(all, s.about...)
	all = append(all, operationName(operation), typeSettle, messageID(e.Message.ID),
		keyOutcome.String(e.Outcome.String()), keyRequests.Int(e.Requests))
	if e.Requeued {
		all = append(all, keyRequeued.Bool(true))
	}
	_, span := s.tracer.Start(trace.ContextWithSpanContext(ctx, r.span), spanName(operation, s.queue),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(r.ended), trace.WithAttributes(all...))
	if e.Err != nil {
		span.SetAttributes(errorType(errorLeaseLost))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End()
}

// settling is the name of the operation that settles a message.
func settling(e reprise.Settled) string {
	switch {
	case e.Requeued, e.Outcome == reprise.OutcomeDeadLetter:
		return operationSend // of a copy; then the original is deleted
	case e.Outcome == reprise.OutcomeDelete:
		return operationDelete
	case e.Outcome == reprise.OutcomeLost:
		return operationSettle
	}
	return operationHide
}

// typeOf is the error.type of a run. It is empty if the run did not fail: a run whose message the
// handler released, or that a stop interrupted, has not failed.
func typeOf(e reprise.Attempt) string {
	if e.Err == nil || e.Outcome == reprise.OutcomeRelease && e.Reason == retry.ReasonRelease {
		return ""
	}
	_, panicked := errors.AsType[*reprise.PanicError](e.Err)
	switch {
	case panicked:
		return errorPanic
	case e.Outcome == reprise.OutcomeLost:
		return errorLeaseLost
	case e.Reason == retry.ReasonPermanent:
		return errorPermanent
	case errors.Is(e.Err, context.DeadlineExceeded):
		return errorTimeout
	case reprise.IsUnavailable(e.Err):
		return errorUnavailable
	}
	return errorOther
}
