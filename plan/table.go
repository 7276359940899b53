package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
)

// A long schedule is cut: its beginning and its end are shown.
const (
	shownFirst = 40
	shownLast  = 3
)

// Header names the columns of [ScheduledAttempt.Row].
func Header() []string {
	return []string{"attempt", "min wait", "mean wait", "max wait", "earliest", "expected", "latest", "by"}
}

// Row is the attempt as a line of a table: its number, the least, the expected and the longest wait
// before it, its least, expected and longest time since the first receive, and how the longest wait
// is carried out.
func (a ScheduledAttempt) Row() []string {
	row := []string{strconv.Itoa(a.N), "", "", ""}
	if a.N > 1 {
		row = append(row[:1], a.Wait.cells()...)
	}
	return append(append(row, a.Since.cells()...), a.Leg.String())
}

func (s Span) cells() []string {
	return []string{short(s.Least), short(s.Expected), short(s.Most)}
}

// String is the leg in a few words: "hide", "park, 5 receives", "requeue, 2
// copies".
func (l Leg) String() string {
	switch {
	case l.Carry == CarryPark:
		return fmt.Sprintf("%v, %s", l.Carry, plural.Of(l.Receives, "receive"))
	case l.Carry == CarryRequeue && l.Copies > 1:
		return fmt.Sprintf("%v, %d copies", l.Carry, l.Copies)
	}
	return l.Carry.String()
}

// String is the schedule as a table with its ends below, on several lines. In a long table one line
// replaces the middle.
func (s Schedule) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells []string) {
		last := len(cells) - 1
		text := strings.Join(cells[:last], "\t") + "\t"
		if cells[last] != "" {
			text += "  " + cells[last]
		}
		fmt.Fprintln(table, text)
	}
	line(Header())
	hidden := max(len(s.Attempts)-shownFirst-shownLast, 0)
	for i, a := range s.Attempts {
		switch {
		case hidden == 0 || i < shownFirst || i >= shownFirst+hidden:
			line(a.Row())
		case i == shownFirst:
			line(append(slices.Repeat([]string{""}, len(Header())-1), fmt.Sprintf("... %d more ...", hidden)))
		}
	}
	_ = table.Flush() // a strings.Builder cannot fail
	for _, end := range []struct {
		waits string
		End
	}{{"shortest", s.Shortest}, {"expected", s.Expected}, {"longest", s.Longest}} {
		fmt.Fprintf(&b, "with the %s waits: %v\n", end.waits, end.End)
	}
	return b.String()
}

// String is the end in a few words: "20 attempts, given up at the limit of attempts at 2d 6h".
func (e End) String() string {
	var costs string
	if e.Receives != e.Attempts {
		costs += fmt.Sprintf(", %s", plural.Of(e.Receives, "receive"))
	}
	if e.Copies > 0 {
		costs += fmt.Sprintf(", %s", plural.Of(e.Copies, "copy"))
	}
	return fmt.Sprintf("%s%s, %s at %s", plural.Of(e.Attempts, "attempt"), costs, e.Stop.sentence(), short(e.After))
}

// sentence describes what the stop does to the message.
func (s Stop) sentence() string {
	switch s {
	case StopAttempts:
		return "given up at the limit of attempts"
	case StopAge:
		return "given up at the age limit"
	case StopReceives:
		return "given up at the last receive that the queue permits"
	case StopRetention:
		return "deleted by SQS at the end of the queue's retention"
	}
	return "and more, the last one listed"
}

// short is d with about three digits, in days if it is longer than one: "1.35s", "4m10s", "12h",
// "2d 6h".
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		d = d.Round(time.Hour)
		text := fmt.Sprintf("%dd", d/day)
		if hours := d % day; hours > 0 {
			text += fmt.Sprintf(" %dh", hours/time.Hour)
		}
		return text
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Millisecond)
	}
	if d == day {
		return "1d" // 23h59m40s, rounded
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
