package simreport

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// Schedules are policies alone.
type Schedules []Alone

// Alone is a policy alone, with what was drawn and what is known in closed form.
type Alone struct {
	Policy   string
	Messages int
	Forms    simulate.Forms
	Schedule *simulate.Schedule
}

// Text is the schedules for people.
func (all Schedules) Text(columns int, unicode bool) string {
	var b strings.Builder
	for i, one := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		s, f := one.Schedule, one.Forms
		fmt.Fprintf(&b, "policy    %s\n", one.Policy)
		fmt.Fprintf(&b, "messages  %s that are first attempted together: %s succeed, %s are given up\n", grouped(one.Messages), grouped(s.Succeeded), grouped(s.GivenUp))
		fmt.Fprintf(&b, "expected  %.2f attempts a message, %.3g %% given up\n", f.Attempts, 100*f.DeadLettered)
		if f.HasWait {
			deviation := ""
			if f.HasDeviation {
				deviation = ", deviation " + short(f.Deviation)
			}
			fmt.Fprintf(&b, "          %s of waits for a message of which every attempt fails%s\n", short(f.Wait), deviation)
		}
		minute, most := s.Herd()
		fmt.Fprintf(&b, "herd      %s retries in minute %d are the most after the first minute\n\n", grouped(most), minute)
		rows := [][]string{{"attempt", "messages", "earliest", "p10", "median", "p90", "p99", "latest"}}
		for _, a := range s.Attempts[:min(len(s.Attempts), mostAttempts)] {
			rows = append(rows, []string{
				strconv.Itoa(a.N), grouped(a.Reached), short(a.Least), short(a.P10), short(a.Median), short(a.P90), short(a.P99), short(a.Most),
			})
		}
		b.WriteString(table(rows))
		if more := len(s.Attempts) - mostAttempts; more > 0 {
			fmt.Fprintf(&b, "and %d more\n", more)
		}
		b.WriteString("\nretries a minute, in the first day\n\n" + loadChart(s.Load, columns, unicode))
	}
	return b.String()
}

// mostAttempts is how many attempts the text of a schedule lists.
const mostAttempts = 30

// loadChart draws retries a minute, up to the last retry.
func loadChart(load []int, columns int, unicode bool) string {
	load = used(load)
	r := &simulate.Result{Ended: time.Duration(len(load)) * time.Minute}
	for i, n := range load {
		r.Series = append(r.Series, simulate.Bucket{At: time.Duration(i) * time.Minute, Started: n})
	}
	return chart(r, func(b simulate.Bucket, _ time.Duration) float64 { return float64(b.Started) }, columns, unicode)
}

// used is load up to the last minute with a retry.
func used(load []int) []int {
	for len(load) > 1 && load[len(load)-1] == 0 {
		load = load[:len(load)-1]
	}
	return load
}

type (
	jsonSchedule struct {
		Policy       string       `json:"policy"`
		Messages     int          `json:"messages"`
		Attempts     float64      `json:"expectedAttempts"`
		DeadLettered float64      `json:"expectedDeadLettered"`
		Wait         *float64     `json:"expectedWait"`
		Deviation    *float64     `json:"deviation"`
		Succeeded    int          `json:"succeeded"`
		GivenUp      int          `json:"givenUp"`
		Spreads      []jsonSpread `json:"attempts"`
		Load         []int        `json:"retriesAMinute"`
	}
	jsonSpread struct {
		Attempt  int     `json:"attempt"`
		Messages int     `json:"messages"`
		Earliest float64 `json:"earliest"`
		P10      float64 `json:"p10"`
		Median   float64 `json:"median"`
		Mean     float64 `json:"mean"`
		P90      float64 `json:"p90"`
		P99      float64 `json:"p99"`
		Latest   float64 `json:"latest"`
	}
)

// JSON is the schedules for programs.
func (all Schedules) JSON() ([]byte, error) {
	out := make([]jsonSchedule, len(all))
	for i, one := range all {
		s, f := one.Schedule, one.Forms
		out[i] = jsonSchedule{Policy: one.Policy, Messages: one.Messages, Attempts: f.Attempts, DeadLettered: f.DeadLettered, Succeeded: s.Succeeded, GivenUp: s.GivenUp, Load: s.Load}
		if f.HasWait {
			out[i].Wait = never(f.Wait)
		}
		if f.HasDeviation {
			out[i].Deviation = never(f.Deviation)
		}
		for _, a := range s.Attempts {
			out[i].Spreads = append(out[i].Spreads, jsonSpread{
				a.N, a.Reached, secondsOf(a.Least), secondsOf(a.P10), secondsOf(a.Median), secondsOf(a.Mean), secondsOf(a.P90), secondsOf(a.P99), secondsOf(a.Most),
			})
		}
	}
	text, err := json.MarshalIndent(map[string]any{"schedules": out}, "", "  ")
	return append(text, '\n'), err
}

