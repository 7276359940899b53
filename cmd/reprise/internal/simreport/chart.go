package simreport

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// panel is what a chart shows of each period.
type panel struct {
	about string
	value func(simulate.Bucket, time.Duration) float64 // of a period of some length
}

var panels = []panel{
	{"requests a second that the dependency sees", func(b simulate.Bucket, length time.Duration) float64 {
		return float64(b.Started) / max(length.Seconds(), 1e-3)
	}},
	{"unsettled messages", func(b simulate.Bucket, _ time.Duration) float64 { return float64(b.Open) }},
}

// chartRows is how high a chart is; labelWidth the room for its scale.
const (
	chartRows  = 6
	labelWidth = 9
	minColumns = 20
	maxColumns = 100
)

var blocks = []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}

// after is a time that a recovery took.
func after(d time.Duration) string {
	if d < 0 {
		return "not before the simulation's end"
	}
	return short(d)
}

// columnsOf joins the periods of a result to so many columns, each with its largest value.
func columnsOf(r *simulate.Result, value func(simulate.Bucket, time.Duration) float64, columns int) []float64 {
	if r.Ended <= 0 || len(r.Series) == 0 {
		return nil
	}
	columns = min(columns, len(r.Series))
	all := make([]float64, columns)
	for i, b := range r.Series {
		end := r.Ended
		if i+1 < len(r.Series) {
			end = r.Series[i+1].At
		}
		c := i * columns / len(r.Series)
		all[c] = max(all[c], value(b, end-b.At))
	}
	return all
}

func plotColumns(columns int) int {
	return min(max(columns-labelWidth-1, minColumns), maxColumns)
}

func largest(r *simulate.Result, value func(simulate.Bucket, time.Duration) float64, columns int) (most float64) {
	for _, x := range columnsOf(r, value, plotColumns(columns)) {
		most = max(most, x)
	}
	return most
}

// chart draws a value over time.
func chart(r *simulate.Result, value func(simulate.Bucket, time.Duration) float64, columns int, unicode bool) string {
	return chartTo(r, value, largest(r, value, columns), columns, unicode)
}

// chartTo draws a value over time, on a scale up to most.
func chartTo(r *simulate.Result, value func(simulate.Bucket, time.Duration) float64, most float64, columns int, unicode bool) string {
	all := columnsOf(r, value, plotColumns(columns))
	var b strings.Builder
	for row := chartRows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case chartRows - 1:
			label = brief(most)
		case 0:
			label = "0"
		}
		line := ""
		for _, x := range all {
			eighths := 0
			if most > 0 {
				eighths = int(x/most*chartRows*8+0.5) - row*8
			}
			if row == 0 && x > 0 {
				eighths = max(eighths, 1) // what is little is still seen
			}
			line += cell(min(max(eighths, 0), 8), unicode)
		}
		fmt.Fprintf(&b, "%*s %s\n", labelWidth, label, strings.TrimRight(line, " "))
	}
	end := short(r.Ended)
	fmt.Fprintf(&b, "%*s 0%*s\n", labelWidth, "", max(len(all)-1, len(end)+1), end)
	return b.String()
}

func cell(eighths int, unicode bool) string {
	if unicode {
		return blocks[eighths]
	}
	if eighths >= 4 {
		return "#"
	}
	if eighths > 0 {
		return "."
	}
	return " "
}

// mostBars is how many bars of attempts are shown.
const mostBars = 12

// attemptsChart shows how many messages needed how many attempts.
func attemptsChart(perMessage []int, columns int, unicode bool) string {
	most, rest := 0, 0
	for i, n := range perMessage {
		if i > mostBars {
			rest += n
		}
		most = max(most, n)
	}
	most = max(most, rest)
	if most == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("attempts of the messages that are settled\n\n")
	counts := max(labelWidth, len(grouped(most)))
	bar := func(label string, n int) {
		width := min(max(columns-labelWidth-counts-4, minColumns), 60)
		full := "#"
		if unicode {
			full = "■"
		}
		length := int(float64(n)/float64(most)*float64(width) + 0.5)
		if n > 0 {
			length = max(length, 1)
		}
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%*s  %*s  %s", labelWidth, label, counts, grouped(n), strings.Repeat(full, length)), " "))
	}
	for i, n := range perMessage {
		if i <= mostBars && (n > 0 || i > 0) {
			bar(fmt.Sprint(i), n)
		}
	}
	if rest > 0 {
		bar("more", rest)
	}
	return b.String()
}
