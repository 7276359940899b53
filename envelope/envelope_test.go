package envelope_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/envelope"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// quoted is s as a JSON string.
func quoted(tb testing.TB, s string) string {
	tb.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// notification is an SNS notification of a message.
func notification(tb testing.TB, message, members string) string {
	return `{"Type":"Notification","MessageId":"n-1","TopicArn":"arn:t","Message":` + quoted(tb, message) + members + `}`
}

// seen is what a handler saw.
type seen struct {
	message  *reprise.Message
	envelope *envelope.Envelope
	runs     int
}

func (s *seen) Handle(ctx context.Context, m *reprise.Message) error {
	s.runs++
	s.message = m
	s.envelope, _ = envelope.From(ctx)
	return nil
}

// TestUnwrap: the handler sees the inner message, and everything else unchanged; middleware
// outside of Unwrap sees the message as it was received.
func TestUnwrap(t *testing.T) {
	var got seen
	body := sample(t, "sns")
	m := &reprise.Message{
		ID: "m-2", OriginID: "m-1", Body: body, GroupID: "g", Attempt: 3, Receives: 4, Sent: time.UnixMilli(1),
		Attributes: map[string]types.MessageAttributeValue{"tenant": text("outside"), "kept": text("kept")},
	}
	before := *m
	if err := envelope.Unwrap(envelope.SNS)(&got).Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	ignore := cmpopts.IgnoreUnexported(types.MessageAttributeValue{})
	if diff := cmp.Diff(before, *m, ignore); diff != "" || aws.ToString(m.Attributes["tenant"].StringValue) != "outside" || len(m.Attributes) != 2 {
		t.Errorf("the message outside was changed: %s", diff)
	}
	want := before
	want.Body = `{"id":"o-1","sku":"café \"noir\""}`
	want.Attributes = map[string]types.MessageAttributeValue{
		"kept":   text("kept"),
		"tenant": text("acme"),
		"weight": {DataType: aws.String("Number"), StringValue: aws.String("12.5")},
		"tags":   {DataType: aws.String("String.Array"), StringValue: aws.String(`["new","gift"]`)},
		"digest": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255, 7}},
	}
	if diff := cmp.Diff(&want, got.message, ignore); diff != "" {
		t.Error(diff)
	}
	if got.envelope == nil || got.envelope.Kind != "sns" || got.envelope.Raw != body || got.envelope.Outer != nil {
		t.Errorf("envelope %+v", got.envelope)
	}
}

// TestUnwrapNested: of envelopes in envelopes each decoder opens one, in whatever
// order they are given, and the attributes further inside win.
func TestUnwrapNested(t *testing.T) {
	event := `{"specversion":"1.0","id":"e-1","source":"/shop","type":"order","data":{"id":7}}`
	body := notification(t, event, `,"MessageAttributes":{"tenant":{"Type":"String","Value":"acme"}}`)
	for _, decoders := range [][]envelope.Decoder{
		{envelope.SNS, envelope.CloudEvents},
		{envelope.CloudEvents, envelope.EventBridge, envelope.SNS},
	} {
		var got seen
		if err := envelope.Unwrap(decoders...)(&got).Handle(t.Context(), &reprise.Message{Body: body}); err != nil {
			t.Fatal(err)
		}
		e := got.envelope
		if got.message.Body != `{"id":7}` || e.Kind != "cloudevents" || e.Raw != event || e.Outer.Kind != "sns" || e.Outer.Raw != body || e.Outer.Outer != nil {
			t.Errorf("%+v in %+v", got.message, e)
		}
		if aws.ToString(got.message.Attributes["tenant"].StringValue) != "acme" {
			t.Errorf("attributes %v: those of the notification are missing", got.message.Attributes)
		}
	}
	// A notification in a notification: what is inside may be meant as it is.
	var got seen
	inner := notification(t, "hello", "")
	if err := envelope.Unwrap(envelope.SNS, envelope.S3)(&got).Handle(t.Context(), &reprise.Message{Body: notification(t, inner, "")}); err != nil {
		t.Fatal(err)
	}
	if got.message.Body != inner {
		t.Errorf("body %q, want the inner notification", got.message.Body)
	}
}

// TestUnwrapPassesWhatIsNone: the very same message, and no envelope in the context.
func TestUnwrapPassesWhatIsNone(t *testing.T) {
	var got seen
	m := &reprise.Message{Body: `{"id":"o-1"}`}
	for _, decoders := range [][]envelope.Decoder{all, nil} {
		if err := envelope.Unwrap(decoders...)(&got).Handle(t.Context(), m); err != nil || got.message != m || got.envelope != nil {
			t.Errorf("%v, %+v", err, got)
		}
	}
}

