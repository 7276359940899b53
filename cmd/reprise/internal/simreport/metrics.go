package simreport

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// metric is a figure of a result that a comparison shows and a condition may name.
type metric struct {
	name, about string
	value       func(*simulate.Result) float64 // in seconds, if it is a time
	kind        metricKind
	shown       bool // in comparisons
}

type metricKind uint8

const (
	count metricKind = iota
	seconds
	ratio
	dollars
)

// metrics are all of them, in the order in which they are shown.
var metrics = []metric{
	{"done", "messages that are done", func(r *simulate.Result) float64 { return float64(r.Messages.Done) }, count, true},
	{"dead", "messages that are given up", func(r *simulate.Result) float64 { return float64(r.Messages.Dead) }, count, true},
	{"expired", "messages that SQS has deleted", func(r *simulate.Result) float64 { return float64(r.Messages.Expired) }, count, false},
	{"left", "messages still in the queue at the end", func(r *simulate.Result) float64 { return float64(r.Messages.Left) }, count, true},
	{"attempts", "attempts a message", func(r *simulate.Result) float64 {
		return float64(r.Attempts.Started) / float64(max(r.Messages.Arrived, 1))
	}, ratio, true},
	{"wasted", "attempts that could not have helped", func(r *simulate.Result) float64 { return float64(r.Attempts.Wasted()) }, count, true},
	{"wait", "99th percentile of the time to the first attempt", inSeconds(func(r *simulate.Result) time.Duration { return r.Wait.P99 }), seconds, false},
	{"p50", "median of the time until a message is done", inSeconds(func(r *simulate.Result) time.Duration { return r.Latency.P50 }), seconds, true},
	{"p90", "90th percentile of that", inSeconds(func(r *simulate.Result) time.Duration { return r.Latency.P90 }), seconds, false},
	{"p95", "95th percentile of that", inSeconds(func(r *simulate.Result) time.Duration { return r.Latency.P95 }), seconds, false},
	{"p99", "99th percentile of that", inSeconds(func(r *simulate.Result) time.Duration { return r.Latency.P99 }), seconds, true},
	{"p999", "99.9th percentile of that", inSeconds(func(r *simulate.Result) time.Duration { return r.Latency.P999 }), seconds, false},
	{"max", "the longest of that", inSeconds(func(r *simulate.Result) time.Duration { return r.Latency.Most }), seconds, true},
	{"peak", "most requests in a second that the dependency sees", func(r *simulate.Result) float64 { return float64(r.PeakRequests) }, count, true},
	{"in-flight", "most messages in flight", func(r *simulate.Result) float64 { return float64(r.PeakInFlight) }, count, false},
	{"backlog", "most unsettled messages", func(r *simulate.Result) float64 { return float64(r.PeakOpen) }, count, false},
	{"recovered", "longest time after an outage until the backlog is as before", longest(func(v simulate.Recovery) time.Duration { return v.Recovered }), seconds, false},
	{"cleared", "longest time after an outage until all that waited is settled", longest(func(v simulate.Recovery) time.Duration { return v.Cleared }), seconds, true},
	{"requests", "requests to SQS", func(r *simulate.Result) float64 { return float64(r.Requests.Total()) }, count, false},
	{"cost", "price of the requests to SQS, in US dollars", func(r *simulate.Result) float64 { return r.Cost() }, dollars, true},
	{"ended", "when the last attempt ended", inSeconds(func(r *simulate.Result) time.Duration { return r.Last }), seconds, true},
}

func inSeconds(of func(*simulate.Result) time.Duration) func(*simulate.Result) float64 {
	return func(r *simulate.Result) float64 { return of(r).Seconds() }
}

// longest is that of all outages; infinite if one of them has none.
func longest(of func(simulate.Recovery) time.Duration) func(*simulate.Result) float64 {
	return func(r *simulate.Result) float64 {
		most := 0.0
		for _, v := range r.Outages {
			if of(v) < 0 {
				return math.Inf(1)
			}
			most = max(most, of(v).Seconds())
		}
		return most
	}
}

// text is the metric's value for people.
func (m *metric) text(r *simulate.Result) string {
	x := m.value(r)
	switch m.kind {
	case seconds:
		if math.IsInf(x, 1) {
			return "never"
		}
		return short(time.Duration(x * float64(time.Second)))
	case ratio:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case dollars:
		return money(x)
	}
	return grouped(int(x))
}

func money(x float64) string {
	if x > 0 && x < 0.01 {
		return "<$0.01"
	}
	return "$" + strconv.FormatFloat(x, 'f', 2, 64)
}

// Conditions are what a result has to fulfil, all of them.
type Conditions []condition

type condition struct {
	metric   *metric
	operator string
	limit    float64
	text     string
}

// operators are ordered so that none is found within another.
var operators = []string{"<=", ">=", "<", ">", "="}

// ReadConditions reads conditions such as "p99<10m, dead=0".
func ReadConditions(text string) (Conditions, error) {
	var all Conditions
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		c := condition{text: part}
		name, limit := "", ""
		for _, o := range operators {
			if before, after, found := strings.Cut(part, o); found {
				name, c.operator, limit = strings.TrimSpace(before), o, strings.TrimSpace(after)
				break
			}
		}
		if c.operator == "" {
			return nil, fmt.Errorf("%q is no condition: write a metric, one of < <= = >= >, and a value, such as p99<10m", part)
		}
		for i := range metrics {
			if metrics[i].name == name {
				c.metric = &metrics[i]
			}
		}
		if c.metric == nil {
			return nil, fmt.Errorf("%q: there is no metric %q: use one of %s", part, name, MetricNames())
		}
		var err error
		if c.limit, err = readLimit(c.metric.kind, limit); err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func readLimit(kind metricKind, text string) (float64, error) {
	if kind == seconds {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("%q is no duration: write one such as 10m", text)
		}
		return d.Seconds(), nil
	}
	x, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return x, nil
}

// MetricNames lists the metrics that conditions may name.
func MetricNames() string {
	var names []string
	for _, m := range metrics {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}

// unmet returns the conditions that a result does not fulfil, with its values.
func (all Conditions) unmet(r *simulate.Result) (unmet []string) {
	for _, c := range all {
		x, ok := c.metric.value(r), false
		switch c.operator {
		case "<":
			ok = x < c.limit
		case "<=":
			ok = x <= c.limit
		case ">":
			ok = x > c.limit
		case ">=":
			ok = x >= c.limit
		default:
			ok = x == c.limit
		}
		if !ok {
			unmet = append(unmet, fmt.Sprintf("%s (it is %s)", c.text, c.metric.text(r)))
		}
	}
	return unmet
}

// Found returns the first run that fulfils all conditions; ok is false if none does.
func (r Report) Found() (found Run, ok bool) {
	for _, one := range r.Runs {
		if len(r.Find.unmet(one.Result)) == 0 {
			return one, true
		}
	}
	return Run{}, false
}
