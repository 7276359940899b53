package admin

import (
	"log/slog"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestDeleteOfWhatWasReceivedMeanwhile: a letter that somebody receives between the look of a job and its delete stays,
// and is counted as one that was not deleted.
func TestDeleteOfWhatWasReceivedMeanwhile(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	defer server.Close()
	if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		in := &sqsserver.SendMessageInput{QueueUrl: "q"}
		in.MessageBody = "letter"
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := server.Messages("q", sqsserver.Page{})
	if err != nil || len(seen) != 3 {
		t.Fatal(seen, err)
	}
	var doomed []sqsserver.Shown
	for i := range seen {
		doomed = append(doomed, sqsserver.Shown{Number: seen[i].Number, Receives: seen[i].Receives})
	}
	if out, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "q"}); err != nil || len(out.Messages) != 1 {
		t.Fatal(out, err)
	}
	a := &API{cfg: Config{Server: server, Events: new(Events), Logger: slog.New(slog.DiscardHandler)}}
	j := &job{from: JobQueue{URL: "q"}}
	if err := a.deleteShown(j, doomed); err != nil {
		t.Fatal(err)
	}
	left, err := server.Messages("q", sqsserver.Page{})
	if err != nil || len(left) != 1 || j.Done != 2 || j.Failed != 1 || j.Problem == "" {
		t.Errorf("%d letters are left: %d deleted, %d not, problem %q; %v", len(left), j.Done, j.Failed, j.Problem, err)
	}
}
