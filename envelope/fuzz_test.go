package envelope_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/envelope"
)

// fuzz gives a decoder arbitrary bodies. It must not panic; what it opens has a
// kind, and a body that is no longer than what it was in, but for characters that
// were no UTF-8, which JSON replaces by ones of three bytes.
func fuzz(f *testing.F, decode envelope.Decoder, samples ...string) {
	for _, name := range samples {
		f.Add(sample(f, name))
	}
	f.Add(`{"Type":"Notification","TopicArn":"\ud800","MessageId":"\\","Message":"}{","MessageAttributes":{"":{}}}`)
	f.Add(`{"specversion":"1.0","id":"1","source":"/","type":"t","data":[{"a":"]"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		e, err := decode(body)
		if err != nil && e != nil {
			t.Fatalf("both %+v and %v", e, err)
		}
		if e == nil {
			return
		}
		if e.Kind == "" || len(e.Body) > 3*len(body) || e.Nothing != (e.Type == "s3:TestEvent") {
			t.Fatalf("opened as %+v", e)
		}
		again, err := decode(body)
		if err != nil || again.Key() != e.Key() || again.Body != e.Body {
			t.Fatalf("opened as %+v, and then as %+v, %v", e, again, err)
		}
	})
}

func FuzzSNS(f *testing.F)         { fuzz(f, envelope.SNS, "sns", "sns-confirmation") }
func FuzzEventBridge(f *testing.F) { fuzz(f, envelope.EventBridge, "eventbridge") }
func FuzzS3(f *testing.F)          { fuzz(f, envelope.S3, "s3", "s3-test") }
func FuzzCloudEvents(f *testing.F) {
	fuzz(f, envelope.CloudEvents, "cloudevents-json", "cloudevents-xml", "cloudevents-binary")
}
