package admin_test

import (
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestMessageActions: one message is made visible, dead-lettered or deleted, each with its line in the log; what
// cannot be is refused with the reason.
func TestMessageActions(t *testing.T) {
	s, server := withMessages(t)
	infos, err := server.Messages("orders", sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var hidden, visible string
	for _, m := range infos {
		switch m.State {
		case sqsserver.Delayed:
			hidden = m.ID
		case sqsserver.Visible:
			visible = m.ID
		}
	}
	act := func(id, action string, want int, says string) {
		t.Helper()
		status, text := s.call("POST", admin.Path+"queues/orders/messages/"+id+"/"+action, "{}")
		if status != want || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s", action, status, text)
		}
	}
	act(visible, "release", 409, "is visible already")
	act(hidden, "release", 200, "{}")
	if m, err := server.Message("orders", hidden); err != nil || m.State != sqsserver.Visible {
		t.Errorf("after the release: %+v, %v", m.State, err)
	}
	act(hidden, "dead-letter", 409, "no dead-letter queue")
	act(hidden, "delete", 200, "{}")
	if _, err := server.Message("orders", hidden); err == nil {
		t.Error("it was not deleted")
	}
	act(hidden, "delete", 404, "no such message")
	for _, action := range []string{"release", "dead-letter", "delete"} {
		if !strings.Contains(s.log.String(), "action="+action+" ") {
			t.Errorf("the log has no line about %s", action)
		}
	}
}
