package admin_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestDue: what is hidden is counted by when it comes, with the reason; what is visible is not.
func TestDue(t *testing.T) {
	s, _ := withMessages(t)
	status, text := s.call("GET", admin.Path+"queues/orders/due", "")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	due := decode[admin.Due](t, text)
	if due.Looked != 2 || !due.Complete || len(due.Spans) != 4 {
		t.Fatalf("%s", text)
	}
	hidden := 0
	for _, span := range due.Spans {
		hidden += span.Messages
		reasons := span.Others
		for _, why := range span.Why {
			reasons += why.Messages
			if why.Why == "" || why.State == "" {
				t.Errorf("no reason in %+v", span)
			}
		}
		if reasons != span.Messages || span.Looked != span.Messages || span.Messages > 0 && (span.First.Before(due.At) || span.Last.Before(span.First)) {
			t.Errorf("%+v", span)
		}
	}
	if minute := due.Spans[0]; hidden != 2 || minute.Within != "minute" || minute.Messages != 2 || !strings.Contains(text, "sent with a delay") {
		t.Errorf("%s", text)
	}
	if status, text := s.call("GET", admin.Path+"queues/none/due", ""); status != 404 {
		t.Errorf("a queue that does not exist: %d %s", status, text)
	}
}

// TestMessagesSelected: a selection names the messages of a list, each with why it waits.
func TestMessagesSelected(t *testing.T) {
	s, _ := withMessages(t)
	list := func(query url.Values) admin.Messages {
		t.Helper()
		status, text := s.call("GET", admin.Path+"queues/orders/messages?"+query.Encode(), "")
		if status != 200 {
			t.Fatalf("%v: %d %s", query, status, text)
		}
		return decode[admin.Messages](t, text)
	}
	found := list(url.Values{"selection": {`{"body":"^later$"}`}, "standing": {"true"}})
	if len(found.Messages) != 1 || found.Messages[0].State != "delayed" || found.Messages[0].Standing == nil || found.Messages[0].Standing.Why != "sent with a delay" {
		t.Errorf("%+v", found)
	}
	if found := list(url.Values{"selection": {`{"attributes":{"tenant":"acme"}}`}, "limit": {"4"}}); len(found.Messages) != 4 || found.Next == "" {
		t.Errorf("a page of those of an attribute: %d messages, next %q", len(found.Messages), found.Next)
	}
	if found := list(url.Values{"selection": {`{}`}}); len(found.Messages) != 12 {
		t.Errorf("an empty selection: %d messages", len(found.Messages))
	}
	id := list(url.Values{}).Messages[0].ID
	if status, text := s.call("GET", admin.Path+"queues/orders/messages/"+id+"?standing=true", ""); status != 200 || decode[admin.Message](t, text).Standing == nil {
		t.Errorf("one message: %d %s", status, text)
	}
	for _, selection := range []string{"x", `{"body":"("}`, `{"colour":"red"}`} {
		status, text := s.call("GET", admin.Path+"queues/orders/messages?selection="+url.QueryEscape(selection), "")
		if status != 400 || decode[admin.Error](t, text).Code != "bad-request" {
			t.Errorf("%s: %d %s", selection, status, text)
		}
	}
}
