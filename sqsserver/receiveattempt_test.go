package sqsserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A receive whose reply is lost is tried again under the same attempt id.
func TestAttemptAfterALostReply(t *testing.T) {
	b := &testServer{T: t, server: newServer(t)}
	b.url = b.create("q.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	b.send("x", func(in *sqsserver.SendMessageInput) { in.MessageGroupId = "g" })
	if err := b.server.SetFaults("q.fifo", sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "ReceiveMessage", Limit: 1}); err != nil {
		t.Fatal(err)
	}
	in := &sqsserver.ReceiveMessageInput{QueueUrl: b.url, ReceiveRequestAttemptId: "a", MessageSystemAttributeNames: []string{"All"}}
	if _, err := b.server.ReceiveMessage(t.Context(), in); err == nil {
		t.Fatal("the reply was not lost")
	}
	out, err := b.server.ReceiveMessage(t.Context(), in)
	if err != nil || len(out.Messages) != 1 || out.Messages[0].Attributes.ApproximateReceiveCount != 1 {
		t.Fatalf("the second attempt returned %+v, %v; want the message, received once", out, err)
	}
	if err := b.delete(out.Messages[0].ReceiptHandle); err != nil {
		t.Error(err)
	}
}

// An attempt id that is used again names the later receive, also when the earlier one
// has been forgotten.
func TestAttemptIDUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &testServer{T: t, server: newServer(t)}
		b.url = b.create("q.fifo", map[string]string{"FifoQueue": "true"})
		for _, body := range []string{"x", "y"} {
			b.send(body, func(in *sqsserver.SendMessageInput) { in.MessageGroupId, in.MessageDeduplicationId = "g", body })
		}
		receive := func() *sqsserver.Message {
			t.Helper()
			out, err := b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{
				QueueUrl: b.url, ReceiveRequestAttemptId: "a", VisibilityTimeout: sqsserver.Int(3600), MessageSystemAttributeNames: []string{"All"},
			})
			if err != nil || len(out.Messages) != 1 {
				t.Fatalf("received %+v, %v; want a message", out, err)
			}
			return &out.Messages[0]
		}
		if err := b.delete(receive().ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		second := receive()
		time.Sleep(3 * time.Minute) // the first was six minutes ago
		if again := receive(); again.ReceiptHandle != second.ReceiptHandle || again.Attributes.ApproximateReceiveCount != 1 {
			t.Errorf("the repetition returned %+v, want the message of the second receive, received once", again)
		}
	})
}
