package admin_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestDueSaysThatItSampled: of many messages only some are asked why they wait. The answer says so, also if what
// comes due later was asked completely.
func TestDueSaysThatItSampled(t *testing.T) {
	s, server := serveOwn(t, nil)
	for i := range 602 {
		in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
		in.MessageBody, in.DelaySeconds = "m", sqsserver.Int(30)
		if i >= 600 {
			in.DelaySeconds = sqsserver.Int(600)
		}
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	_, text := s.call("GET", admin.Path+"queues/orders/due", "")
	due := decode[admin.Due](t, text)
	if minute, hour := due.Spans[0], due.Spans[1]; minute.Messages != 600 || minute.Looked >= 600 || hour.Messages != 2 || hour.Looked != 2 || due.Complete || due.Looked != minute.Looked+2 {
		t.Errorf("%s", text)
	}
}
