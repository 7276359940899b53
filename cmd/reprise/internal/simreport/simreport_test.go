package simreport_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

func simulated(t *testing.T, label string, s simulate.Scenario) simreport.Run {
	t.Helper()
	r, err := simulate.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return simreport.Run{Label: label, Result: r}
}

// small has a name that no format may take for its own.
var small = simulate.Scenario{
	Name: `<b>"A" & 'B'</b>`, Traffic: simulate.Traffic{Rate: 5, For: 5 * time.Minute}, Handler: simulate.Handler{Fails: []float64{0.3}},
	Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: time.Minute, For: time.Minute}}},
}

// TestScenarioFiles checks that a file gives the scenario, and that what it does not know is refused.
func TestScenarioFiles(t *testing.T) {
	s, err := simreport.ReadScenario([]byte(`
name: orders
traffic: {rate: 20, for: 1h, bursts: [{at: 10m, messages: 500}]}
policy: exponential(base=2s,max=10m) jitter=equal attempts=9
queue: {max-receives: 50, retention: 24h}
handler: {takes: "lognormal(80ms,2s)", fails: [0.3, 0.1], permanent: 0.01}
dependency: {capacity: 60, outages: [{at: 20m, for: 15m, share: 0.5}]}
fleet: {consumers: 3, concurrency: 20, no-breaker: true, restarts: [{at: 30m, kill: true}]}
network: {throttle: 0.01}
horizon: 2h
seed: 7
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Traffic.Bursts[0].Messages != 500 || s.Policy.MaxAttempts != 9 || s.Policy.Jitter != retry.Equal || s.Handler.Takes != simulate.Lognormal(80*time.Millisecond, 2*time.Second) ||
		s.Dependency.Outages[0].Share != 0.5 || !s.Fleet.NoBreaker || !s.Fleet.Restarts[0].Kill || s.Horizon != 2*time.Hour || s.Seed != 7 || s.Queue.MaxReceives != 50 {
		t.Errorf("the scenario is %+v", s)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"traffic: {rte: 20}":                   "rte",
		"policy: exponential(base=2s":          "not closed",
		"horizon: long":                        "long",
		"handler: {takes: normal(1s)}":         "no distribution",
		strings.Repeat("[", 200):               "nested",
		"fleet: {consumers: many}":             "many",
		"traffic: {backlog: 1}\ntraffic: {}\n": "traffic",
	} {
		if _, err := simreport.ReadScenario([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one that contains %q", text, err, want)
		}
	}
}

// TestVariants checks what a variant and a sweep change.
func TestVariants(t *testing.T) {
	v, err := simreport.Vary(small, "constant(5s) attempts=3; breaker=off; concurrency=50")
	if err != nil || v.Scenario.Policy.Backoff != retry.Constant(5*time.Second) || !v.Scenario.Fleet.NoBreaker || v.Scenario.Fleet.Concurrency != 50 {
		t.Errorf("the variant is %+v, %v", v, err)
	}
	if v, err = simreport.Vary(small, "jitter=none"); err != nil || v.Scenario.Policy.Jitter != retry.None || v.Scenario.Policy.Backoff != small.Policy.Backoff {
		t.Errorf("the variant is %+v, %v", v, err)
	}
	for text, want := range map[string][]string{
		"base=1s..1m":       {"1s", "2s", "4s", "8s", "15s", "30s", "1m"},
		"attempts=2..5":     {"2", "3", "4", "5"},
		"failing=1%..64%":   {"1%", "2%", "4%", "8%", "16%", "32%", "64%"},
		"jitter=full,none":  {"full", "none"},
		"consumers=1,5":     {"1", "5"},
		"base=100ms..100ms": nil,
	} {
		all, err := simreport.Sweep(small, text)
		var got []string
		for _, v := range all {
			_, value, _ := strings.Cut(v.Label, "=")
			got = append(got, value)
		}
		if (err != nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"base", "speed=1..2", "attempts=x", "concurrency=1.5", "breaker=maybe", "base=1s..x"} {
		if _, err := simreport.Sweep(small, text); err == nil {
			t.Errorf("the sweep %q is accepted", text)
		}
	}
	for _, text := range []string{"", "nonsense", "breaker=maybe", "concurrency=x; breaker=off"} {
		if _, err := simreport.Vary(small, text); err == nil && text != "" {
			t.Errorf("the variant %q is accepted", text)
		}
	}
}

// TestConditions checks which runs meet conditions.
func TestConditions(t *testing.T) {
	run := simulated(t, "one", small)
	for text, met := range map[string]bool{
		"dead=0": true, "done>=1": true, "p99<1ms": false, "p99<24h, dead<=0": true, "cleared<1h": true, "cost<$1": true, "attempts>1,attempts<20": true, "left>0": false,
	} {
		c, err := simreport.ReadConditions(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := (simreport.Report{Runs: []simreport.Run{run}, Find: c}).Found(); ok != met {
			t.Errorf("%s: met is %v, want %v", text, ok, met)
		}
	}
	for text, want := range map[string]string{"dead": "no condition", "deaths=0": "no metric", "p99<5": "no duration", "dead=x": "no number", "p99<-5s": "no duration"} {
		if _, err := simreport.ReadConditions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one that contains %q", text, err, want)
		}
	}
}

// TestFormats checks that each format can be read, and says what the results say.
func TestFormats(t *testing.T) {
	find, err := simreport.ReadConditions("dead=0")
	if err != nil {
		t.Fatal(err)
	}
	off := small
	off.Fleet.NoBreaker = true
	one, two := simulated(t, "", small), simulated(t, "<breaker=off>", off)
	single := simreport.Report{Runs: []simreport.Run{one}, Find: find}
	both := simreport.Report{Runs: []simreport.Run{{Label: "as it is", Result: one.Result}, two}, Find: find}

	text := single.Text(80, true)
	for _, want := range []string{"ended       settled", "outage      of 1m at 1m", "first try", "attempts of the messages", "█", "found: every condition is met"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	if text := single.Text(80, false); strings.ContainsAny(text, "█▁■") {
		t.Errorf("the text has block characters where there are none:\n%s", text)
	}
	if text := both.Text(80, true); !strings.Contains(text, "* A") || !strings.Contains(text, "B  <breaker=off>") {
		t.Errorf("the comparison is:\n%s", text)
	}

	raw, err := both.JSON()
	var decoded struct {
		Found string
		Runs  []struct {
			Label    string
			Scenario struct{ Policy string }
			Series   []struct{ Started int }
			Attempts struct{ Started int }
		}
	}
	if err != nil || json.Unmarshal(raw, &decoded) != nil || len(decoded.Runs) != 2 || decoded.Found != "as it is" || !strings.Contains(decoded.Runs[0].Scenario.Policy, "exponential") {
		t.Fatalf("the JSON is %s, %v", raw, err)
	}
	rows, err := both.CSV()
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(string(rows))).ReadAll()
	if want := 1 + len(one.Result.Series) + len(two.Result.Series); err != nil || len(records) != want {
		t.Errorf("the CSV has %d rows, %v; want %d", len(records), err, want)
	}
	sum := 0
	for _, b := range decoded.Runs[1].Series {
		sum += b.Started
	}
	if sum != two.Result.Attempts.Started || sum != decoded.Runs[1].Attempts.Started {
		t.Errorf("the JSON's series has %d attempts, want %d", sum, two.Result.Attempts.Started)
	}
	for name, picture := range map[string]string{"svg": both.SVG(), "one": single.SVG()} {
		wellFormed(t, name, picture)
	}
	page := both.HTML()
	if !strings.Contains(page, both.SVG()) || strings.Contains(page, "<b>") || strings.Contains(page, "<breaker") || strings.Contains(page, "<script") || strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), "http:") {
		t.Error("the page lacks the picture, has text that is not escaped, or needs a network")
	}
}

// wellFormed checks that a picture is XML.
func wellFormed(t *testing.T, name, picture string) {
	t.Helper()
	elements := 0
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, is := token.(xml.StartElement); is {
			elements++
		}
	}
	if elements < 10 || strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
		t.Errorf("%s has %d elements, or no numbers", name, elements)
	}
}

// TestSchedules checks the forms of policies alone.
func TestSchedules(t *testing.T) {
	var all simreport.Schedules
	for _, text := range []string{"exponential(base=1m,max=1h) attempts=5", "constant(1m) jitter=none attempts=40"} {
		var p retry.Policy
		if err := p.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		s, err := simulate.NewSchedule(t.Context(), simulate.Alone{Policy: p, Messages: 100})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, simreport.Alone{Policy: text, Messages: 100, Forms: simulate.NewForms(p, 1), Schedule: s})
	}
	text := all.Text(80, true)
	for _, want := range []string{"5.00 attempts a message, 100 % given up", "7m30s of waits", "deviation", "and 10 more", "retries a minute"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	if raw, err := all.JSON(); err != nil || !json.Valid(raw) {
		t.Errorf("the JSON is %s, %v", raw, err)
	}
	rows, err := all.CSV()
	if err != nil || strings.Count(string(rows), "\n") != 1+5+40 {
		t.Errorf("the CSV is %s, %v", rows, err)
	}
	wellFormed(t, "schedules", all.SVG())
}

// TestContention checks the forms of the experiment.
func TestContention(t *testing.T) {
	all := simreport.Contention{
		{Clients: 10, Strategies: make([]simulate.Contended, len(simreport.Strategies))},
		{Clients: 20, Strategies: make([]simulate.Contended, len(simreport.Strategies))},
	}
	all[1].Strategies[4] = simulate.Contended{Calls: 99.6, Took: 1234 * time.Millisecond}
	if text := all.Text(); !strings.Contains(text, "100") || !strings.Contains(text, "1234") {
		t.Errorf("the text is:\n%s", text)
	}
	rows, err := all.CSV()
	if err != nil || !strings.Contains(string(rows), "20,1234,100,full\n") {
		t.Errorf("the CSV is:\n%s", rows)
	}
	if raw, err := all.JSON(); err != nil || !json.Valid(raw) {
		t.Errorf("the JSON is %s, %v", raw, err)
	}
	wellFormed(t, "contention", all.SVG())
}

// TestAsyncLambdas checks the forms of asynchronous functions.
func TestAsyncLambdas(t *testing.T) {
	var all simreport.AsyncLambdas
	for _, articleAge := range []bool{false, true} {
		a := simulate.AsyncLambda{Events: 20, Fails: 1, ArticleAge: articleAge, Over: time.Second, Outages: []simulate.Outage{{At: 48 * time.Hour, For: time.Hour}}}
		if err := a.Policy.UnmarshalText([]byte("constant(1h) jitter=none attempts=unlimited age=2h")); err != nil {
			t.Fatal(err)
		}
		r, err := simulate.RunAsyncLambda(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	text := all.Text()
	// Runs begin at 0, 1 h and 2 h; or up to 24 h, since each wait begins some seconds later.
	for _, want := range []string{"20 events within 1s; runs of 100ms; 100 % fail; 100 % of those from 2d on, for 1h\n", "A      20          0                 0       20        0", "minute 1          20   20\n", "hours 2 to 6      40  100\n", "hours 19 to 24     0  120\n", "the article's program"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	raw, err := all.JSON()
	var read struct{ Runs []struct{ RunsAMinute []int } }
	if err != nil || json.Unmarshal(raw, &read) != nil || len(read.Runs) != 2 || read.Runs[0].RunsAMinute[60] != 20 {
		t.Errorf("the JSON is %s, %v", raw, err)
	}
	rows, err := all.CSV()
	if err != nil || !strings.Contains(string(rows), ",false,60,20\n") || !strings.Contains(string(rows), ",true,0,20\n") {
		t.Errorf("the CSV is %s, %v", rows, err)
	}
	wellFormed(t, "asynchronous functions", all.SVG())
}
