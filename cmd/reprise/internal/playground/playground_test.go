package playground_test

import (
	"context"
	"fmt"
	"go/format"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/playground"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

func read(t *testing.T, query string) playground.Form {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	f, problems := playground.Read(values)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", query, problems)
	}
	return f
}

// TestALinkCarriesTheForm reads forms, and reads the queries of their links again.
func TestALinkCarriesTheForm(t *testing.T) {
	for _, query := range []string{
		"",
		"policy=constant(5m) jitter=none&failing=100%25&messages=10&rate=0",
		"policy=list(1s,10s,1m) jitter=12.5%25 attempts=unlimited age=24h since=sent&against=linear&breaker=compare",
		"outage=0&capacity=12.5&consumers=7&concurrency=3&queue=orders&seed=18446744073709551615&takes=1ms&for=1h",
	} {
		f := read(t, strings.ReplaceAll(query, " ", "+"))
		again, problems := playground.Read(f.Query())
		if len(problems) > 0 || again.Query().Encode() != f.Query().Encode() || again.PolicyText() != f.PolicyText() || again.Seed != f.Seed || again.AgainstText() != f.AgainstText() {
			t.Errorf("%s: the link is read as %+v, %v; want %+v", query, again, problems, f)
		}
		f.Policy, f.Against, again.Policy, again.Against = retry.Policy{}, retry.Policy{}, retry.Policy{}, retry.Policy{} // their texts are the same
		if !reflect.DeepEqual(again, f) {
			t.Errorf("%s: the link is read as %+v, want %+v", query, again, f)
		}
	}
}

// TestFieldsThatCannotBeUsed names each field, and keeps the defaults in their place.
func TestFieldsThatCannotBeUsed(t *testing.T) {
	plain, _ := playground.Read(nil)
	for _, c := range []struct{ field, value, about string }{
		{"policy", "exponentail(base=1s)", "exponentail"},
		{"policy", strings.Repeat("x", 5000), "4096"},
		{"against", "constant(", "constant("},
		{"messages", "-1", "from 0 to 50000"},
		{"messages", "50001", "from 0 to 50000"},
		{"rate", "NaN", "no number"},
		{"rate", "1000", "the command"},
		{"for", "forever", "20m"},
		{"for", "-5s", "20m"},
		{"failing", "200%", "200%"},
		{"takes", "2h", "no time up to 1h"},
		{"outage", "72h", "no time up to 48h"},
		{"capacity", "lots", "no number"},
		{"consumers", "0", "from 1 to 100"},
		{"concurrency", "1e3", "from 1 to 1000"},
		{"seed", "-1", "whole number"},
	} {
		f, problems := playground.Read(url.Values{c.field: {c.value}})
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), c.about) {
			t.Errorf("%s=%.20s: problems %v, want one about %q", c.field, c.value, problems, c.about)
		}
		if got, want := f.Query().Encode(), plain.Query().Encode(); got != want {
			t.Errorf("%s=%.20s: the form is %s, want the defaults %s", c.field, c.value, got, want)
		}
	}
}

// TestSlidersSelectThePolicyThatTheyShow moves no slider: the policy stays as it is.
func TestSlidersSelectThePolicyThatTheyShow(t *testing.T) {
	for _, text := range []string{
		"exponential(base=2s,factor=3,max=6h) jitter=equal attempts=12 age=24h",
		"linear(base=5s,step=10s,max=1h) jitter=none attempts=5 age=48h",
		"polynomial(base=1s,exponent=1.5,max=12h) jitter=decorrelated attempts=100 age=336h",
		"constant(30s) jitter=full attempts=unlimited age=unlimited",
	} {
		s := read(t, "policy="+url.QueryEscape(text)).Sliders()
		values := url.Values{
			"by": {"sliders"}, "kind": {s.Kind}, "base": {fmt.Sprint(s.Base)}, "step": {fmt.Sprint(s.Step)}, "max": {fmt.Sprint(s.Max)},
			"growth": {s.Growth}, "jitter": {s.Jitter}, "attempts": {fmt.Sprint(s.Attempts)}, "age": {fmt.Sprint(s.Age)},
			"policy": {"constant(7s)"}, // of the text, which the sliders replace
		}
		f, problems := playground.Read(values)
		if len(problems) > 0 || f.PolicyText() != text {
			t.Errorf("the sliders of %s select %s, %v", text, f.PolicyText(), problems)
		}
	}
	f, problems := playground.Read(url.Values{"by": {"sliders"}, "base": {"-3"}, "max": {"1000"}, "growth": {"-1"}, "kind": {"cubic"}, "jitter": {"x"}, "age": {"99"}})
	if want := "exponential(base=1s,factor=2,max=12h) jitter=full attempts=unlimited age=unlimited"; len(problems) > 0 || f.PolicyText() != want {
		t.Errorf("impossible sliders select %s, %v; want %s", f.PolicyText(), problems, want)
	}
}

