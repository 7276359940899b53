package repriseotel_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const orders = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"

func newTelemetry(t *testing.T, cfg repriseotel.Config) *repriseotel.Telemetry {
	t.Helper()
	telemetry, err := repriseotel.New(orders, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return telemetry
}

func stringValue(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

// numbered are n attributes.
func numbered(n int) map[string]types.MessageAttributeValue {
	all := make(map[string]types.MessageAttributeValue)
	for i := range n {
		all[fmt.Sprintf("attribute-%d", i)] = stringValue("value")
	}
	return all
}

// traced is a context of a remote span, with a trace state.
func traced(t *testing.T) context.Context {
	t.Helper()
	carrier := propagation.MapCarrier{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"tracestate":  "vendor=value",
	}
	return propagation.TraceContext{}.Extract(t.Context(), carrier)
}

// TestInjectKeepsWithinSQSsLimits: SQS permits ten attributes, one of which the consumer needs, and
// 1 MiB. Inject does not change the caller's map.
func TestInjectKeepsWithinSQSsLimits(t *testing.T) {
	for _, tt := range []struct {
		name       string
		body       int
		attributes map[string]types.MessageAttributeValue
		want       []string
	}{
		{"no attributes", 10, nil, []string{"traceparent", "tracestate"}},
		{"seven attributes", 10, numbered(7), []string{"traceparent", "tracestate"}},
		{"eight attributes", 10, numbered(8), []string{"traceparent"}},
		{"nine attributes", 10, numbered(9), nil},
		{"ten attributes", 10, numbered(10), nil},
		{"room for both", 1<<20 - 72 - 28, nil, []string{"traceparent", "tracestate"}},
		{"room for one", 1<<20 - 72 - 27, nil, []string{"traceparent"}},
		{"room for none", 1<<20 - 27, nil, nil},
		{"its own context, ten in all", 10, func() map[string]types.MessageAttributeValue {
			all := numbered(9)
			all["traceparent"] = stringValue("old")
			return all
		}(), []string{"traceparent"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := maps.Clone(tt.attributes)
			m := reprise.Outgoing{Body: strings.Repeat("x", tt.body), Attributes: tt.attributes}
			newTelemetry(t, repriseotel.Config{}).Inject(traced(t), &m)
			var injected []string
			for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
				if !strings.HasPrefix(name, "attribute-") {
					injected = append(injected, name)
				}
			}
			if diff := cmp.Diff(tt.want, injected); diff != "" {
				t.Errorf("injected (-want +got):\n%s", diff)
			}
			if got := aws.ToString(m.Attributes["traceparent"].StringValue); len(injected) > 0 && injected[0] == "traceparent" && !strings.HasPrefix(got, "00-4bf92f35") {
				t.Errorf("traceparent is %q", got)
			}
			if len(before) != len(tt.attributes) || aws.ToString(before["traceparent"].StringValue) != aws.ToString(tt.attributes["traceparent"].StringValue) {
				t.Error("the caller's own map was written to")
			}
		})
	}
}

// TestInjectWritesTheTraceFirst: if the fields of a propagator do not all fit, the trace is
// written, and other fields are left out, in whatever order the propagator names them.
func TestInjectWritesTheTraceFirst(t *testing.T) {
	tenant, err := baggage.NewMember("tenant", "acme")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(tenant)
	if err != nil {
		t.Fatal(err)
	}
	ctx := baggage.ContextWithBaggage(traced(t), bag)
	for range 50 {
		m := reprise.Outgoing{Body: "order", Attributes: numbered(8)}
		both := propagation.NewCompositeTextMapPropagator(propagation.Baggage{}, propagation.TraceContext{})
		newTelemetry(t, repriseotel.Config{Propagator: both}).Inject(ctx, &m)
		if _, ok := m.Attributes["traceparent"]; !ok || len(m.Attributes) != 9 {
			t.Fatalf("attributes %v, want traceparent as the ninth", slices.Sorted(maps.Keys(m.Attributes)))
		}
	}
}

// TestInjectLeavesNothingOfAnotherTrace: a trace state of an earlier trace is removed, since it
// belongs to that trace only.
func TestInjectLeavesNothingOfAnotherTrace(t *testing.T) {
	m := reprise.Outgoing{Body: "order", Attributes: map[string]types.MessageAttributeValue{
		"traceparent": stringValue("00-00000000000000000000000000000001-0000000000000001-01"),
		"tracestate":  stringValue("other=1"),
	}}
	ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": "00-" + w3cTrace + "-" + w3cSpan + "-01"})
	newTelemetry(t, repriseotel.Config{}).Inject(ctx, &m)
	want := map[string]string{"traceparent": "00-" + w3cTrace + "-" + w3cSpan + "-01"}
	got := make(map[string]string)
	for name, a := range m.Attributes {
		got[name] = aws.ToString(a.StringValue)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

// TestInjectWithoutATrace: without a trace the message stays unchanged.
func TestInjectWithoutATrace(t *testing.T) {
	m := reprise.Outgoing{Body: "order"}
	newTelemetry(t, repriseotel.Config{}).Inject(t.Context(), &m)
	if m.Attributes != nil {
		t.Errorf("attributes %v, want none", m.Attributes)
	}
}

// seeing consumes one message, and returns the span of its first run.
func seeing(t *testing.T, q *reprisetest.Queue, cfg repriseotel.Config, send func()) sdktrace.ReadOnlySpan {
	t.Helper()
	p := startProcess("worker")
	q.ConsumeWith(q.Client(), reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
		if member := baggage.FromContext(ctx).Member("tenant"); member.Value() != "" {
			trace.SpanFromContext(ctx).AddEvent(member.Value())
		}
		return nil
	}), reprise.Config{Observer: p.telemetry(t, q, cfg).Observer()})
	send()
	q.WaitEmpty(time.Minute)
	synctest.Wait()
	return p.spans.Ended()[0]
}

const (
	w3cTrace, w3cSpan   = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	xrayTrace, xraySpan = "5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
	xrayHeader          = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
)

// TestCreationContext: from where the creation context is read, and when there is none.
func TestCreationContext(t *testing.T) {
	w3c := map[string]types.MessageAttributeValue{"traceparent": stringValue("00-" + w3cTrace + "-" + w3cSpan + "-01")}
	for _, tt := range []struct {
		name        string
		message     reprise.Message
		trace, span string
	}{
		{"attributes", reprise.Message{Attributes: w3c}, w3cTrace, w3cSpan},
		{"X-Ray", reprise.Message{TraceHeader: xrayHeader}, xrayTrace, xraySpan},
		{"X-Ray, more of it", reprise.Message{TraceHeader: "Self=1-67891234-12456789abcdef012345678; " + xrayHeader + ";Lineage=a87bd80c:1|68fd508a:5"}, xrayTrace, xraySpan},
		{"attributes before X-Ray", reprise.Message{Attributes: w3c, TraceHeader: xrayHeader}, w3cTrace, w3cSpan},
		{"X-Ray where the attributes are broken", reprise.Message{Attributes: map[string]types.MessageAttributeValue{"traceparent": stringValue("00-x")}, TraceHeader: xrayHeader}, xrayTrace, xraySpan},
		{"X-Ray without a parent", reprise.Message{TraceHeader: "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"}, "", ""},
		{"X-Ray of another version", reprise.Message{TraceHeader: strings.Replace(xrayHeader, "1-", "2-", 1)}, "", ""},
		{"X-Ray, broken", reprise.Message{TraceHeader: "Root=1-5759e988-bd862e3f;Parent=x;Sampled"}, "", ""},
		{"binary", reprise.Message{Attributes: map[string]types.MessageAttributeValue{"traceparent": {DataType: aws.String("Binary"), BinaryValue: []byte("00-")}}}, "", ""},
		{"nothing", reprise.Message{}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			telemetry := newTelemetry(t, repriseotel.Config{TracerProvider: startProcess("worker").provider})
			ctx, _ := telemetry.Observer().Starting(t.Context(), &tt.message)
			checkCreation(t, trace.SpanFromContext(ctx).(sdktrace.ReadOnlySpan), tt.trace, tt.span)
		})
	}
}

