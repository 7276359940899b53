package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestConsumersTextOfBreakers: each state of a breaker tells since when, and what comes next.
func TestConsumersTextOfBreakers(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	since := now.Add(-10 * time.Minute)
	at := operate.Clock(since, now)
	for _, test := range []struct {
		name    string
		breaker admin.Breaker
		state   string
		want    string
	}{
		{"closed", admin.Breaker{State: "closed"}, "degraded", ""},
		{"paused key", admin.Breaker{Key: "acme", State: "closed", Paused: true}, "degraded", "orders: key acme is paused\n"},
		{
			"open", admin.Breaker{State: "open", Since: since, NextProbe: now.Add(14 * time.Second), Held: 7, Problem: "503"}, "breaker open",
			"orders: the breaker is open: outage since " + at + " (10m), 7 messages held; next probe in 14s, or now by reprise probe orders; last error: 503\n",
		},
		{
			"open, and a probe is due", admin.Breaker{State: "open", Since: since, Held: 0, Problem: "503"}, "breaker open",
			"orders: the breaker is open: outage since " + at + " (10m), 0 messages held; a probe is due, and starts with the next message; last error: 503\n",
		},
		{
			"open, and a probe is due at once", admin.Breaker{State: "open", Since: since, NextProbe: now.Add(time.Second - 1), Problem: "503"}, "breaker open",
			"orders: the breaker is open: outage since " + at + " (10m), 0 messages held; the next probe starts now; last error: 503\n",
		},
		{
			"half-open", admin.Breaker{State: "half-open", Since: since, Held: 1, Problem: "503"}, "breaker half-open",
			"orders: the breaker is half-open: outage since " + at + " (10m), 1 message held; a probe runs now; last error: 503\n",
		},
		{
			"ramping", admin.Breaker{State: "ramping", Since: since, Held: 2, Level: 4, Problem: "503"}, "breaker ramping",
			"orders: the breaker is ramping: outage or overload since " + at + " (10m), 2 messages held; the dependency answers again: at most 4 handlers at once, more as they succeed; last error: 503\n",
		},
		{
			"of a key", admin.Breaker{Key: "acme", State: "half-open", Since: since, Held: 1, Problem: "503"}, "degraded",
			"orders: key acme is half-open: outage since " + at + " (10m), 1 message held; a probe runs now; last error: 503\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := admin.Consumer{Queue: "orders", Health: "degraded", Concurrency: 10, Breakers: []admin.Breaker{test.breaker}}
			table, problems, _ := strings.Cut(strings.TrimPrefix(admin.ConsumersText([]admin.Consumer{c}, now, 120), "queue"), "\norders")
			row, problems, _ := strings.Cut(problems, "\n")
			if !strings.HasSuffix(row, "  "+test.state) || problems != test.want {
				t.Errorf("the table %q, the row %q, then\n%swant %q and\n%s", table, row, problems, test.state, test.want)
			}
		})
	}
}
