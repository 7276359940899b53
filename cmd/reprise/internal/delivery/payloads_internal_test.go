package delivery

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/retry"
)

// bucket is a client of S3 that remembers what it was asked for.
type bucket struct {
	s3payload.Client
	asked []string
}

func (b *bucket) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	b.asked = append(b.asked, "get "+*in.Bucket+"/"+*in.Key)
	return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader("large")), ContentLength: aws.Int64(5)}, nil
}

func (b *bucket) DeleteObject(_ context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	b.asked = append(b.asked, "delete "+*in.Bucket+"/"+*in.Key)
	return &s3.DeleteObjectOutput{}, nil
}

// TestPayloadsOfTheirPlace: only bodies of the bucket and of the prefix that are set are fetched and removed. Whoever
// may send can name any object: a message must not have another one read or deleted. With --keep-payloads none is
// deleted.
func TestPayloadsOfTheirPlace(t *testing.T) {
	for _, test := range []struct {
		place    string
		settings []string
		asked    string
	}{
		{"bills/orders/1", nil, "get bills/orders/1 delete bills/orders/1"},
		{"bills/orders/1", []string{"keep-payloads", "true"}, "get bills/orders/1"},
		{"bills/payroll/1", nil, ""},
		{"other/orders/1", nil, ""},
	} {
		s := settingsOf(t, append([]string{"exec", "true", "payloads", "s3://bills/orders/"}, test.settings...)...)
		if err := s.Check("q"); err != nil {
			t.Fatal(err)
		}
		b, body := new(bucket), ""
		h, remove, err := s.Fetched(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error { body = m.Body; return nil }), b, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		in, key, _ := strings.Cut(test.place, "/")
		m := &reprise.Message{
			ID: "m", OriginID: "m", Body: `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"` + in + `","s3Key":"` + key + `"}]`,
			Attributes: map[string]types.MessageAttributeValue{s3payload.SizeAttribute: {DataType: aws.String("Number"), StringValue: aws.String("5")}},
		}
		err = h.Handle(t.Context(), m)
		if remove != nil {
			remove(t.Context(), m)
		}
		if got := strings.Join(b.asked, " "); got != test.asked || (body == "large") != (test.asked != "") {
			t.Errorf("%s with %v: S3 was asked for %q, want %q; the body is %q", test.place, test.settings, got, test.asked, body)
		}
		if test.asked == "" {
			if d := (retry.Policy{}).Decide(retry.Failure{N: 1, Err: err}); err == nil || d.Action != retry.ActionDeadLetter {
				t.Errorf("%s: %v, want a permanent error", test.place, err)
			}
		}
	}
}
