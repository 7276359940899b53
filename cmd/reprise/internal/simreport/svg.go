package simreport

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// A picture has the panels of the charts, one below the other, and a line for each run in each.
const (
	panelWidth, panelHeight = 720, 150
	marginLeft, marginRight = 64, 16
	panelGap, lineHeight    = 52, 16
	belowAxis               = 28 // of the last panel: the times
	// mostPoints is how many points a line has.
	mostPoints = 360
)

// colors are told apart in all common kinds of colour blindness; the dashes tell lines apart in print.
var (
	colors = []string{"#1d3f87", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7a5c00", "#5b6472"}
	dashes = []string{"", "6 3", "2 3", "8 3 2 3"}
)

// SVG is a picture of the runs over time.
func (r Report) SVG() string {
	var b strings.Builder
	legend := 0
	if len(r.Runs) > 1 {
		legend = len(r.Runs) * lineHeight
	}
	top := 44 + legend
	height := top + len(panels)*(panelHeight+panelGap) - panelGap + belowAxis
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">`+"\n", marginLeft+panelWidth+marginRight, height)
	heading := "a simulation"
	if len(r.Runs) > 0 {
		heading = title(r.Runs[0].Result.Scenario)
	}
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", html.EscapeString(heading))
	fmt.Fprintf(&b, `<text x="8" y="18" font-size="12" fill="#1b2430">%s</text>`+"\n", html.EscapeString(heading))
	if legend > 0 {
		for i, one := range r.Runs {
			y := 36 + i*lineHeight
			fmt.Fprintf(&b, `<line x1="8" x2="36" y1="%d" y2="%d" stroke="%s" stroke-width="2"%s/><text x="42" y="%d" fill="#1b2430">%s</text>`+"\n", y-4, y-4, colors[i%len(colors)], dash(i), y, html.EscapeString(one.Label))
		}
	}
	for i, p := range panels {
		r.drawPanel(&b, p, top+i*(panelHeight+panelGap))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func dash(i int) string {
	if d := dashes[i%len(dashes)]; d != "" {
		return ` stroke-dasharray="` + d + `"`
	}
	return ""
}

func (r Report) drawPanel(b *strings.Builder, p panel, y int) {
	end, most := time.Duration(1), 0.0
	for _, one := range r.Runs {
		end = max(end, one.Result.Ended)
		for _, x := range columnsOf(one.Result, p.value, mostPoints) {
			most = max(most, x)
		}
	}
	most = roundUp(most)
	x := func(at time.Duration) float64 {
		return marginLeft + panelWidth*float64(at)/float64(end)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold" fill="#1b2430">%s</text>`+"\n", marginLeft, y-6, p.about)
	if len(r.Runs) > 0 {
		for _, o := range r.Runs[0].Result.Scenario.Dependency.Outages {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f6dcd3"><title>outage</title></rect>`+"\n", x(o.At), y, x(min(o.At+o.For, end))-x(min(o.At, end)), panelHeight)
		}
	}
	for _, share := range []float64{0, 0.5, 1} {
		level := float64(y) + panelHeight*(1-share)
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#d8dce2"/><text x="%d" y="%.1f" text-anchor="end" fill="#5b6472">%s</text>`+"\n",
			marginLeft, marginLeft+panelWidth, level, level, marginLeft-5, level+4, number(most*share))
	}
	for at, step := time.Duration(0), timeStep(end); at <= end; at += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="%s" fill="#5b6472">%s</text>`+"\n", x(at), y+panelHeight+14, anchor(x(at)), short(at))
	}
	for i, one := range r.Runs {
		r.drawLine(b, one.Result, p, i, func(at time.Duration, v float64) string {
			return fmt.Sprintf("%.1f,%.1f", x(at), float64(y)+panelHeight*(1-v/most))
		})
	}
}

func (r Report) drawLine(b *strings.Builder, res *simulate.Result, p panel, i int, at func(time.Duration, float64) string) {
	values := columnsOf(res, p.value, mostPoints)
	points := make([]string, len(values))
	for k, v := range values {
		points[k] = at(res.Ended*time.Duration(2*k+1)/time.Duration(2*len(values)), v)
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5"%s points="%s"/>`+"\n", colors[i%len(colors)], dash(i), strings.Join(points, " "))
}

// mostSteps is how many steps an axis has at most.
const mostSteps = 6

// timeSteps are what people divide time by.
var timeSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 4 * day, 7 * day,
}

const day = 24 * time.Hour

// timeStep is what lies between the times that an axis up to end names.
func timeStep(end time.Duration) time.Duration {
	if end < mostSteps*time.Second {
		return max(1, time.Duration(roundUp(float64(end)/mostSteps)))
	}
	for _, step := range timeSteps {
		if end <= mostSteps*step {
			return step
		}
	}
	return day * time.Duration(roundUp(end.Hours()/24/mostSteps))
}

// anchor is where a text stands that belongs to the place x: within the picture.
func anchor(x float64) string {
	if x > marginLeft+panelWidth-marginRight {
		return "end"
	}
	return "middle"
}

// roundUp is the next of 1, 2, 5, 10, 20, ... above x.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if x <= f*scale {
			return f * scale
		}
	}
	return 10 * scale
}

// style keeps the page readable without a network.
const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b2430;background:#fff}
pre{overflow-x:auto;background:#f5f6f8;padding:1rem;font-size:13px;line-height:1.25}
svg{width:100%;height:auto}`

// HTML is one page, which needs no network: the picture, and the report of each run.
func (r Report) HTML() string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n")
	b.WriteString("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n")
	b.WriteString("<title>reprise simulate</title>\n<style>\n" + style + "\n</style>\n<h1>reprise simulate</h1>\n")
	b.WriteString(r.SVG())
	if len(r.Runs) > 1 {
		fmt.Fprintf(&b, "<h2>Comparison</h2>\n<pre>%s</pre>\n", html.EscapeString(Report{Runs: r.Runs, Find: r.Find}.Text(100, true)))
	}
	for i, one := range r.Runs {
		name, find := "Result", r.Find
		if one.Label != "" {
			name, find = key(i)+"  "+one.Label, nil
		}
		fmt.Fprintf(&b, "<h2>%s</h2>\n<pre>%s</pre>\n", html.EscapeString(name), html.EscapeString(Report{Runs: []Run{{Result: one.Result}}, Find: find}.Text(100, true)))
	}
	b.WriteString("</html>\n")
	return b.String()
}
