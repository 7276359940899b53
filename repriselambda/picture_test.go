package repriselambda_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

var draw = flag.Bool("draw", false, "write docs/async-attempts.svg instead of comparing it")

// TestPictureOfAttempts holds the picture in docs/lambda.md to what the default
// policy decides.
func TestPictureOfAttempts(t *testing.T) {
	const path = "../docs/async-attempts.svg"
	got := attemptsPicture()
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
		t.Errorf("%s does not show today's attempts: draw it again with go test ./repriselambda -run TestPictureOfAttempts -draw", path)
	}
}

const (
	drawnEvents               = 12
	pictureLeft, pictureWidth = 96, 800
	rowHeight, panelTop       = 17, 44
	panelHeight               = panelTop + (drawnEvents+2)*rowHeight + 20
	pictureLast               = 24 * time.Hour
)

// mark is a time that an axis names.
type mark struct {
	at    time.Duration
	label string
}

// attemptsPicture draws when events that always fail are attempted: on a logarithmic
// axis, where every doubling of the wait is as wide, and on an even one.
func attemptsPicture() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">
<title>When %d events that always fail are attempted in 24 hours</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, pictureLeft+pictureWidth+60, 2*panelHeight, drawnEvents)
	drawAttempts(&b, 0, "The first seconds, minutes and hours", func(after time.Duration) float64 {
		return math.Log1p(after.Seconds()) / math.Log1p(pictureLast.Seconds())
	}, []mark{{0, "0"}, {time.Second, "1 s"}, {10 * time.Second, "10 s"}, {time.Minute, "1 min"}, {10 * time.Minute, "10 min"}, {time.Hour, "1 h"}, {6 * time.Hour, "6 h"}, {pictureLast, "24 h"}})
	drawAttempts(&b, panelHeight, "The same over the day", func(after time.Duration) float64 {
		return after.Seconds() / pictureLast.Seconds()
	}, []mark{{0, "0"}, {6 * time.Hour, "6 h"}, {12 * time.Hour, "12 h"}, {18 * time.Hour, "18 h"}, {pictureLast, "24 h"}})
	b.WriteString("</svg>\n")
	return b.String()
}

func drawAttempts(b *strings.Builder, top int, title string, share func(time.Duration) float64, marks []mark) {
	x := func(after time.Duration) float64 { return pictureLeft + pictureWidth*share(after) }
	bottom := top + panelTop + (drawnEvents+1)*rowHeight
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="13" font-weight="bold">%s</text>`+"\n", pictureLeft, top+18, title)
	for _, m := range marks {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#d8dce2"/><text x="%.1f" y="%d" text-anchor="middle" fill="#5b6472">%s</text>`+"\n",
			x(m.at), x(m.at), top+panelTop-12, bottom, x(m.at), bottom+15, m.label)
	}
	// Lambda itself retries after one minute, and after two more.
	drawRow(b, top+panelTop, "Lambda alone", "#b3402e", x, []time.Duration{0, time.Minute, 3 * time.Minute})
	for i := range drawnEvents {
		name := fmt.Sprintf("event %d", i+1)
		drawRow(b, top+panelTop+(i+1)*rowHeight, name, "#1d3f87", x, attemptsOf(name))
	}
}

func drawRow(b *strings.Builder, y int, name, color string, x func(time.Duration) float64, attempts []time.Duration) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="#5b6472">%s</text>`, pictureLeft-10, y+4, name)
	for _, after := range attempts {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%d" r="3.5" fill="%s" fill-opacity="0.75"/>`, x(after), y, color)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#5b6472">%d runs</text>`+"\n", pictureLeft+pictureWidth+12, y+4, len(attempts))
}

// attemptsOf returns when an event is run that fails at once, every time.
func attemptsOf(request string) []time.Duration {
	policy := repriselambda.DefaultRetry()
	first := time.Unix(1643667670, 0)
	runs := []time.Duration{0}
	for now := first; ; {
		d := policy.Decide(retry.Failure{N: len(runs), Seed: request, Sent: first, First: first, Ended: now, Err: errors.New("failed")})
		if d.Action != retry.ActionRetry {
			return runs
		}
		now = d.At
		runs = append(runs, now.Sub(first))
	}
}
