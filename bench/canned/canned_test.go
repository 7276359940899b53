package canned_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/canned"
)

// Every way to the queue returns messages that the SDK, with its checksums on, accepts as valid:
// each once, and none after it was deleted.
func TestEveryWayInServesDistinctMessages(t *testing.T) {
	served := canned.New()
	server := httptest.NewServer(served)
	defer server.Close()
	below, direct := canned.New(), canned.New()
	for _, way := range []struct {
		name   string
		queue  *canned.Queue
		client reprise.Client
	}{
		{"below net/http", below, below.SDK()},
		{"over TCP", served, canned.Client(server.URL, reprise.Tuned(reprise.Transport{}))},
		{"direct", direct, direct.Direct()},
	} {
		t.Run(way.name, func(t *testing.T) {
			const backlog = 200
			worked := make(chan struct{})
			go func() {
				defer close(worked)
				way.queue.Work(backlog)
			}()
			seen := map[string]bool{}
			for len(seen) < backlog {
				before := len(seen)
				for _, m := range consume(t, way.client, 1+len(seen)%10) {
					if !json.Valid([]byte(*m.Body)) || len(*m.Body) != 1024 {
						t.Fatalf("message %s has the body %q, want JSON of 1,024 bytes", *m.MessageId, *m.Body)
					}
					if m.Attributes["ApproximateReceiveCount"] != "1" {
						t.Fatalf("message %s has attributes %v", *m.MessageId, m.Attributes)
					}
					seen[*m.MessageId] = true
				}
				if len(seen) == before {
					t.Fatalf("after %d messages of %d a receive brought nothing new", before, backlog)
				}
			}
			<-worked
			way.queue.Close()
			if got := consume(t, way.client, 10); len(got) != 0 {
				t.Errorf("a closed queue handed out %d messages", len(got))
			}
		})
	}
}

// Other consumers delete messages one by one, use their own ids for batch entries, and ask for the
// queue's URL.
func TestOtherConsumersCalls(t *testing.T) {
	ctx, queue := t.Context(), canned.New()
	client := queue.SDK()
	if out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(canned.Name)}); err != nil || *out.QueueUrl != canned.URL {
		t.Fatalf("GetQueueUrl: %v, %v", out, err)
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		queue.Work(3)
	}()
	out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(canned.URL), MaxNumberOfMessages: 3})
	if err != nil || len(out.Messages) != 3 {
		t.Fatalf("ReceiveMessage: %v, %v", out, err)
	}
	if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: aws.String(canned.URL), ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	var entries []types.DeleteMessageBatchRequestEntry
	for _, m := range out.Messages[1:] {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
	}
	deleted, err := client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(canned.URL), Entries: entries})
	if err != nil || len(deleted.Successful) != len(entries) {
		t.Fatalf("DeleteMessageBatch: %v, %v", deleted, err)
	}
	for i, e := range entries {
		if *deleted.Successful[i].Id != *e.Id {
			t.Errorf("entry %s was confirmed as %s", *e.Id, *deleted.Successful[i].Id)
		}
	}
	<-worked
}

// consume receives up to most messages and deletes them.
func consume(t *testing.T, c reprise.Client, most int) []types.Message {
	t.Helper()
	ctx := context.Background()
	out, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(canned.URL), MaxNumberOfMessages: int32(most)})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) == 0 {
		return nil
	}
	var entries []types.DeleteMessageBatchRequestEntry
	for i, m := range out.Messages {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(string(rune('0' + i))), ReceiptHandle: m.ReceiptHandle})
	}
	deleted, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(canned.URL), Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	if len(deleted.Successful) != len(entries) || len(deleted.Failed) != 0 {
		t.Fatalf("of %d deletes %d were confirmed and %d refused", len(entries), len(deleted.Successful), len(deleted.Failed))
	}
	return out.Messages
}