// TestUnwrapByAConsumer: the inner body is worked on, a test event of S3 is deleted
// without a run, and what is malformed is dead-lettered as it came, with the reason.
func TestUnwrapByAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		var bodies []string
		h := envelope.Unwrap(all...)(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			bodies = append(bodies, m.Body)
			return nil
		}))
		q.Consume(h, reprise.Config{Concurrency: 1})
		broken := `{"Type":"Notification","TopicArn":"arn:t","MessageId":"n-1"}`
		q.Send(sample(t, "s3-test"), notification(t, sample(t, "s3-test"), ""), broken, notification(t, "order", ""))
		q.WaitEmpty(time.Minute)
		if len(bodies) != 1 || bodies[0] != "order" {
			t.Errorf("handled %q", bodies)
		}
		letters := dead.Messages()
		if len(letters) != 1 || letters[0].Body != broken {
			t.Fatalf("dead letters %+v", letters)
		}
		const want = `opening an envelope: SNS notification: \"Message\" is missing or empty`
		if story := letters[0].Attributes[0]; story.Name != reprise.StoryAttribute || !strings.Contains(story.StringValue, want) ||
			!strings.Contains(story.StringValue, `"reason":"permanent"`) {
			t.Errorf("story %s", story.StringValue)
		}
	})
}

// TestDecoderOfOnesOwn, which may fail, and open what is not JSON.
func TestDecoderOfOnesOwn(t *testing.T) {
	own := func(body string) (*envelope.Envelope, error) {
		switch kind, inner, _ := strings.Cut(body, ":"); kind {
		case "v1":
			return &envelope.Envelope{Kind: "own", ID: "7", Body: inner}, nil
		case "v2":
			return nil, errors.New("v2 is not out yet")
		}
		return nil, nil
	}
	var got seen
	h := envelope.Unwrap(own)(&got)
	if err := h.Handle(t.Context(), &reprise.Message{Body: "v1:v1:x"}); err != nil || got.message.Body != "v1:x" || got.envelope.Key() != "own:0::7" {
		t.Errorf("%v, %+v", err, got.message)
	}
	err := h.Handle(t.Context(), &reprise.Message{Body: "v2:x"})
	if d := (retry.Policy{}).Decide(retry.Failure{N: 1, Err: err}); d.Reason != retry.ReasonPermanent || !strings.Contains(err.Error(), "v2 is not out yet") {
		t.Errorf("%v: %+v, want a permanent error", err, d)
	}
	if got.runs != 1 {
		t.Errorf("%d runs, want 1", got.runs)
	}
}

// TestKey: the event's own id, whichever way it came; what has none keys by its
// origin.
func TestKey(t *testing.T) {
	event := `{"specversion":"1.0","id":"e-1","source":"/shop","type":"order"}`
	key := envelope.Key(all...)
	for _, tt := range []struct {
		name string
		m    reprise.Message
		want string
	}{
		{"an event", reprise.Message{ID: "1", Body: event}, "cloudevents:5:/shop:e-1"},
		{"the same by a topic", reprise.Message{ID: "2", Body: notification(t, event, "")}, "cloudevents:5:/shop:e-1"},
		{"text by a topic", reprise.Message{ID: "3", Body: notification(t, "text", "")}, "sns:5:arn:t:n-1"},
		{"no envelope, a copy", reprise.Message{ID: "4", OriginID: "0", Body: "text"}, "0.Ibnym0Pvx08mEziMimZZ0g"},
		{"no envelope, by hand", reprise.Message{ID: "5", Body: "text"}, "5.Ibnym0Pvx08mEziMimZZ0g"},
		{"a test event", reprise.Message{ID: "6", OriginID: "6", Body: sample(t, "s3-test")}, "6.1rbFWj6cuSgphhlJXy37Cg"},
	} {
		if got, err := key(&tt.m); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	if got, err := key(&reprise.Message{ID: "7", Body: `{"specversion":"1.0"}`}); err == nil {
		t.Errorf("a malformed event has the key %q", got)
	}
	// An envelope without an id in one that has it.
	if e := (&envelope.Envelope{Kind: "own", Outer: &envelope.Envelope{Kind: "sns", Source: "t", ID: "n"}}); e.Key() != "sns:1:t:n" {
		t.Errorf("key %q, want the outer one's", e.Key())
	}
}

// TestDuplicateEventsRunOnce: with package idempotency outside, an event that
// arrives in two messages is one piece of work.
func TestDuplicateEventsRunOnce(t *testing.T) {
	once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{Key: envelope.Key(envelope.EventBridge)})
	if err != nil {
		t.Fatal(err)
	}
	var got seen
	h := middleware.Chain(once, envelope.Unwrap(envelope.EventBridge))(&got)
	for _, id := range []string{"m-1", "m-2"} {
		if err := h.Handle(t.Context(), &reprise.Message{ID: id, OriginID: id, Body: sample(t, "eventbridge")}); err != nil {
			t.Fatal(err)
		}
	}
	if got.runs != 1 || got.envelope.Type != "EC2 Instance State-change Notification" {
		t.Errorf("%d runs, want 1", got.runs)
	}
}

// TestNilDecoderPanicsAtOnce, not at the first message.
func TestNilDecoderPanicsAtOnce(t *testing.T) {
	for _, f := range []func(){
		func() { envelope.Unwrap(envelope.SNS, nil) },
		func() { envelope.Key(nil) },
	} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.Contains(v, "is nil: pass one") {
					t.Errorf("panic %v", v)
				}
			}()
			f()
		}()
	}
}
