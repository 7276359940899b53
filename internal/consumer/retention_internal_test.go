package consumer

import (
	"strings"
	"testing"
	"time"
)

// TestProblemOfExpirations: the health says how many messages are left to expire from the first
// to the last of them.
func TestProblemOfExpirations(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	two := expirations{waiting: 2, first: noon, last: noon.Add(time.Hour)}
	for name, tt := range map[string]struct {
		expirations
		at   time.Duration
		want string // empty: no problem
	}{
		"none":              {},
		"before the first":  {two, -time.Minute, "2 messages are left to expire, the first at 2026-03-01T12:00:00Z"},
		"between the two":   {two, 30 * time.Minute, "2 messages are"},
		"when the last one": {two, time.Hour, "2 messages are"},
		"after the last":    {two, time.Hour + 1, ""},
		"one":               {expirations{waiting: 1, first: noon, last: noon}, 0, "1 message is left"},
	} {
		got := tt.problem(noon.Add(tt.at))
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: the problem is %q, want %q", name, got, tt.want)
		}
	}
}
