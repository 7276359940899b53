package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestLocal sends, purges, sets and removes faults and moves the time on, and the page tells of each.
func TestLocal(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) { cfg.CanAdvance = true })
	s.create("ordered.fifo", map[string]string{"FifoQueue": "true"})
	act := func(name string, fields ...string) string {
		t.Helper()
		form := url.Values{}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return s.do("POST", "/ui/local/"+name, form, s.browser()...).text
	}
	says := func(page, want string) {
		t.Helper()
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	count := func(queue string) int {
		t.Helper()
		all, err := s.sqs.Messages(queue, sqsserver.Page{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	says(s.do("GET", "/ui/local", nil).text, "None: the server behaves as SQS does.")

	says(act("send", "queue", "orders", "body", "hello"), "Sent to orders as ")
	says(act("send", "queue", "orders", "body", "late", "delay", "900"), "Sent to orders as ")
	says(act("send", "queue", "ordered.fifo", "body", "same", "group", "g", "times", "3"), "3 messages sent to ordered.fifo.")
	if orders, ordered := count("orders"), count("ordered.fifo"); orders != 2 || ordered != 3 {
		t.Errorf("the queues have %d and %d messages, want 2 and 3", orders, ordered)
	}
	says(act("send", "queue", "ordered.fifo", "body", "x"), "MessageGroupId")
	says(act("send", "queue", "orders", "body", "x", "times", "1001"), "no whole number from 1 to 1000")

	says(act("advance", "by", "15m"), "has moved on by 15m")
	if all, _ := s.sqs.Messages("orders", sqsserver.Page{}); len(all) != 2 || all[1].State != sqsserver.Visible {
		t.Errorf("after 15 minutes the queue has %+v", all)
	}
	says(act("advance", "by", "soon"), "90s")
	says(s.do("GET", "/ui/local", nil).text, "from the machine’s")

	says(act("add-fault", "queue", "*", "kind", "slow-reply", "action", "SendMessage", "delay", "1ms", "probability", "0.5", "limit", "3"), "strikes every queue from now on")
	says(act("add-fault", "queue", "orders", "kind", "throttle", "action", "PurgeQueue"), "strikes orders from now on")
	says(act("add-fault", "queue", "orders", "kind", "fire"), "fire")
	says(act("add-fault", "queue", "absent", "kind", "throttle"), "no queue")
	page := s.do("GET", "/ui/local", nil).text
	says(page, "slow-reply, of SendMessage, with chance 0.5, 3 times at most, delay 1ms")
	says(page, "throttle, of PurgeQueue")
	says(act("remove-fault", "queue", "orders", "fault", "throttle, of PurgeQueue"), "is removed")
	says(act("remove-fault", "queue", "orders", "fault", "throttle, of PurgeQueue"), "any more")
	if all := s.sqs.AllFaults(); len(all["orders"]) != 0 || len(all["*"]) != 1 {
		t.Errorf("the faults are %+v", all)
	}

	says(act("purge", "queue", "orders"), "nothing was deleted")
	if n := count("orders"); n != 2 {
		t.Errorf("without being sure the queue has %d messages, want 2", n)
	}
	says(act("purge", "queue", "orders", "sure", "yes"), "it had 2 visible, 0 in flight, 0 delayed")
	if n := count("orders"); n != 0 {
		t.Errorf("the purged queue has %d messages", n)
	}
	if got := s.do("POST", "/ui/local/purge", url.Values{"queue": {"orders"}, "sure": {"yes"}}, "Origin", "http://evil.example"); got.StatusCode != 403 {
		t.Errorf("of another page: %d %s", got.StatusCode, got.text)
	}
}

// TestLocalReadOnly offers nothing, and does nothing.
func TestLocalReadOnly(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) { cfg.ReadOnly = true })
	page := s.do("GET", "/ui/local", nil).text
	if strings.Contains(page, "<form") || !strings.Contains(page, "read-only") {
		t.Errorf("the page offers actions:\n%s", page)
	}
	if got := s.do("POST", "/ui/local/send", url.Values{"queue": {"orders"}, "body": {"x"}}, s.browser()...); !strings.Contains(got.text, "read-only") {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
	if all, err := s.sqs.Messages("orders", sqsserver.Page{}); err != nil || len(all) != 0 {
		t.Errorf("the queue has %v, %v", all, err)
	}
}