// TestAnswer asks about an outage with two policies and without a breaker.
func TestAnswer(t *testing.T) {
	f := read(t, url.Values{
		"policy": {"exponential(base=1s,max=5m) attempts=10"}, "against": {"constant(10s) jitter=none attempts=10"}, "breaker": {"compare"},
		"messages": {"0"}, "rate": {"5"}, "for": {"20m"}, "outage": {"5m"}, "at": {"5m"}, "queue": {"orders"},
	}.Encode())
	queue := plan.Queue{ARN: "arn:aws:sqs:eu-west-1:123456789012:orders", Visibility: 30 * time.Second, Retention: time.Hour, MaxReceives: 3, DeadLetterARN: "arn:aws:sqs:eu-west-1:123456789012:dead"}
	a, err := playground.Ask(t.Context(), f, playground.Settings{Queue: queue, Known: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Runs) != 3 || a.Runs[0].Label != f.PolicyText() || a.Runs[2].Label != "without a circuit breaker" {
		t.Fatalf("the runs are %+v", a.Runs)
	}
	if with, without := a.Runs[0].Result.Attempts.Unavailable, a.Runs[2].Result.Attempts.Unavailable; with == 0 || without < 10*with {
		t.Errorf("%d attempts in the outage with a breaker, %d without: want some, and many more", with, without)
	}
	if len(a.Figures) == 0 || slices.ContainsFunc(a.Figures, func(f simreport.Figure) bool { return len(f.Values) != 3 || f.About == "" }) {
		t.Errorf("the figures are %+v", a.Figures)
	}
	if !slices.ContainsFunc(a.Findings, func(f plan.Finding) bool { return f.Code == plan.CodeReceivesLimit }) {
		t.Errorf("the findings are %v: want one about the queue's maxReceiveCount", a.Findings)
	}
	if n := len(a.Schedule.Attempts); n < 3 || a.Attempts < 1.04 || a.Attempts > 1.06 {
		t.Errorf("the schedule has %d attempts, and a message needs %v", n, a.Attempts)
	}
	for name, picture := range map[string]string{"retries": a.Retries, "runs": a.Picture} {
		if !strings.HasPrefix(picture, "<svg ") || strings.Contains(picture, "style=") || strings.Contains(picture, "<style") {
			t.Errorf("the picture of the %s is %.80q, or has styles, which no page with a strict policy shows", name, picture)
		}
	}
}

// TestAnswerEnds asks for what would take longer than it may, or would never end.
func TestAnswerEnds(t *testing.T) {
	f := read(t, url.Values{"policy": {"constant(0s) jitter=none attempts=70"}, "failing": {"100%"}, "messages": {"5000"}, "rate": {"0"}, "takes": {"1ms"}}.Encode())
	a, err := playground.Ask(t.Context(), f, playground.Settings{Limit: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Runs) != 1 || !strings.Contains(strings.Join(a.Notes, "\n"), "cut short") {
		t.Errorf("%d runs with the notes %q: want one that was cut short", len(a.Runs), a.Notes)
	}

	f = read(t, url.Values{"policy": {"constant(1s) attempts=unlimited age=unlimited"}, "failing": {"100%"}}.Encode())
	if _, err := playground.Ask(t.Context(), f, playground.Settings{}); err == nil || !strings.Contains(err.Error(), "never gives up") {
		t.Errorf("what never ends: %v, want a refusal", err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := playground.Ask(ended, read(t, ""), playground.Settings{}); err == nil {
		t.Error("Ask answered although its context had ended")
	}
}

// TestPastedGo compiles the Go of many policies in one program, which prints their texts.
func TestPastedGo(t *testing.T) {
	texts := []string{
		"exponential(base=1.5s,factor=1.5,max=6h) jitter=equal attempts=12 age=24h",
		"exponential(base=1ns,factor=2,max=12h) jitter=12.5% attempts=unlimited age=unlimited",
		"linear(base=5s,step=10s,max=1h) jitter=none attempts=5 age=48h since=sent",
		"polynomial(base=1s,exponent=0.5,max=12h) jitter=decorrelated attempts=100 age=336h",
		"constant(0s) jitter=from-base attempts=3 age=1h",
		"list(1s,1m30s,1h) jitter=full attempts=20 age=96h",
	}
	var source, want strings.Builder
	source.WriteString("package main\n\nimport (\n\t\"fmt\"\n\t\"time\"\n\n\t\"github.com/reprise-sqs/reprise/retry\"\n)\n\nfunc main() {\n\tfor _, p := range []retry.Policy{\n")
	for _, text := range texts {
		var p retry.Policy
		if err := p.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		f, _ := playground.Read(url.Values{"policy": {text}, "messages": {"1"}, "rate": {"0"}})
		a, err := playground.Ask(t.Context(), f, playground.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source([]byte("var p = " + a.Paste.Go))
		if err != nil || string(formatted) != "var p = "+a.Paste.Go {
			t.Errorf("gofmt would change the Go of %s to\n%s%v", text, formatted, err)
		}
		source.WriteString(strings.TrimSpace(a.Paste.Go) + ",\n")
		want.WriteString(text + "\n")
		if a.Paste.YAML != "retry: "+text+"\n" || !strings.Contains(a.Paste.Run, "'"+text+"'") {
			t.Errorf("%s is pasted as %q and %q", text, a.Paste.YAML, a.Paste.Run)
		}
	}
	source.WriteString("} {\n\t\ttext, err := p.MarshalText()\n\t\tif err != nil {\n\t\t\tpanic(err)\n\t\t}\n\t\tfmt.Println(string(text))\n\t}\n\t_ = time.Second\n}\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(source.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if err != nil || string(out) != want.String() {
		t.Errorf("the pasted Go says\n%s%v\nwant\n%s", out, err, want.String())
	}
}

// TestPastedCommand: the command simulates what the page shows, of which each figure is another one.
func TestPastedCommand(t *testing.T) {
	f := read(t, url.Values{
		"policy": {"constant(7s) jitter=none attempts=3 age=1h"}, "against": {"linear(base=5s,step=10s,max=1h) jitter=none attempts=5 age=48h"}, "breaker": {"compare"},
		"messages": {"11"}, "rate": {"2.5"}, "for": {"21m"}, "failing": {"4%"}, "takes": {"300ms"}, "outage": {"5m"}, "at": {"13m"}, "capacity": {"40"},
		"consumers": {"3"}, "concurrency": {"6"}, "queue": {"mail"}, "seed": {"9"},
	}.Encode())
	a, err := playground.Ask(t.Context(), f, playground.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"reprise simulate", "--retry 'constant(7s) jitter=none attempts=3 age=1h'", "--messages 11", "--rate 2.5", "--for 21m", "--failing 4%", "--takes 300ms",
		"--outage 5m@13m", "--capacity 40/s", "--consumers 3", "--concurrency 6", "--seed 9",
		"--compare breaker=on", "'linear(base=5s,step=10s,max=1h) jitter=none attempts=5 age=48h'", "breaker=off",
	}, " \\\n  ") + "\n"
	if a.Paste.Simulate != want || !strings.HasPrefix(a.Paste.Run, "reprise run --queue 'mail' ") {
		t.Errorf("the commands are\n%s%s\nwant\n%s", a.Paste.Simulate, a.Paste.Run, want)
	}
}

// FuzzRead holds that any query gives a form whose link is read as the same form.
func FuzzRead(f *testing.F) {
	f.Add("policy=constant(5m)&failing=20%25&messages=10")
	f.Add("by=sliders&kind=linear&base=3&attempts=0&age=9")
	f.Add("rate=1e4&for=1s&capacity=1e-300&takes=1ns")
	f.Add("policy=list(1s,2s)+jitter=0.01%25&against=x&seed=1")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		form, _ := playground.Read(values)
		again, problems := playground.Read(form.Query())
		if len(problems) > 0 || again.Query().Encode() != form.Query().Encode() {
			t.Errorf("the form of %q has the link %s, which is read as %s with %v", query, form.Query().Encode(), again.Query().Encode(), problems)
		}
		form.Sliders()
	})
}
