package admin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestCopiesOfAnEndedRequest: if the request ends at the last copy, which the server still looks at, the error says why
// it ended.
func TestCopiesOfAnEndedRequest(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	defer server.Close()
	created, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.SendMessage(t.Context(), &sqsserver.SendMessageInput{QueueUrl: created.QueueUrl, SendMessageEntry: sqsserver.SendMessageEntry{
		MessageBody: "m", DelaySeconds: sqsserver.Int(60),
		MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: "{}"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the client has gone")
	ctx, end := context.WithCancelCause(t.Context())
	a := &API{cfg: Config{Server: server}}
	retried, left, err := a.retryCopies(ctx, &Running{URL: created.QueueUrl}, func(string) bool {
		end(gone)
		return false
	})
	if !errors.Is(err, gone) || strings.Contains(err.Error(), "%!") || len(retried)+left != 0 {
		t.Errorf("%q, %d left, %v", retried, left, err)
	}
}
