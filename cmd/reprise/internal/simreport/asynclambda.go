package simreport

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// AsyncLambdas are simulated asynchronous functions with a retry queue, each with another policy.
type AsyncLambdas []*simulate.AsyncLambdaResult

// asyncPolicy is the text of a policy that was simulated.
func asyncPolicy(r *simulate.AsyncLambdaResult) string {
	text, err := r.Simulated.Policy.MarshalText()
	if err != nil {
		return err.Error() // a policy with a backoff in Go, which has no text
	}
	return string(text)
}

// asyncLabel says what distinguishes one from the others.
func asyncLabel(r *simulate.AsyncLambdaResult) string {
	if r.Simulated.ArticleAge {
		return asyncPolicy(r) + ", the age as in the article's program"
	}
	return asyncPolicy(r)
}

// asyncTitle says what all have in common.
func asyncTitle(a simulate.AsyncLambda) string {
	parts := []string{grouped(a.Events) + " events at once"}
	if a.Over > 0 {
		parts[0] = fmt.Sprintf("%s events within %s", grouped(a.Events), short(a.Over))
	}
	parts = append(parts, fmt.Sprintf("runs of %v", a.Takes), percent(a.Fails)+" fail")
	for _, o := range a.Outages {
		parts = append(parts, fmt.Sprintf("%s of those from %s on, for %s", percent(o.Share), short(o.At), short(o.For)))
	}
	if a.LambdaRetries > 0 {
		parts = append(parts, fmt.Sprintf("with %d more of Lambda's own", a.LambdaRetries))
	}
	return strings.Join(parts, "; ")
}

// dayParts are parts of the time after the first event came, by their first minutes.
var dayParts = []struct {
	from int
	name string
}{
	{0, "minute 1"},
	{1, "minutes 2 to 10"},
	{10, "minutes 11 to 60"},
	{60, "hours 2 to 6"},
	{6 * 60, "hours 7 to 12"},
	{12 * 60, "hours 13 to 18"},
	{18 * 60, "hours 19 to 24"},
	{24 * 60, "later"},
}

// Text is the results for people.
func (all AsyncLambdas) Text() string {
	var b strings.Builder
	ends := [][]string{{"", "events", "succeeded", "attempts used up", "too old", "waiting", "given up by", "last run"}}
	work := [][]string{{"", "runs", "failed", "an event", "requests", "handler runs", "cost"}}
	runs := [][]string{{"runs"}}
	for i, r := range all {
		givenUp := "-"
		if r.GivenUp.Count > 0 {
			givenUp = short(r.GivenUp.Most)
		}
		ends = append(ends, []string{key(i), grouped(r.Events), grouped(r.Succeeded), grouped(r.Exhausted), grouped(r.Expired), grouped(r.Waiting), givenUp, short(r.Last)})
		work = append(work, []string{
			key(i), grouped(r.Runs), grouped(r.Failed), fmt.Sprintf("%.2f", float64(r.Runs)/float64(max(r.Events, 1))), grouped(r.Requests), grouped(r.HandlerRuns), fmt.Sprintf("$%.2f", r.Cost()),
		})
		runs[0] = append(runs[0], key(i))
	}
	for p, part := range dayParts {
		row := []string{part.name}
		for _, one := range all {
			n := 0
			for minute, runs := range one.Minutes {
				if minute >= part.from && (p+1 == len(dayParts) || minute < dayParts[p+1].from) {
					n += runs
				}
			}
			row = append(row, grouped(n))
		}
		runs = append(runs, row)
	}
	if len(all) > 0 {
		fmt.Fprintf(&b, "function  %s\n\n", asyncTitle(all[0].Simulated))
	}
	b.WriteString(table(ends) + "\n" + table(work) + "\n" + table(runs) + "\n")
	for i, one := range all {
		fmt.Fprintf(&b, "%s  %s\n", key(i), asyncLabel(one))
	}
	b.WriteString("\nnote: the cost is that of the retries: requests to SQS and runs of the retry handler, one message at a time; batches share some\n")
	return b.String()
}

