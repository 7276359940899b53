package awstarget_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awstarget"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// sender remembers the last message.
type sender struct {
	err  error
	sent reprise.Outgoing
}

func (s *sender) Send(_ context.Context, messages ...reprise.Outgoing) ([]reprise.Sent, error) {
	s.sent = messages[0]
	return []reprise.Sent{{Err: s.err}}, s.err
}

// TestQueue: a message is sent as it is, without the story of an earlier life, and on FIFO
// queues under its own id.
func TestQueue(t *testing.T) {
	m := &reprise.Message{ID: "copy", OriginID: "id", Body: "body", GroupID: "g", TraceHeader: "trace", Attributes: map[string]types.MessageAttributeValue{
		"bytes":                {DataType: aws.String("Binary"), BinaryValue: []byte{0}},
		reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: aws.String("{}")},
	}}
	s := new(sender)
	if err := awstarget.NewQueue(s, false, nil).Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if s.sent.Body != "body" || s.sent.GroupID != "g" || s.sent.DeduplicationID != "" || s.sent.TraceHeader != "trace" || len(s.sent.Attributes) != 1 || len(m.Attributes) != 2 {
		t.Errorf("sent %+v of %+v", s.sent, m)
	}
	upper := func(_ context.Context, m *reprise.Message) (string, error) { return m.Body + "!", nil }
	if err := awstarget.NewQueue(s, true, upper).Handle(t.Context(), m); err != nil || s.sent.Body != "body!" || s.sent.DeduplicationID != "id" || s.sent.GroupID != "g" {
		t.Errorf("%v; sent %+v", err, s.sent)
	}
	if err := awstarget.NewQueue(s, true, nil).Handle(t.Context(), &reprise.Message{OriginID: "id", Body: "b"}); err != nil || s.sent.GroupID != "id" {
		t.Errorf("%v; sent %+v", err, s.sent)
	}
}

// TestQueueFailures: what each failure does to the message.
func TestQueueFailures(t *testing.T) {
	m := &reprise.Message{OriginID: "id", Body: "b"}
	for code, want := range map[string]string{
		"InvalidMessageContents": permanent, "AWS.SimpleQueueService.BatchRequestTooLong": permanent, "BatchRequestTooLong": permanent,
		"InvalidParameterValue": permanent, "MissingParameter": permanent,
		"AWS.SimpleQueueService.NonExistentQueue": unavailable, "AccessDenied": unavailable,
	} {
		if err := awstarget.NewQueue(&sender{err: api(code)}, false, nil).Handle(t.Context(), m); outcome(err) != want {
			t.Errorf("%s: %v, want it %s", code, err, want)
		}
	}
	empty := func(context.Context, *reprise.Message) (string, error) { return "", nil }
	if err := awstarget.NewQueue(new(sender), false, empty).Handle(t.Context(), m); outcome(err) != permanent {
		t.Errorf("an empty body: %v", err)
	}
	failed := errors.New("failed")
	failing := func(context.Context, *reprise.Message) (string, error) { return "", failed }
	if err := awstarget.NewQueue(new(sender), false, failing).Handle(t.Context(), m); !errors.Is(err, failed) {
		t.Errorf("a transformation that fails: %v", err)
	}
}

// TestTransformedTooLarge: a message that is too large only after its transformation is at fault
// itself. The other queue is not: no other message must wait for it.
func TestTransformedTooLarge(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	to, err := reprise.NewSender(q.Client(), q.URL(), reprise.SenderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m := &reprise.Message{OriginID: "id", Body: "b", Attributes: map[string]types.MessageAttributeValue{
		"kind": {DataType: aws.String("String"), StringValue: aws.String("refund")}, // 16 bytes
		"raw":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 2}},      // 12 bytes
	}}
	const room = 1<<20 - 28
	for _, bytes := range []int{room, room + 1} {
		long := func(context.Context, *reprise.Message) (string, error) { return strings.Repeat("x", bytes), nil }
		err := awstarget.NewQueue(to, false, long).Handle(t.Context(), m)
		if bytes == room && err != nil || bytes > room && outcome(err) != permanent {
			t.Errorf("a body of %d bytes, where there is room for %d: %v", bytes, room, err)
		}
	}
	if n := len(q.Messages()); n != 1 {
		t.Errorf("the other queue has %d messages, want 1", n)
	}
}