// CSV has a row for each attempt of each policy.
func (all Schedules) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"policy", "attempt", "messages", "earliest_s", "p10_s", "median_s", "mean_s", "p90_s", "p99_s", "latest_s"}) // Flush tells of an error
	for _, one := range all {
		for _, a := range one.Schedule.Attempts {
			row := []string{one.Policy, strconv.Itoa(a.N), strconv.Itoa(a.Reached)}
			for _, d := range []time.Duration{a.Least, a.P10, a.Median, a.Mean, a.P90, a.P99, a.Most} {
				row = append(row, strconv.FormatFloat(secondsOf(d), 'f', -1, 64))
			}
			_ = w.Write(row) // as above
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// SVG is a picture of the retries a minute of each policy.
func (all Schedules) SVG() string {
	g := graph{heading: "retries a minute of messages that failed together", x: "minutes after the first attempt", y: "retries"}
	longest := 1
	for _, one := range all {
		longest = max(longest, len(used(one.Schedule.Load)))
	}
	for _, one := range all {
		line := graphLine{label: one.Policy}
		for i := range min(longest, len(one.Schedule.Load)) {
			line.points = append(line.points, [2]float64{float64(i), float64(one.Schedule.Load[i])})
		}
		g.lines = append(g.lines, line)
	}
	return g.svg()
}

// graph is a picture of lines over a linear axis.
type graph struct {
	heading, x, y string
	most          float64 // x reaches at least so far
	logarithmic   bool    // y's scale is that of log(1+y)
	lines         []graphLine
}

type graphLine struct {
	label  string
	points [][2]float64
}

// graphHeight is that of a graph with one panel.
const graphHeight = 280

func (g graph) svg() string {
	mostX, mostY := max(1, g.most), 0.0
	for _, l := range g.lines {
		for _, p := range l.points {
			mostX, mostY = max(mostX, p[0]), max(mostY, p[1])
		}
	}
	mostY = roundUp(mostY)
	height := func(y float64) float64 { return y / mostY } // a share of the panel's
	value := func(height float64) float64 { return mostY * height }
	if g.logarithmic {
		height = func(y float64) float64 { return math.Log1p(y) / math.Log1p(mostY) }
		value = func(height float64) float64 { return math.Expm1(math.Log1p(mostY) * height) }
	}
	top := 44 + len(g.lines)*lineHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">`+"\n", marginLeft+panelWidth+marginRight, top+graphHeight+44)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", html.EscapeString(g.heading))
	fmt.Fprintf(&b, `<text x="8" y="18" font-size="12" fill="#1b2430">%s</text>`+"\n", html.EscapeString(g.heading))
	for i, l := range g.lines {
		y := 36 + i*lineHeight
		fmt.Fprintf(&b, `<line x1="8" x2="36" y1="%d" y2="%d" stroke="%s" stroke-width="2"%s/><text x="42" y="%d" fill="#1b2430">%s</text>`+"\n", y-4, y-4, colors[i%len(colors)], dash(i), y, html.EscapeString(l.label))
	}
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		level := float64(top) + graphHeight*(1-share)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#d8dce2"/><text x="%d" y="%.1f" text-anchor="end" fill="#5b6472">%s</text>`+"\n", marginLeft, marginLeft+panelWidth, level, level, marginLeft-5, level+4, number(value(share)))
	}
	for at, step := 0.0, roundUp(mostX/mostSteps); at <= mostX; at += step {
		x := marginLeft + panelWidth*at/mostX
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="%s" fill="#5b6472">%s</text>`+"\n", x, top+graphHeight+14, anchor(x), number(at))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#1b2430">%s</text><text x="%d" y="%d" fill="#1b2430">%s</text>`+"\n", marginLeft+panelWidth/2, top+graphHeight+32, html.EscapeString(g.x), marginLeft, top-6, html.EscapeString(g.y))
	for i, l := range g.lines {
		points := make([]string, len(l.points))
		for k, p := range l.points {
			points[k] = fmt.Sprintf("%.1f,%.1f", marginLeft+panelWidth*p[0]/mostX, float64(top)+graphHeight*(1-height(p[1])))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5"%s points="%s"/>`+"\n", colors[i%len(colors)], dash(i), strings.Join(points, " "))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