// checkCreation compares a span's parent and link with a context; empty means none.
func checkCreation(t *testing.T, s sdktrace.ReadOnlySpan, traceID, spanID string) {
	t.Helper()
	if traceID == "" {
		if s.Parent().IsValid() || len(s.Links()) > 0 {
			t.Errorf("parent %v, %d links, want none", s.Parent().TraceID(), len(s.Links()))
		}
		return
	}
	if len(s.Links()) != 1 {
		t.Fatalf("%d links, want 1", len(s.Links()))
	}
	for what, sc := range map[string]trace.SpanContext{"parent": s.Parent(), "link": s.Links()[0].SpanContext} {
		if sc.TraceID().String() != traceID || sc.SpanID().String() != spanID || !sc.IsSampled() || !sc.IsRemote() {
			t.Errorf("the %s is %v-%v, sampled %v, remote %v, want %s-%s", what, sc.TraceID(), sc.SpanID(), sc.IsSampled(), sc.IsRemote(), traceID, spanID)
		}
	}
}

// TestXRayHeaderArrives: the X-Ray header that SQS has from a traced producer arrives with the
// message.
func TestXRayHeaderArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		span := seeing(t, q, repriseotel.Config{}, func() {
			q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageSystemAttributes: []sqsserver.MessageAttribute{{Name: "AWSTraceHeader", DataType: "String", StringValue: xrayHeader}}})
		})
		checkCreation(t, span, xrayTrace, xraySpan)
	})
}