type (
	jsonAsyncLambda struct {
		Policy      string         `json:"policy"`
		ArticleAge  bool           `json:"articleAge"`
		Events      int            `json:"events"`
		Succeeded   int            `json:"succeeded"`
		Exhausted   int            `json:"exhausted"`
		Expired     int            `json:"expired"`
		Waiting     int            `json:"waiting"`
		Runs        int            `json:"runs"`
		Failed      int            `json:"failed"`
		Last        float64        `json:"last"`
		Done        *jsonQuantiles `json:"done"`
		GivenUp     *jsonQuantiles `json:"givenUp"`
		Requests    int            `json:"requests"`
		HandlerRuns int            `json:"handlerRuns"`
		HandlerTime float64        `json:"handlerTime"`
		Cost        float64        `json:"cost"`
		Minutes     []int          `json:"runsAMinute"`
	}
	jsonQuantiles struct {
		Mean  float64 `json:"mean"`
		Least float64 `json:"least"`
		P50   float64 `json:"p50"`
		P99   float64 `json:"p99"`
		Most  float64 `json:"most"`
	}
)

// JSON is the results for programs. Times are in seconds.
func (all AsyncLambdas) JSON() ([]byte, error) {
	out := make([]jsonAsyncLambda, len(all))
	for i, r := range all {
		out[i] = jsonAsyncLambda{
			asyncPolicy(r), r.Simulated.ArticleAge, r.Events, r.Succeeded, r.Exhausted, r.Expired, r.Waiting, r.Runs, r.Failed, secondsOf(r.Last),
			quantiles(r.Done), quantiles(r.GivenUp), r.Requests, r.HandlerRuns, secondsOf(r.HandlerTime), r.Cost(), r.Minutes,
		}
	}
	text, err := json.MarshalIndent(map[string]any{"runs": out}, "", "  ")
	return append(text, '\n'), err
}

// quantiles is null in JSON if there are none.
func quantiles(q simulate.Quantiles) *jsonQuantiles {
	if q.Count == 0 {
		return nil
	}
	return &jsonQuantiles{secondsOf(q.Mean), secondsOf(q.Least), secondsOf(q.P50), secondsOf(q.P99), secondsOf(q.Most)}
}

// CSV has a row for each minute of each policy.
func (all AsyncLambdas) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"policy", "article_age", "minute", "runs"}) // Flush tells of an error
	for _, one := range all {
		for minute, runs := range one.Minutes {
			_ = w.Write([]string{asyncPolicy(one), strconv.FormatBool(one.Simulated.ArticleAge), strconv.Itoa(minute), strconv.Itoa(runs)}) // as above
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// SVG is a picture of the runs a minute, on a logarithmic scale: most are in the first minutes.
func (all AsyncLambdas) SVG() string {
	g := graph{heading: "runs of an asynchronous Lambda function with a retry queue", x: "hours after the first event", y: "runs a minute", logarithmic: true}
	longest := 0
	for _, one := range all {
		longest = max(longest, len(one.Minutes))
	}
	g.most = float64((longest + 59) / 60)
	for _, one := range all {
		line := graphLine{label: asyncLabel(one)}
		for from := 0; from < longest; {
			width := 1
			if from >= manyRuns {
				width = meanOf
			}
			n := 0
			for minute := from; minute < min(from+width, len(one.Minutes)); minute++ {
				n += one.Minutes[minute]
			}
			middle := time.Duration(2*from+width-1) * time.Minute / 2
			line.points = append(line.points, [2]float64{middle.Hours(), float64(n) / float64(width)})
			from += width
		}
		g.lines = append(g.lines, line)
	}
	return g.svg()
}

// The picture has each of the first minutes, and then means of several.
const (
	manyRuns = 20
	meanOf   = 10
)
