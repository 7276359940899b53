package admin

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestReleaseOfWhatWasReceivedMeanwhile: a delayed message that somebody receives after the operator's request has seen
// it is not made visible: its handler runs, and would run a second time elsewhere.
func TestReleaseOfWhatWasReceivedMeanwhile(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	defer server.Close()
	if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
		t.Fatal(err)
	}
	in := &sqsserver.SendMessageInput{QueueUrl: "q"}
	in.MessageBody, in.DelaySeconds = "order", sqsserver.Int(60)
	if _, err := server.SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	seen, err := server.Messages("q", sqsserver.Page{})
	if err != nil || len(seen) != 1 || seen[0].State != sqsserver.Delayed {
		t.Fatal(seen, err)
	}
	if err := server.Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	if out, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "q"}); err != nil || len(out.Messages) != 1 {
		t.Fatal(out, err)
	}
	a := &API{cfg: Config{Server: server, Consumers: func() []Running { return nil }}}
	err = a.releaseMessage(server, "q", &seen[0], Nothing{})
	if m, lookErr := server.Message("q", seen[0].ID); err == nil || m.State != sqsserver.InFlight || lookErr != nil {
		t.Errorf("the release returned %v, and the message is %s, want that it stays with its receiver", err, m.State)
	}
}
