package mapping_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/mapping"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestEvent holds events to Lambda's, byte for byte.
func TestEvent(t *testing.T) {
	attributes := []sqsserver.MessageAttribute{
		{Name: "kind", DataType: "String", StringValue: "<order>"},
		{Name: "photo", DataType: "Binary.png", BinaryValue: []byte{1, 2, 255}},
	}
	const attributesText = `{"kind":{"stringValue":"<order>","stringListValues":[],"binaryListValues":[],"dataType":"String"},` +
		`"photo":{"binaryValue":"AQL/","stringListValues":[],"binaryListValues":[],"dataType":"Binary.png"}}`
	const sent = `"SentTimestamp":"946684800000"`
	for _, test := range []struct {
		name  string
		queue map[string]string
		cfg   mapping.Config
		entry sqsserver.SendMessageEntry
		want  string
	}{
		{
			name:  "plain",
			entry: sqsserver.SendMessageEntry{MessageBody: `{"a": "é<&>"}`},
			want: `"body":"{\"a\": \"é<&>\"}","attributes":{"ApproximateFirstReceiveTimestamp":"946684800000","ApproximateReceiveCount":"1","SenderId":"SENDER",` + sent + `},` +
				`"messageAttributes":{},"md5OfBody":"MD5",`,
		},
		{
			name:  "attributes",
			entry: sqsserver.SendMessageEntry{MessageBody: "x", MessageAttributes: attributes},
			want: `"body":"x","attributes":{"ApproximateFirstReceiveTimestamp":"946684800000","ApproximateReceiveCount":"1","SenderId":"SENDER",` + sent + `},` +
				`"messageAttributes":` + attributesText + `,"md5OfMessageAttributes":"ATTRIBUTES","md5OfBody":"MD5",`,
		},
		{
			name:  "window",
			cfg:   mapping.Config{Window: time.Second},
			entry: sqsserver.SendMessageEntry{MessageBody: "x"},
			want: `"body":"x","attributes":{"ApproximateFirstReceiveTimestamp":"946684800000","ApproximateReceiveCount":"1","SenderId":"SENDER",` + sent + `},` +
				`"messageAttributes":{},"md5OfMessageAttributes":null,"md5OfBody":"MD5",`,
		},
		{
			name:  "window, attributes",
			cfg:   mapping.Config{BatchSize: 11, Window: time.Second},
			entry: sqsserver.SendMessageEntry{MessageBody: "x", MessageAttributes: attributes},
			want: `"body":"x","attributes":{"ApproximateFirstReceiveTimestamp":"946684800000","ApproximateReceiveCount":"1","SenderId":"SENDER",` + sent + `},` +
				`"messageAttributes":` + attributesText + `,"md5OfMessageAttributes":"ATTRIBUTES","md5OfBody":"MD5",`,
		},
		{
			name:  "FIFO",
			queue: map[string]string{"FifoQueue": "true"},
			entry: sqsserver.SendMessageEntry{MessageBody: "x", MessageGroupId: "g", MessageDeduplicationId: "d"},
			want: `"body":"x","attributes":{"ApproximateFirstReceiveTimestamp":"946684800000","ApproximateReceiveCount":"1",` +
				`"MessageDeduplicationId":"d","MessageGroupId":"g","SenderId":"SENDER",` + sent + `,"SequenceNumber":"SEQUENCE"},` +
				`"messageAttributes":{},"md5OfBody":"MD5",`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, test.queue)
				out, err := q.Server().SendMessage(t.Context(), &sqsserver.SendMessageInput{QueueUrl: q.URL(), SendMessageEntry: test.entry})
				if err != nil {
					t.Fatal(err)
				}
				f := &function{}
				start(t, q, f, test.cfg)
				q.WaitEmpty(time.Minute)
				r := f.events[0].Records[0]
				want := strings.NewReplacer(
					"SENDER", r.Attributes["SenderId"], "SEQUENCE", fmt.Sprint(out.SequenceNumber),
					"MD5", out.MD5OfMessageBody.String(), "ATTRIBUTES", out.MD5OfMessageAttributes.String(),
				).Replace(test.want)
				want = fmt.Sprintf(`{"Records":[{"messageId":%q,"receiptHandle":%q,`, out.MessageId.String(), r.ReceiptHandle) + want +
					fmt.Sprintf(`"eventSource":"aws:sqs","eventSourceARN":%q,"awsRegion":"us-east-1"}]}`, q.ARN())
				check(t, "event", string(f.raw[0]), want)
				if r.Attributes["SenderId"] == "" || r.ReceiptHandle == "" {
					t.Errorf("the record %+v has no sender or no receipt handle", r)
				}
			})
		})
	}
}

// TestFilters: messages that no filter matches are deleted, and the function never sees
// them.
func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		f := &function{}
		start(t, q, f, mapping.Config{Filters: []string{`{"body":{"kind":["order"]}}`, `{"body":["ping"]}`}})
		for _, body := range []string{`{"kind":"order"}`, `{"kind":"invoice"}`, `ping`, `pong`} {
			q.Send(body)
		}
		q.WaitEmpty(visibility - 1)
		var got []string
		for _, bodies := range f.bodies() {
			got = append(got, bodies...)
		}
		check(t, "bodies", got, []string{`{"kind":"order"}`, `ping`})
	})
}
