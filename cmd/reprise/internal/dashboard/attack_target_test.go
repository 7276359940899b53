package dashboard_test

// Holds off: a target, whose errors an operator reads.

import (
	"errors"
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
