package repriseotel

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
)

// Send sends messages through s, which must be a sender to the same queue, in a span of its own:
// the messages carry its context to their consumers as that of their creation. Messages that
// already carry one keep it. See [Telemetry.Inject] for messages without room.
func (t *Telemetry) Send(ctx context.Context, s *reprise.Sender, messages ...reprise.Outgoing) ([]reprise.Sent, error) {
	began := time.Now()
	ctx, span := t.sending(ctx, len(messages))
	messages = slices.Clone(messages)
	for i := range messages {
		if !t.propagator.injected(&messages[i]) {
			t.propagator.inject(ctx, &messages[i])
		}
	}
	sent, err := s.Send(ctx, messages...)
	if err != nil {
		span.SetAttributes(errorType(sendError(err)))
		span.SetStatus(codes.Error, err.Error())
	}
	if len(sent) == 1 && sent[0].ID != "" {
		span.SetAttributes(messageID(sent[0].ID))
	}
	span.End()
	if t.metrics != nil {
		t.metrics.sending(ctx, sent, err, time.Since(began))
	}
	return sent, err
}

// sending begins the span of a Send of n messages.
func (t *Telemetry) sending(ctx context.Context, n int) (context.Context, trace.Span) {
	if t.tracing == nil {
		return ctx, trace.SpanFromContext(context.Background()) // one that does nothing
	}
	all := make([]attribute.KeyValue, 0, len(t.tracing.about)+4)
	all = append(all, t.tracing.about...)
	all = append(all, operationName(operationSend), typeSend)
	if n > 1 {
		all = append(all, batchCount(n))
	}
	return t.tracing.tracer.Start(ctx, spanName(operationSend, t.queue), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(all...))
}

// sending counts the messages of a Send, each with its own error.
func (m *metrics) sending(ctx context.Context, sent []reprise.Sent, err error, took time.Duration) {
	ctx = context.WithoutCancel(ctx)
	about := m.ofSend
	if err != nil {
		about = about.with(errorType(sendError(err)))
	}
	m.requests.Record(ctx, took.Seconds(), about.record...)
	var fine int64
	for _, s := range sent {
		if s.Err == nil {
			fine++
			continue
		}
		m.sent.Add(ctx, 1, m.ofSent.with(errorType(sendError(s.Err))).add...)
	}
	if fine > 0 {
		m.sent.Add(ctx, fine, m.ofSent.add...)
	}
}

// sendError is the error.type of a message that was not sent.
func sendError(err error) string {
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return codeOf(err)
}
