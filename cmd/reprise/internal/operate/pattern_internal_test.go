package operate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzWithoutChanging: what says quickly that an expression cannot match is never wrong, and
// numbers are found as the expression for them finds them.
func FuzzWithoutChanging(f *testing.F) {
	for _, text := range []string{
		"order 17: post http://10.0.3.4:8080/orders after 1.5s", "1234.10.0.0.1", "id 1f0c5e2a-6c0b-4c39-8f6e-0a4c3a1f7a55 at 2026-11-24T10:00:00Z",
		"[::1]:80 0x7f a1b2c3d4e5f 1.2.3 5. .5 é7é", "[bad] deadbeef-dead-beef-dead-beefdeadbeef",
		"a1b2 a1b2c a1b2cde 1a2 ab12_cdefg 1a2bcde_ x1yzabc 12abcdefg after 1500ms", "two  spaces", " at both ends ", "a\tb",
	} {
		f.Add(text)
	}
	number := regexp.MustCompile(`\d+(\.\d+)?`)
	f.Fuzz(func(t *testing.T, text string) {
		want := text
		for _, c := range changing {
			want = c.pattern.ReplaceAllString(want, c.name)
		}
		want = number.ReplaceAllString(want, "<n>")
		if got := string(appendWithoutChanging(nil, text)); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		spaced := strings.Join(strings.Fields(text), " ")
		if isSpacedOnce(text) && text != spaced {
			t.Errorf("%q is not %q", text, spaced)
		}
	})
}

// FuzzFindCode: codes are found as the expression for them finds them.
func FuzzFindCode(f *testing.F) {
	for _, text := range []string{
		"the target answered 503: try later", "HTTP 404", "exit code: 137)", "Status status 5", "code code (200)", "status code 123456 code=1_", "sqlstate=(42601", "\u017ftatus 5", "acode 7 code 7a code 8",
		"status  code 5", "exit", "http://127.0.0.1:80 answered status 500",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		from, to, found := findCode(text)
		want := code.FindStringIndex(text)
		if found != (want != nil) || found && (from != want[0] || to != want[1]) {
			t.Errorf("%q: found %v from %d to %d, want %v", text, found, from, to, want)
		}
	})
}

// TestMergeGroups: groups that were gathered apart are those that would have been gathered together.
func TestMergeGroups(t *testing.T) {
	var together Groups
	parts := make([]Groups, 3)
	died := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, g := range []*Groups{&together, &parts[0], &parts[1], &parts[2]} {
		g.Now = died.Add(6 * time.Hour)
	}
	for i := range 3000 {
		m := Message{ID: string(rune('a' + i%26)), Death: &Death{
			Reason: "attempts", Error: fmt.Sprintf("%c failed after %d runs", 'A'+i%50, i), At: died.Add(time.Duration(i*7%1000/2) * time.Minute),
		}}
		if i%7 == 0 {
			m.Death, m.Sent = nil, died
		}
		together.Add(&m)
		parts[i%3].Add(&m)
	}
	parts[0].Merge(&parts[1])
	parts[0].Merge(&parts[2])
	want, got := together.List(), parts[0].List()
	if len(got) != len(want) {
		t.Fatalf("%d groups, want %d", len(got), len(want))
	}
	for i := range want {
		if len(got[i].Samples) != maxSamples {
			t.Errorf("group %d has %d samples", i, len(got[i].Samples))
		}
		got[i].Samples, want[i].Samples = nil, nil // those that came first
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("group %d (-together +merged):\n%s", i, diff)
		}
	}
}

// TestGroupHours: letters count in the hour in which they died, the last of which ends now. Those of a clock that is
// ahead count in the last.
func TestGroupHours(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for ago, hour := range map[time.Duration]int{
		-time.Minute: 23, 0: 23, time.Hour - 1: 23, time.Hour: 22, 90 * time.Minute: 22, Trend*time.Hour - 1: 0, Trend * time.Hour: -1, 400 * 24 * time.Hour: -1,
	} {
		g := Groups{Now: now}
		g.Add(&Message{ID: "a", Death: &Death{Reason: "age", At: now.Add(-ago)}})
		var want []int
		if hour >= 0 {
			want = make([]int, Trend)
			want[hour] = 1
		}
		if diff := cmp.Diff(want, g.List()[0].Hours); diff != "" {
			t.Errorf("a letter of %v ago (-want +got):\n%s", ago, diff)
		}
	}
	var g Groups
	g.Add(&Message{ID: "a", Death: &Death{Reason: "age", At: now}})
	if hours := g.List()[0].Hours; hours != nil {
		t.Errorf("without a time %v", hours)
	}
}
