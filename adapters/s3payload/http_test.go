package s3payload_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// newS3 starts an S3 server of another project with the buckets, on loopback, and returns a client
// of the real SDK and the server's address.
func newS3(t *testing.T, buckets ...string) (client *s3.Client, url string) {
	t.Helper()
	backend := s3mem.New()
	for _, bucket := range buckets {
		if err := backend.CreateBucket(bucket); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	client = s3.New(s3.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(server.URL),
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	return client, server.URL
}

// objects returns the bodies in a bucket, by key.
func objects(t *testing.T, client *s3.Client, bucket string) map[string]string {
	t.Helper()
	list, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, o := range list.Contents {
		out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(out.Body)
		if err != nil {
			t.Fatal(err)
		}
		found[*o.Key] = string(body)
	}
	return found
}

// TestOverHTTP: payloads of many sizes go through a retry and a dead letter, with the SDKs of both
// services and an S3 server.
func TestOverHTTP(t *testing.T) {
	client, _ := newS3(t, "payloads")
	q := reprisetest.NewQueue(t, nil)
	dead := q.NewDeadLetterQueue(100)
	p := newPayloads(t, client)
	var messages []reprise.Outgoing
	for _, size := range []int{1, 90, 100, 64 << 10, 1 << 20, 3<<20 + 1, 16 << 20} {
		messages = append(messages, reprise.Outgoing{Body: fmt.Sprint(size) + strings.Repeat("ß", size/2)})
	}
	messages = append(messages, reprise.Outgoing{Body: "hopeless" + strings.Repeat(" order", 100)})
	if _, err := p.Send(t.Context(), newSender(t, q), messages...); err != nil {
		t.Fatal(err)
	}
	if n := len(objects(t, client, "payloads")); n != 6 {
		t.Errorf("%d objects, want 6", n)
	}
	wanted := make(map[string]bool)
	for _, m := range messages {
		wanted[m.Body] = true
	}
	c := q.ConsumeWith(q.Client(), p.Fetch(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		switch {
		case !wanted[m.Body]:
			t.Errorf("%d bytes arrived that nobody sent: %.20q", len(m.Body), m.Body)
		case strings.HasPrefix(m.Body, "hopeless"):
			return reprise.Permanent(errWarehouse)
		case m.Attempt == 1:
			return errWarehouse
		}
		return nil
	})), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None}, StopBudget: 4 * time.Second, AfterDelete: p.Remove})
	q.WaitEmpty(time.Minute)
	if report := c.Stop(); !report.Drained() || c.Status().Counts.Deleted != 7 {
		t.Errorf("%v", report)
	}
	left := objects(t, client, "payloads")
	for key, body := range left {
		if len(left) != 1 || body != messages[7].Body || !strings.Contains(dead.Messages()[0].Body, key) {
			t.Errorf("left is %s: %.20q", key, body)
		}
	}
	if p.Stats().Removed != 5 || len(left) != 1 {
		t.Errorf("%+v; %d left", p.Stats(), len(left))
	}
}

// TestMissingOverHTTP: the error of a real client for an object that does not exist.
func TestMissingOverHTTP(t *testing.T) {
	client, _ := newS3(t, "payloads")
	q := reprisetest.NewQueue(t, nil)
	dead := q.NewDeadLetterQueue(100)
	p := newPayloads(t, client)
	place, err := p.Offload(t.Context(), reprise.Outgoing{Body: strings.Repeat("order ", 100)})
	if err != nil {
		t.Fatal(err)
	}
	p.Remove(t.Context(), &reprise.Message{Body: place.Body, Attributes: place.Attributes})
	if p.Stats() != (s3payload.Stats{Offloaded: 1, Removed: 1}) || len(objects(t, client, "payloads")) > 0 {
		t.Fatalf("%+v", p.Stats())
	}
	if _, err := newSender(t, q).Send(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	q.ConsumeWith(q.Client(), p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		t.Error("the handler ran")
		return nil
	})), reprise.Config{StopBudget: 4 * time.Second})
	q.WaitEmpty(time.Minute)
	if story := storyOf(t, dead.Messages()[0]); story.Reason != "permanent" || !strings.Contains(story.Error, "NoSuchKey") {
		t.Errorf("the story is %+v", story)
	}
}
