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

// TestDeadTrend: a group has a picture of when its letters died, with the figures in words; one of which nothing
// died of late has none.
func TestDeadTrend(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	hours := make([]int, operate.Trend)
	hours[0], hours[22], hours[23] = 1, 1000, 40
	groups := &deadGroups{Queue: "orders-dead"}
	groups.Dead = admin.Dead{Messages: 1041, Groups: []operate.Group{{Reason: "permanent", Count: 1041, Hours: hours, First: now.Add(-23 * time.Hour), Last: now}, {Reason: "age", Count: 1, First: now, Last: now}}}
	var b bytes.Buffer
	if err := parse(pages)["deadqueue"].ExecuteTemplate(&b, "groups", frame{Now: now, Data: groups}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`aria-label="In the last 24 hours: at most 1,000 in an hour, 40 in the last"`, `<rect x="0" y="9" width="0.8" height="1"/>`,
		`<rect x="22" y="0" width="0.8" height="10"/>`, `<rect x="23" y="9" width="0.8" height="1"/>`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %s:\n%s", want, b.String())
		}
	}
	if pictures := strings.Count(b.String(), "<svg"); pictures != 1 {
		t.Errorf("there are %d pictures, want that of one group", pictures)
	}
}
