package sqsserver_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A receive whose reply is lost is tried again under the same attempt id.
func TestAttemptAfterALostReply(t *testing.T) {
	b := &bench{T: t, server: newServer(t)}
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