// TestPropagatorOfYourOwn: all fields of a user's propagator arrive, with the trace and without.
func TestPropagatorOfYourOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		cfg := repriseotel.Config{Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})}
		span := seeing(t, q, cfg, func() {
			member, err := baggage.NewMember("tenant", "acme")
			if err != nil {
				t.Fatal(err)
			}
			bag, err := baggage.New(member)
			if err != nil {
				t.Fatal(err)
			}
			send(t, q, startProcess("web").telemetry(t, q, cfg), baggage.ContextWithBaggage(t.Context(), bag), reprise.Outgoing{Body: "order"})
		})
		if events := span.Events(); len(events) != 1 || events[0].Name != "acme" {
			t.Errorf("events %v, want the tenant that the handler saw", events)
		}
	})
}

func send(t *testing.T, q *reprisetest.Queue, telemetry *repriseotel.Telemetry, ctx context.Context, messages ...reprise.Outgoing) {
	t.Helper()
	sender, err := reprise.NewSender(q.Client(), q.URL(), reprise.SenderConfig{Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := telemetry.Send(ctx, sender, messages...); err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSendKeepsAContextThatIsThere: a message that already has the context of a span keeps it: Send
// does not replace it by the context of the request.
func TestSendKeepsAContextThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		web := startProcess("web")
		telemetry := web.telemetry(t, q, repriseotel.Config{})
		own := reprise.Outgoing{Body: "own"}
		telemetry.Inject(traced(t), &own)
		send(t, q, telemetry, t.Context(), own, reprise.Outgoing{Body: "sent"})
		got := make(map[string]string)
		for _, m := range q.Messages() {
			for _, a := range m.Attributes {
				if a.Name == "traceparent" {
					got[m.Body] = a.StringValue
				}
			}
		}
		span := web.spans.Ended()[0]
		want := map[string]string{
			"own":  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			"sent": fmt.Sprintf("00-%v-%v-01", span.SpanContext().TraceID(), span.SpanContext().SpanID()),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("contexts (-want +got):\n%s", diff)
		}
		if got := values(span.Attributes()); !strings.Contains(got, "messaging.batch.message_count=2") {
			t.Errorf("the span of the batch says %s", got)
		}
	})
}

// TestQueueURL: the attributes that are read from a queue's URL, and the URLs that are refused.
func TestQueueURL(t *testing.T) {
	for url, want := range map[string]string{
		orders: "messaging.destination.name=orders server.address=sqs.us-east-1.amazonaws.com cloud.region=us-east-1",
		"https://eu-west-1.queue.amazonaws.com/123456789012/orders.fifo/":  "messaging.destination.name=orders.fifo server.address=eu-west-1.queue.amazonaws.com cloud.region=eu-west-1",
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders":      "messaging.destination.name=orders server.address=sqs.cn-north-1.amazonaws.com.cn cloud.region=cn-north-1",
		"http://127.0.0.1:9324/000000000000/orders":                        "messaging.destination.name=orders server.address=127.0.0.1 server.port=9324",
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/0000/orders": "messaging.destination.name=orders server.address=sqs.us-east-1.localhost.localstack.cloud server.port=4566",
	} {
		p := startProcess("worker")
		telemetry, err := repriseotel.New(url, repriseotel.Config{TracerProvider: p.provider})
		if err != nil {
			t.Fatal(err)
		}
		ctx, _ := telemetry.Observer().Starting(t.Context(), &reprise.Message{})
		var got []string
		for _, kv := range trace.SpanFromContext(ctx).(sdktrace.ReadOnlySpan).Attributes() {
			switch kv.Key {
			case "messaging.destination.name", "server.address", "server.port", "cloud.region":
				got = append(got, values([]attribute.KeyValue{kv}))
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
	for _, url := range []string{"", "orders", "https://sqs.us-east-1.amazonaws.com", "https://sqs.us-east-1.amazonaws.com/", "http://[::1"} {
		if _, err := repriseotel.New(url, repriseotel.Config{}); err == nil || !strings.Contains(err.Error(), "https://sqs.us-east-1.amazonaws.com/123456789012/orders") {
			t.Errorf("%q: error %v, want one that says what to pass", url, err)
		}
	}
}
