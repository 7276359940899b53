package review

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/plan"
)

// A long chart shows its beginning and its end.
const (
	chartFirst = 20
	chartLast  = 2
	// labelWidth is that of the attempt's number, minColumns the narrowest chart that is readable.
	labelWidth = 9
	minColumns = 20
)

// ticks are the times that the axis may name.
var ticks = []time.Duration{
	time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour,
	24 * time.Hour, 4 * 24 * time.Hour, 14 * 24 * time.Hour,
}

// marks are the characters of a chart: a line from the earliest to the latest time of an attempt,
// a dot where it is expected.
type marks struct{ line, dot, axis string }

var (
	unicodeMarks = marks{"─", "●", "╷"}
	asciiMarks   = marks{"-", "o", "|"}
)

// Chart draws when each attempt comes, on a logarithmic axis of so many columns in all.
func Chart(s plan.Schedule, columns int, unicode bool) string {
	m := asciiMarks
	if unicode {
		m = unicodeMarks
	}
	columns = max(columns-labelWidth, minColumns)
	end := time.Second
	for _, a := range s.Attempts {
		end = max(end, a.Since.Most)
	}
	column := func(d time.Duration) int {
		if d <= time.Second || end <= time.Second {
			return 0
		}
		share := math.Log(d.Seconds()) / math.Log(end.Seconds())
		return min(int(share*float64(columns-1)+0.5), columns-1)
	}
	var b strings.Builder
	b.WriteString(axis(columns, end, column, m))
	hidden := max(len(s.Attempts)-chartFirst-chartLast, 0)
	for i, a := range s.Attempts {
		if hidden > 0 && i >= chartFirst && i < chartFirst+hidden {
			if i == chartFirst {
				fmt.Fprintf(&b, "%*s\n", labelWidth-2, "...")
			}
			continue
		}
		from, dot, to := column(a.Since.Least), column(a.Since.Expected), column(a.Since.Most)
		fmt.Fprintf(&b, "%*d  %s%s%s%s\n", labelWidth-2, a.N,
			strings.Repeat(" ", from), strings.Repeat(m.line, max(dot-from, 0)), m.dot, strings.Repeat(m.line, max(to-dot, 0)))
	}
	return b.String()
}

// axis is two lines: the times, and a mark below each.
func axis(columns int, end time.Duration, column func(time.Duration) int, m marks) string {
	names, below := strings.Repeat(" ", columns), make([]string, columns)
	for i := range below {
		below[i] = " "
	}
	free := 0
	for _, t := range ticks {
		name := short(t)
		from := min(column(t), columns-len(name))
		if t > end || from < free {
			continue
		}
		names = names[:from] + name + names[from+len(name):]
		below[column(t)] = m.axis
		free = from + len(name) + 1
	}
	label := fmt.Sprintf("%*s  ", labelWidth-2, "attempt")
	return label + strings.TrimRight(names, " ") + "\n" + strings.Repeat(" ", labelWidth) + strings.TrimRight(strings.Join(below, ""), " ") + "\n"
}

// short is d as tables show it: "30s", "1m", "12h", "4d", "1d 6h".
func short(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day {
		text := fmt.Sprintf("%dd", d/day)
		if hours := d % day / time.Hour; hours > 0 {
			text += fmt.Sprintf(" %dh", hours)
		}
		return text
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
