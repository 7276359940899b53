// The attacker of this file is a producer that may send to one queue: the trace context that it
// writes into a message becomes the context of that message's spans only, and costs little.

package repriseotel

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
)

var everything = newPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))

// TestAttackLongTraceContext: a text longer than any context is not read, whatever it begins with,
// and takes no memory in proportion to its length.
func TestAttackLongTraceContext(t *testing.T) {
	const xray = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8"
	const w3c = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
	text := func(value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	for name, m := range map[string]*reprise.Message{
		"X-Ray with more parts": {TraceHeader: xray + strings.Repeat(";", 7<<20)},
		"X-Ray of dashes":       {TraceHeader: "Root=" + strings.Repeat("-", 7<<20)},
		"X-Ray of parents":      {TraceHeader: strings.Repeat(xray+";", 10_000)},
		"traceparent":           {Attributes: map[string]types.MessageAttributeValue{"traceparent": text("cc" + w3c[2:] + strings.Repeat("-x", 500_000))}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, found := everything.creation(t.Context(), m); found.IsValid() {
				t.Errorf("found %v", found)
			}
			if n := testing.AllocsPerRun(10, func() { everything.creation(t.Context(), m) }); n > 50 {
				t.Errorf("%v allocations", n)
			}
		})
	}
	ctx, found := everything.creation(t.Context(), &reprise.Message{Attributes: map[string]types.MessageAttributeValue{
		"traceparent": text(w3c), "tracestate": text(strings.Repeat("a=b,", 200_000)), "baggage": text(strings.Repeat("k=v,", 200_000)),
	}})
	if !found.IsValid() || found.TraceState().Len() > 0 || baggage.FromContext(ctx).Len() > 0 {
		t.Errorf("of a context with a long state and long baggage: %v, %d members of baggage", found, baggage.FromContext(ctx).Len())
	}
}

// TestAttackContextOfTheConsumer: a message without a context, or with a broken one, has
// no part in the trace in which the consumer runs.
func TestAttackContextOfTheConsumer(t *testing.T) {
	own := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	for _, header := range []string{"", "Root=;Parent=", strings.Repeat("x", 10_000)} {
		if _, found := everything.creation(own, &reprise.Message{TraceHeader: header}); found.IsValid() {
			t.Errorf("%.20q: found %v", header, found)
		}
	}
}

// FuzzAttackXRay: no header causes a panic, and each context that is found is complete.
func FuzzAttackXRay(f *testing.F) {
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793;Root=;Parent=53995c3f42cd8ad8;;=")
	f.Add("Self=1-0-0; Root=2--;Parent=\x00")
	f.Fuzz(func(t *testing.T, header string) {
		sc := parseXRay(header)
		if sc.IsValid() != (sc.HasTraceID() && sc.HasSpanID()) || sc.IsValid() && !sc.IsRemote() || sc.IsValid() && len(header) > maxXRay {
			t.Fatalf("parseXRay(%q) = %v", header, sc)
		}
		if trail := trail(sc); sc.IsValid() && len(trail) != 55 || !sc.IsValid() && trail != "" {
			t.Fatalf("the trail of %q is %q", header, trail)
		}
	})
}
