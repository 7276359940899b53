package envelope_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise/envelope"
)

// sample returns a payload of testdata, as the formats' own pages show them.
func sample(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// all are the package's decoders.
var all = []envelope.Decoder{envelope.SNS, envelope.EventBridge, envelope.S3, envelope.CloudEvents}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(s)}
}

// TestDecoders: each kind's own samples, opened by its decoder and by no other.
func TestDecoders(t *testing.T) {
	thrift := "\x00\xff\x07"
	for _, tt := range []struct {
		sample string
		opener int // in all
		want   envelope.Envelope
	}{
		{"sns", 0, envelope.Envelope{
			Kind: "sns", ID: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", Source: "arn:aws:sns:us-west-2:123456789012:orders", Type: "Notification",
			Subject: "Order placed", Time: time.Date(2026, 5, 2, 0, 54, 6, 655e6, time.UTC), Body: `{"id":"o-1","sku":"café \"noir\""}`,
			Attributes: map[string]types.MessageAttributeValue{
				"tenant": text("acme"),
				"weight": {DataType: aws.String("Number"), StringValue: aws.String("12.5")},
				"tags":   {DataType: aws.String("String.Array"), StringValue: aws.String(`["new","gift"]`)},
				"digest": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255, 7}},
			},
		}},
		{"eventbridge", 1, envelope.Envelope{
			Kind: "eventbridge", ID: "6a7e8feb-b491-4cf7-a9f1-bf3703467718", Source: "aws.ec2", Type: "EC2 Instance State-change Notification",
			Time: time.Date(2026, 12, 22, 18, 43, 48, 0, time.UTC), Body: `{"instance-id":"i-1234567890abcdef0","state":"terminated"}`,
		}},
		{"s3", 2, envelope.Envelope{
			Kind: "s3", Source: "amzn-s3-demo-bucket", Type: "ObjectCreated:Put", Subject: "photos/red flower(1).jpg", Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			ID: "ObjectCreated:Put photos/red+flower%281%29.jpg 096fKKXTRTtl3on89fVO.nfljtsv6qko 0055AED6DCD90281E5", Body: sample(t, "s3"),
		}},
		{"s3-test", 2, envelope.Envelope{Kind: "s3", Source: "amzn-s3-demo-bucket", Type: "s3:TestEvent", Nothing: true}},
		{"cloudevents-json", 3, envelope.Envelope{
			Kind: "cloudevents", ID: "C234-1234-1234", Source: "/mycontext", Type: "com.example.someevent", Time: time.Date(2018, 4, 5, 17, 31, 0, 0, time.UTC),
			Body: "{\n        \"appinfoA\" : \"abc\",\n        \"appinfoB\" : 123,\n        \"appinfoC\" : true\n    }",
		}},
		{"cloudevents-xml", 3, envelope.Envelope{
			Kind: "cloudevents", ID: "B234-1234-1234", Source: "/mycontext", Type: "com.example.someevent", Time: time.Date(2018, 4, 5, 17, 31, 0, 0, time.UTC),
			Body: `<much wow="xml"/>`,
		}},
		{"cloudevents-binary", 3, envelope.Envelope{
			Kind: "cloudevents", ID: "A234-1234-1234", Source: "/mycontext", Type: "com.example.someevent", Time: time.Date(2018, 4, 5, 17, 31, 0, 0, time.UTC),
			Body: thrift,
		}},
	} {
		t.Run(tt.sample, func(t *testing.T) {
			for i, decode := range all {
				got, err := decode(sample(t, tt.sample))
				if err != nil {
					t.Fatalf("decoder %d: %v", i, err)
				}
				if i != tt.opener {
					if got != nil {
						t.Errorf("decoder %d opened it too: %+v", i, got)
					}
					continue
				}
				if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestNoEnvelope: what is none passes, however much it resembles one.
func TestNoEnvelope(t *testing.T) {
	for _, body := range []string{
		"", "order", "{", "{}", " {\n}\t", "[]", "null", `"Notification"`,
		`{"id":"o-1","source":"web","type":"order"}`,
		`{"Type":"Notification","Message":"by hand, without a topic"}`,
		`{"type":"Notification","topicArn":"arn","message":"other names"}`,
		`{"Type":"Receipt","TopicArn":"arn","Message":"of another type"}`,
		`{"Type":5,"TopicArn":"arn"}`,
		`{"within":{"Type":"Notification","TopicArn":"arn","Message":"m","MessageId":"i"}}`,
		`{"Type":"Notification","TopicArn":"arn","Message":"cut off`,
		`Type Notification TopicArn`,
		`{"detail-type":"order","detail":{}}`,
		`["detail-type","source"]`,
		`{"Records":[]}`, `{"Records":[{"eventSource":"aws:ses"}],"note":"aws:s3"}`, `{"Records":"aws:s3"}`, `{"Records":[{"eventSource":"aws:s3`,
		`{"Service":"Amazon S3","Event":"s3:Other","Bucket":"b"}`,
		`[{"specversion":"1.0","id":"1","source":"/","type":"batch"}]`,
		`{"note":"specversion"}`,
	} {
		for i, decode := range all {
			if e, err := decode(body); e != nil || err != nil {
				t.Errorf("decoder %d on %q: %+v, %v", i, body, e, err)
			}
		}
	}
}

// TestMalformedEnvelope: what says that it is one and cannot be opened is an error
// that says why.
func TestMalformedEnvelope(t *testing.T) {
	sns := func(members string) string {
		return `{"Type":"Notification","TopicArn":"arn:t",` + members + `}`
	}
	cloud := func(members string) string {
		return `{"specversion":"1.0","id":"1","source":"/","type":"t",` + members + `}`
	}
	s3 := func(old, new string) string {
		return strings.Replace(sample(t, "s3"), old, new, 1)
	}
	for _, tt := range []struct {
		decode envelope.Decoder
		body   string
		want   string
	}{
		{envelope.SNS, sns(`"MessageId":"1"`), `SNS notification: "Message" is missing or empty`},
		{envelope.SNS, sns(`"Message":"m"`), `"MessageId" is missing or empty`},
		{envelope.SNS, sns(`"Message":"m","MessageId":null`), `"MessageId" is missing or empty`},
		{envelope.SNS, sns(`"Message":{"m":1},"MessageId":"1"`), `"Message" is not a string`},
		{envelope.SNS, sns(`"Message":"m","MessageId":"1","Timestamp":"yesterday"`), `"Timestamp" is not a time of RFC 3339: "yesterday"`},
		{envelope.SNS, sns(`"Message":"m","MessageId":"1","MessageAttributes":[1]`), `"MessageAttributes" is not an object`},
		{envelope.SNS, sns(`"Message":"m","MessageId":"1","MessageAttributes":{"a":"b"}`), `message attribute "a": its Type and Value must be strings`},
		{envelope.SNS, sns(`"Message":"m","MessageId":"1","MessageAttributes":{"a":{"Type":"Number","Value":5}}`), `message attribute "a": its Type and Value must be strings`},
		{envelope.SNS, sns(`"Message":"m","MessageId":"1","MessageAttributes":{"a":{"type":"String","value":"v"}}`), `message attribute "a": its Type and Value must be strings`},
		{envelope.SNS, sns(`"Message":"m","MessageId":"1","MessageAttributes":{"a":{"Type":"Binary","Value":"%"}}`), `message attribute "a": it is not base64`},
		{envelope.SNS, sample(t, "sns-confirmation"), `SubscriptionConfirmation of topic "arn:aws:sns:us-west-2:123456789012:orders": confirm`},
		{envelope.EventBridge, `{"detail-type":"t","source":"s","id":"1"}`, `EventBridge event: "detail" is missing or not an object`},
		{envelope.EventBridge, `{"detail-type":"t","source":"s","id":"1","detail":"{}"}`, `"detail" is missing or not an object`},
		{envelope.EventBridge, `{"detail-type":"t","source":"s","detail":{}}`, `"id" is missing`},
		{envelope.EventBridge, `{"detail-type":"","source":"s","id":"1","detail":{}}`, `"detail-type" is missing or empty`},
		{envelope.EventBridge, `{"detail-type":"t","source":"s","id":"1","detail":{},"time":5}`, `"time" is not a string`},
		{envelope.S3, s3(`"2.1"`, `"3.0"`), `S3 event: record 0: "eventVersion" is "3.0", and only 2 can be read`},
		{envelope.S3, s3(`"name":"amzn-s3-demo-bucket"`, `"name":""`), `the bucket or the object's key is missing`},
		{envelope.S3, s3(`%281%29`, `%2`), `the object's key "photos/red+flower%2.jpg"`},
		{envelope.S3, s3(`"2026-01-01T00:00:00.000Z"`, `7`), `S3 event: `},
		{envelope.S3, s3(`"2026-01-01T00:00:00.000Z"`, `"today"`), `S3 event: the event's time`},
		{envelope.CloudEvents, `{"specversion":"0.3","id":"1","source":"/","type":"t"}`, `CloudEvent: "specversion" is "0.3", and only "1.0" can be opened`},
		{envelope.CloudEvents, `{"specversion":"1.0","source":"/","type":"t"}`, `"id" is missing`},
		{envelope.CloudEvents, `{"specversion":"1.0","id":"1","source":null,"type":"t"}`, `"source" is missing`},
		{envelope.CloudEvents, cloud(`"data":1,"data_base64":"AA=="`), `it has both "data" and "data_base64"`},
		{envelope.CloudEvents, cloud(`"data_base64":"%"`), `"data_base64" is not base64`},
		{envelope.CloudEvents, cloud(`"data_base64":5`), `"data_base64" is not a string`},
		{envelope.CloudEvents, cloud(`"datacontenttype":"text/plain","data":{"a":1}`), `"data" is not a string`},
		{envelope.CloudEvents, cloud(`"time":"2018-04-05 17:31"`), `"time" is not a time`},
	} {
		e, err := tt.decode(tt.body)
		if e != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %s", tt.body, e, err, tt.want)
		}
	}
}

// TestCloudEventData: what the body inside is, by content type.
func TestCloudEventData(t *testing.T) {
	for _, tt := range []struct{ members, want string }{
		{`"data":"I'm just a string"`, `"I'm just a string"`}, // JSON, since no type is given
		{`"data":null`, `null`},
		{`"data":[1, 2]`, `[1, 2]`},
		{`"datacontenttype":"application/problem+JSON; charset=utf-8","data":{"a":"\u00e9"}`, `{"a":"\u00e9"}`},
		{`"datacontenttype":"text/plain","data":"\u00e9"`, "é"},
		{`"datacontenttype":"text/plain"`, ""},
		{`"data_base64":""`, ""},
		{`"data_base64":null,"data":1`, "1"},
		{`"subject":"s"`, ""},
	} {
		e, err := envelope.CloudEvents(`{"specversion":"1.0","id":"1","source":"/","type":"t",` + tt.members + `}`)
		if err != nil || e == nil || e.Body != tt.want {
			t.Errorf("%s: got %+v, %v, want the body %q", tt.members, e, err, tt.want)
		}
	}
}

// TestS3IDs: an event without a sequencer has the request's id, one with neither has
// none, and several records are all in it, or there is none.
func TestS3IDs(t *testing.T) {
	body := sample(t, "s3")
	without := strings.Replace(body, `,"sequencer":"0055AED6DCD90281E5"`, "", 1)
	neither := strings.Replace(without, "x-amz-request-id", "x-amz-other", 1)
	record := func(body string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(body), `{"Records":[`), `]}`)
	}
	const id = "ObjectCreated:Put photos/red+flower%281%29.jpg 096fKKXTRTtl3on89fVO.nfljtsv6qko "
	for _, tt := range []struct{ body, want string }{
		{without, id + "C3D13FE58DE4C810"},
		{neither, ""},
		{`{"Records":[` + record(body) + `,` + record(without) + `]}`, id + "0055AED6DCD90281E5 " + id + "C3D13FE58DE4C810"},
		{`{"Records":[` + record(body) + `,` + record(neither) + `]}`, ""},
	} {
		e, err := envelope.S3(tt.body)
		if err != nil || e == nil || e.ID != tt.want {
			t.Errorf("got %+v, %v, want the id %q", e, err, tt.want)
		}
	}
}
