package dashboard

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestDeadPerHour: a group of letters tells how fast they came, if that can be said.
func TestDeadPerHour(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		count int
		over  time.Duration
		want  string
	}{
		{12, 11 * time.Minute, "first 16m ago, 60.0 per hour between"},
		{901, 10 * time.Hour, "first 10h 5m ago, 90.0 per hour between"},
		{2, 10 * time.Minute, "first 15m ago</span>"},
		{500, 30 * time.Second, "first 5m ago</span>"},
	} {
		last := now.Add(-5 * time.Minute)
		groups := &deadGroups{Queue: "orders-dead"}
		groups.Dead = admin.Dead{Messages: test.count, Groups: []operate.Group{{Reason: "permanent", Error: "no", Count: test.count, First: last.Add(-test.over), Last: last}}}
		var b bytes.Buffer
		if err := parse(pages)["deadqueue"].ExecuteTemplate(&b, "groups", frame{Now: now, Data: groups}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), test.want) {
			t.Errorf("%d in %v: the page lacks %q: %s", test.count, test.over, test.want, b.String())
		}
	}
}
