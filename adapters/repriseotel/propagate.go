package repriseotel

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
)

const (
	// maxInjected is how many attributes a message may have after injection. SQS permits ten; a
	// consumer needs one for the history of a copy, or for the story of a dead letter.
	maxInjected = 9
	// maxExtracted is how many bytes of one field of a context are read: W3C Baggage, the longest,
	// has at most this many.
	maxExtracted = 8 << 10
	// maxXRay is how many bytes of an X-Ray header are read. AWS documents no limit; headers of
	// SDKs have fewer than 300.
	maxXRay = 1 << 10
	// maxMessage is SQS's limit for body and attributes, in bytes.
	maxMessage = 1 << 20
)

// propagator reads and writes the context in which a message was created.
type propagator struct {
	texts  propagation.TextMapPropagator
	fields []string // the fields that it writes, the most important first
}

// newPropagator puts the trace before other fields, such as baggage, because the fields of a
// composite propagator have no order.
func newPropagator(texts propagation.TextMapPropagator) propagator {
	of := propagation.TraceContext{}.Fields()
	rank := func(field string) int {
		if i := slices.Index(of, field); i >= 0 {
			return i
		}
		return len(of)
	}
	fields := slices.Clone(texts.Fields())
	slices.SortFunc(fields, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	return propagator{texts, fields}
}

// Inject writes the trace context of ctx into m's attributes, in place of an existing one, and into
// a new map, because the existing one may be shared. Fields that do not fit are left out, the trace
// last: m keeps one of SQS's ten attributes free, and its size within SQS's 1 MiB. Without a trace
// in ctx, m is unchanged.
//
// [Telemetry.Send] calls Inject by itself. Call it for [reprise.Sender.Submit], and for messages
// that are sent in another way.
func (t *Telemetry) Inject(ctx context.Context, m *reprise.Outgoing) { t.propagator.inject(ctx, m) }

func (p propagator) inject(ctx context.Context, m *reprise.Outgoing) {
	injected := propagation.MapCarrier{}
	p.texts.Inject(ctx, injected)
	if len(injected) == 0 {
		return
	}
	attributes := maps.Clone(m.Attributes)
	if attributes == nil {
		attributes = make(map[string]types.MessageAttributeValue, len(injected))
	}
	if trace.SpanContextFromContext(ctx).IsValid() {
		for _, name := range p.fields { // the rest would belong to another trace
			delete(attributes, name)
		}
	}
	size := sizeOf(m.Body, attributes)
	for _, name := range p.fields {
		value := injected[name]
		if value == "" { // SQS refuses it
			continue
		}
		_, replaced := m.Attributes[name]
		size += len(name) + len("String") + len(value)
		if !replaced && len(attributes) >= maxInjected || size > maxMessage {
			break
		}
		attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	m.Attributes = attributes
}

// sizeOf is a message's size as SQS counts it.
func sizeOf(body string, attributes map[string]types.MessageAttributeValue) int {
	size := len(body)
	for name, a := range attributes {
		size += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return size
}

// injected reports whether m carries a context already.
func (p propagator) injected(m *reprise.Outgoing) bool {
	return slices.ContainsFunc(p.fields, func(name string) bool {
		_, ok := m.Attributes[name]
		return ok
	})
}

// incoming lets a propagator read the attributes of a received message.
type incoming map[string]types.MessageAttributeValue

// Get ignores values that are longer than any propagator writes: parsing them would cost memory, and
// the context would carry them to the services that the handler calls.
func (in incoming) Get(key string) string {
	value := aws.ToString(in[key].StringValue)
	if len(value) > maxExtracted {
		return ""
	}
	return value
}

func (in incoming) Set(string, string) {}
func (in incoming) Keys() []string     { return slices.Collect(maps.Keys(in)) }

// creation returns the context in which m was created, which is not valid if m carries none, and ctx
// with that and other propagated values.
func (p propagator) creation(ctx context.Context, m *reprise.Message) (context.Context, trace.SpanContext) {
	if trace.SpanContextFromContext(ctx).IsValid() { // the context of the code that runs the consumer
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	if len(m.Attributes) > 0 {
		ctx = p.texts.Extract(ctx, incoming(m.Attributes))
	}
	found := trace.SpanContextFromContext(ctx)
	if !found.IsValid() && m.TraceHeader != "" {
		found = parseXRay(m.TraceHeader)
		ctx = trace.ContextWithRemoteSpanContext(ctx, found)
	}
	return ctx, found
}

// parseXRay reads the context of an AWS X-Ray trace header, like
// Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1. It is
// not valid unless the header names both, in at most 1 KiB.
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
func parseXRay(header string) trace.SpanContext {
	if len(header) > maxXRay {
		return trace.SpanContext{}
	}
	cfg := trace.SpanContextConfig{Remote: true}
	for part := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Root":
			fields := strings.Split(value, "-") // version, seconds, the rest
			if len(fields) == 3 && fields[0] == "1" && len(fields[1]) == 8 {
				cfg.TraceID, _ = trace.TraceIDFromHex(fields[1] + fields[2])
			}
		case "Parent":
			cfg.SpanID, _ = trace.SpanIDFromHex(value)
		case "Sampled":
			if value == "1" {
				cfg.TraceFlags = trace.FlagsSampled
			}
		}
	}
	return trace.NewSpanContext(cfg)
}

// trail is a span's context in the form that is stored for the next attempt: a traceparent.
// https://www.w3.org/TR/trace-context/#traceparent-header
func trail(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	traceID, spanID := sc.TraceID(), sc.SpanID()
	text := make([]byte, 0, len("00--")+2*len(traceID)+2*len(spanID)+len("-01"))
	text = hex.AppendEncode(append(text, "00-"...), traceID[:])
	text = hex.AppendEncode(append(text, '-'), spanID[:])
	if sc.IsSampled() {
		return string(append(text, "-01"...))
	}
	return string(append(text, "-00"...))
}

// parseTrail returns the context of the attempt before m's; not valid if it is not known.
func parseTrail(m *reprise.Message) trace.SpanContext {
	if m.Trail == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": m.Trail})
	return trace.SpanContextFromContext(ctx)
}
