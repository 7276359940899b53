package dashboard_test

// Holds off: a target, whose errors an operator reads.

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/retry"
)

// TestAttackTargetTimeline: whatever errors and keys contain, and however many and long they are, what happened is text to
// the browser, the pages stay small, and what an operator did stays on them.
func TestAttackTargetTimeline(t *testing.T) {
	events := new(admin.Events)
	s := serve(t, func(cfg *admin.Config) { cfg.Events = events })
	if got := s.do("POST", "/ui/workers/pause", map[string][]string{"queue": {"orders"}}, s.browser()...); got.StatusCode != 200 {
		t.Fatalf("%d %s", got.StatusCode, got.text)
	}
	hostile := `</span></td></table><script>alert(1)</script><img src=x onerror=alert(2)><b hx-get="/ui/sign-out" hx-trigger="load">{{.}}` + "\u202e\u2066\x00\x1b]0;x\x07\r\n\r\ndata: x\n\n"
	err := errors.New(hostile + strings.Repeat("x<b>\u202e", 1<<18))
	o := events.Observer(s.URL + account + "orders")
	m := &reprise.Message{ID: "m", OriginID: "m"}
	o.Attempt(t.Context(), reprise.Attempt{Message: m, Err: err, Outcome: reprise.OutcomeDeadLetter})
	o.Settled(t.Context(), reprise.Settled{Message: m, Outcome: reprise.OutcomeDeadLetter, Reason: retry.ReasonPermanent})
	o.GivingUp(t.Context(), reprise.GivingUp{Since: time.Now(), At: time.Now(), Problem: err.Error()})
	for range 500 {
		o.Outage(t.Context(), reprise.OutageEvent{Key: hostile, State: reprise.BreakerOpen, Previous: reprise.BreakerClosed, At: time.Now(), Err: err})
		o.Outage(t.Context(), reprise.OutageEvent{Key: hostile, State: reprise.BreakerClosed, Previous: reprise.BreakerRamping, At: time.Now(), Since: time.Now(), Err: err})
	}
	for path, wanted := range map[string]string{"/": "", "/ui/queues/orders": "", "/ui/timeline": "paused the consumer", "/ui/timeline?queue=orders&all=true": "paused the consumer"} {
		got := s.do("GET", path, nil)
		if got.StatusCode != 200 || len(got.text) > 200<<10 || !strings.Contains(got.text, "&lt;script&gt;alert(1)") || !strings.Contains(got.text, wanted) {
			t.Errorf("%s: %d, %d bytes", path, got.StatusCode, len(got.text))
		}
		for _, raw := range []string{"<script>alert", "<img src=x", "<b hx-get", "\u202e", "\u2066", "\x00", "\x1b", "\ndata: x"} {
			if strings.Contains(got.text, raw) {
				t.Errorf("%s has %q", path, raw)
			}
		}
	}
}

// TestAttackLiveEvents: a CR in foreign text, here an outage key, neither ends an event of a live page nor begins
// another, which would replace the page by what a producer or a target has chosen.
func TestAttackLiveEvents(t *testing.T) {
	var keyed *reprise.Consumer
	var at string
	s := serve(t, func(cfg *admin.Config) {
		cfg.Consumers = func() []admin.Running { return []admin.Running{{URL: at, Consumer: keyed}} }
	})
	at = s.URL + account + "orders"
	cfg := reprise.Config{Logger: slog.New(slog.DiscardHandler), Outage: reprise.Outage{Key: func(m *reprise.Message) string { return m.GroupID }}}
	var err error
	if keyed, err = reprise.New(s.client, at, reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }), cfg); err != nil {
		t.Fatal(err)
	}
	if err := keyed.PauseKey("acme\r\rdata: Nothing needs attention\r\r"); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/?live=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	event := ""
	for lines := bufio.NewScanner(response.Body); lines.Scan() && lines.Text() != ""; { // to the end of the first event
		event += lines.Text() + "\n"
	}
	if !strings.Contains(event, "acme") || strings.Contains(event, "\r") || !strings.Contains(event, "\ndata: data: Nothing") {
		t.Errorf("the event does not have the key in its data, or has a CR:\n%q", event)
	}
}
