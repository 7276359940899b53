// This file holds off a producer that may send to one queue, and that writes envelopes
// itself: they are opened in bounded depth and memory, and what they say concerns their
// own message.

package envelope_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/envelope"
	"github.com/reprise-sqs/reprise/retry"
)

var decoders = []envelope.Decoder{envelope.SNS, envelope.EventBridge, envelope.S3, envelope.CloudEvents}

// TestAttackNestedEnvelopes: of notifications in notifications, as deep as a message has
// room for, each decoder opens one.
func TestAttackNestedEnvelopes(t *testing.T) {
	body := "hello"
	for depth := 0; ; depth++ {
		next := notification(t, body, "")
		if len(next) > 1<<20 {
			if depth < 5 {
				t.Fatalf("only %d deep", depth)
			}
			break
		}
		body = next
	}
	var got seen
	if err := envelope.Unwrap(decoders...)(&got).Handle(t.Context(), &reprise.Message{Body: body}); err != nil {
		t.Fatal(err)
	}
	if got.envelope == nil || got.envelope.Outer != nil || !strings.HasPrefix(got.message.Body, `{"Type":"Notification"`) {
		t.Errorf("opened more than one: %.100q", got.message.Body)
	}
}

// TestAttackDeepJSON: objects in objects, as deep as a message has room for, are told from
// envelopes without a deep stack.
func TestAttackDeepJSON(t *testing.T) {
	for _, body := range []string{
		`{"Type":"Notification","TopicArn":"t","MessageId":"m","Message":"x","deep":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + "}",
		`{"specversion":"1.0","id":"i","source":"s","type":"t","data":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + "}",
		strings.Repeat(`{"detail-type":"source`, 40_000),
	} {
		var got seen
		if err := envelope.Unwrap(decoders...)(&got).Handle(t.Context(), &reprise.Message{Body: body}); err != nil || got.envelope != nil {
			t.Errorf("%.50q: %v", body, err)
		}
	}
}

// TestAttackManyRecords: an event of S3 with hundreds of thousands of records is refused
// before they take memory.
func TestAttackManyRecords(t *testing.T) {
	first := `{"eventSource":"aws:s3","eventVersion":"2.1"}`
	body := `{"Records":[` + first + strings.Repeat(",{}", 340_000) + `]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := envelope.S3(body)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 1000 records") {
		t.Errorf("error %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("it took %d bytes", took)
	}
	var got seen
	err = envelope.Unwrap(decoders...)(&got).Handle(t.Context(), &reprise.Message{Body: body})
	if got.runs > 0 || (retry.Policy{}).Decide(retry.Failure{N: 1, Err: err}).Reason != retry.ReasonPermanent {
		t.Errorf("the handler ran, or it is retried: %v", err)
	}
}

// TestAttackLongError: what an envelope says does not make a long error.
func TestAttackLongError(t *testing.T) {
	long := strings.Repeat("x", 900_000)
	for name, body := range map[string]string{
		"sns":         `{"Type":"SubscriptionConfirmation","TopicArn":"` + long + `"}`,
		"time":        `{"Type":"Notification","TopicArn":"t","MessageId":"m","Message":"x","Timestamp":"` + long + `"}`,
		"attribute":   notification(t, "x", `,"MessageAttributes":{"`+long+`":1}`),
		"s3":          `{"Records":[{"eventSource":"aws:s3","eventVersion":"2.1","eventName":"n","eventTime":"` + long + `","s3":{"bucket":{"name":"b"},"object":{"key":"k"}}}]}`,
		"cloudevents": `{"specversion":"` + long + `"}`,
	} {
		var got seen
		err := envelope.Unwrap(decoders...)(&got).Handle(t.Context(), &reprise.Message{Body: body})
		if err == nil || got.runs > 0 || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: error of %d bytes: %.100v", name, len(err.Error()), err)
		}
	}
}

// TestAttackForgedAttributes: attributes inside an envelope are the handler's to see, and
// nobody else's: the ids, the group and the counts of the message stay SQS's and the
// consumer's.
func TestAttackForgedAttributes(t *testing.T) {
	body := notification(t, "hello", `,"MessageAttributes":{"reprise-history":{"Type":"String","Value":"{\"origin\":\"another\",\"attempt\":1000}"}}`)
	m := &reprise.Message{ID: "m", OriginID: "m", Body: body, GroupID: "g", Attempt: 2, Receives: 3, Sent: time.UnixMilli(1), Attributes: map[string]types.MessageAttributeValue{"tenant": {DataType: aws.String("String"), StringValue: aws.String("acme")}}}
	var got seen
	if err := envelope.Unwrap(decoders...)(&got).Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if in := got.message; in.ID != "m" || in.OriginID != "m" || in.GroupID != "g" || in.Attempt != 2 || in.Receives != 3 || !in.Sent.Equal(m.Sent) || len(m.Attributes) != 1 {
		t.Errorf("the handler got %+v, and outside it is %+v", in, m)
	}
}
