package plan_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

var draw = flag.Bool("draw", false, "write docs/schedules.svg instead of comparing it")

// TestPicture holds the picture in docs/retries.md to the schedules that it shows.
func TestPicture(t *testing.T) {
	const path = "../docs/schedules.svg"
	got := picture()
	if *draw {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s does not show today's schedules: draw it again with go test ./plan -run TestPicture -draw", path)
	}
}

// One panel for each jitter: attempts from left to right, waits from a second
// below to a day above, each doubling of the wait as high as the next.
const (
	panelWidth, panelHeight = 300, 200
	marginLeft, marginTop   = 46, 34
	columns, panelGap       = 3, 26
	lastAttempt             = 14
)

// picture draws the waits of exponential backoff under each kind of jitter.
func picture() string {
	var b strings.Builder
	panels := []struct {
		name   string
		jitter retry.Jitter
	}{
		{"none", retry.None}, {"full (the default)", retry.Full}, {"equal", retry.Equal},
		{"from-base", retry.FromBase}, {"decorrelated", retry.Decorrelated}, {"20%", retry.Percent(20)},
	}
	width := marginLeft + columns*(panelWidth+panelGap)
	height := (len(panels) + columns - 1) / columns * (panelHeight + marginTop + panelGap)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">
<title>The wait before each attempt, from the shortest to the longest, for every jitter</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, width, height)
	for i, p := range panels {
		x := marginLeft + i%columns*(panelWidth+panelGap)
		y := marginTop + i/columns*(panelHeight+marginTop+panelGap)
		drawPanel(&b, x, y, p.name, p.jitter)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawPanel(b *strings.Builder, x, y int, name string, jitter retry.Jitter) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="13" font-weight="bold">%s</text>`+"\n", x, y-10, name)
	for _, mark := range []struct {
		wait  time.Duration
		label string
	}{{time.Second, "1 s"}, {time.Minute, "1 min"}, {time.Hour, "1 h"}, {12 * time.Hour, "12 h"}} {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#d8dce2"/><text x="%d" y="%.1f" text-anchor="end" fill="#5b6472">%s</text>`+"\n",
			x, x+panelWidth, level(y, mark.wait), level(y, mark.wait), x-5, level(y, mark.wait)+4, mark.label)
	}
	policy := retry.Policy{Backoff: retry.Exponential{Base: 5 * time.Second, Max: 12 * time.Hour}, Jitter: jitter, MaxAttempts: lastAttempt + 1, MaxAge: -1}
	for _, a := range plan.NewSchedule(policy, plan.Queue{}, plan.Settings{}).Attempts {
		if a.N == 1 || a.N > lastAttempt {
			continue
		}
		at := float64(x) + (float64(a.N)-1.5)*panelWidth/(lastAttempt-1)
		top, bottom := level(y, a.Wait.Most), level(y, a.Wait.Least)
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="12" height="%.1f" rx="2" fill="#9db8e8"/><circle cx="%.1f" cy="%.1f" r="3" fill="#1d3f87"/><text x="%.1f" y="%d" text-anchor="middle" fill="#5b6472">%d</text>`+"\n",
			at-6, top-1, max(bottom-top, 0)+2, at, level(y, a.Wait.Expected), at, y+panelHeight+13, a.N)
	}
}

// level is the height at which a panel that begins at y shows a wait; less than a
// second is shown as a second.
func level(y int, wait time.Duration) float64 {
	share := math.Log2(max(wait.Seconds(), 1)) / math.Log2((24 * time.Hour).Seconds())
	return float64(y) + panelHeight*(1-share)
}
