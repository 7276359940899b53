//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestSimulate: scenarios of flags and files are simulated, compared, swept and searched.
func TestSimulate(t *testing.T) {
	t.Parallel()
	file := written(t, "orders.yaml", "traffic: {rate: 20, for: 10m}\nhandler: {fails: [0.2]}\ndependency: {outages: [{at: 3m, for: 2m}]}\nseed: 3\n")
	metric := written(t, "sent.json", `{"Datapoints": [{"Timestamp": "2026-01-31T09:02:00Z", "Sum": 7}, {"Timestamp": "2026-01-31T09:00:00Z", "Sum": 3}, {"Timestamp": "2026-01-31T09:01:00Z", "Sum": 2}]}`)
	incident := written(t, "incident.csv", "time,arrived,attempts,done\n2026-01-31T09:00:00Z,600,660,600\n2026-01-31T09:01:00Z,600,650,590\n2026-01-31T09:02:00Z,600,2000,0\n2026-01-31T09:03:00Z,600,670,610\n")
	tailed := written(t, "orders.jsonl", `{"event":"attempt","queue":"orders","at":"2026-01-31T09:00:00Z","message":"a","sent":"2026-01-31T08:59:59Z","attempt":1,"duration_ms":20,"outcome":"retry"}`+"\n"+
		`{"event":"attempt","queue":"orders","at":"2026-01-31T09:00:02Z","message":"a","sent":"2026-01-31T08:59:59Z","attempt":2,"duration_ms":20,"outcome":"delete"}`+"\n")
	spoilt := written(t, "spoilt.csv", "time,arrived,attempts,done\n2026-01-31T09:00:00Z,600,660,many\n")
	for _, test := range []struct {
		name  string
		args  []string
		stdin string
		code  int
		want  []string
	}{
		{"flags", []string{"--messages", "500", "--failing", "50%", "--retry", "constant(1s) attempts=4"}, "", 0, []string{"500 messages at the start", "ended       settled", "policy      constant(1s)"}},
		{"file", []string{"--scenario", file}, "", 0, []string{"an outage of 2m at 3m", "unsettled at its end", "20 % fail"}},
		{"file and flags", []string{"--scenario", file, "--consumers", "3", "--failing", "0%"}, "", 0, []string{"3 × 10 handlers", "0 % fail"}},
		{"standard input", []string{"--scenario", "-"}, "traffic: {backlog: 7}", 0, []string{"7: 7 done"}},
		{"outage", []string{"--rate", "10", "--for", "5m", "--outage", "1m@2m:50%", "--capacity", "50/s", "--burst", "100@1m"}, "", 0, []string{"outage of 1m at 2m", "capacity of 50 a second"}},
		{"arrivals", []string{"--arrivals", metric}, "", 0, []string{"arrivals of 3 periods of 1m", "12: 12 done"}},
		{"no arrivals", []string{"--arrivals", file}, "", 2, []string{"--arrivals", "0 points"}},
		{"replay", []string{"--replay", incident, "--compare", "breaker=off", "breaker=on"}, "", 0, []string{"replay      4 periods of 1m from 2026-01-31T09:00:00Z", "an outage of 1m at 2m, of 100 %", "measured    simulated", "A  breaker=off"}},
		{"replay of events", []string{"--replay", tailed}, "", 0, []string{"replay      4 periods of 1s from 2026-01-31T08:59:59Z", "attempts               2"}},
		{"replay as JSON", []string{"--replay", incident, "--compare", "breaker=off", "breaker=on", "-o", "json"}, "", 0, []string{`"policies": [`, `"label": "breaker=on"`, `"lost": 0`}},
		{"replay and flags", []string{"--replay", incident, "--failing", "0%", "--outage", "1m@1m"}, "", 0, []string{"0 % fail", "an outage of 1m at 1m;"}},
		{"spoilt replay", []string{"--replay", spoilt}, "", 2, []string{"--replay", "spoilt.csv: line 2, column 30: done is \"many\": write a number"}},
		{"no replay", []string{"--replay", file}, "", 2, []string{"there is no arrived or NumberOfMessagesSent"}},
		{"two arrivals", []string{"--replay", incident, "--arrivals", metric}, "", 2, []string{"exclude each other"}},
		{"comparison", []string{"--scenario", file, "--compare", "breaker=on", "constant(10s); breaker=off"}, "", 0, []string{"A  breaker=on", "B  constant(10s); breaker=off", "cleared"}},
		{"comparison with itself", []string{"--scenario", file, "--compare", "breaker=off"}, "", 0, []string{"A  as it is", "B  breaker=off"}},
		{"found", []string{"--scenario", file, "--sweep", "attempts=1,20", "--find", "dead=0"}, "", 0, []string{"* B", "found: attempts=20"}},
		{"not found", []string{"--scenario", file, "--sweep", "attempts=1,2", "--find", "dead=0"}, "", 1, []string{"none of the variants", "not all conditions"}},
		{"horizon", []string{"--rate", "500", "--horizon", "1m"}, "", 0, []string{"ended       horizon", "note: traffic.rate is 500"}},
		{"fluid", []string{"--rate", "12000", "--for", "24h", "--failing", "10%", "--consumers", "300"}, "", 0, []string{"1,036,800,000: 1,036,800,000 done", "note: these are expected numbers"}},
		{"fluid beside messages", []string{"--scenario", file, "--compare", "fluid=off", "fluid=on"}, "", 0, []string{"A  fluid=off", "B  fluid=on"}},
		{"fluid and FIFO", []string{"--messages", "20000000", "--fifo"}, "", 2, []string{"queue.fifo is true: a fluid simulation"}},
		{"policy alone", []string{"schedule", "exponential(base=10s,max=1h) attempts=6"}, "", 0, []string{"earliest", "2m35s of waits", "herd"}},
		{"experiment", []string{"contention", "--clients", "10", "--trials", "5"}, "", 0, []string{"decorrelated"}},
		{"asynchronous function", []string{"async-lambda", "--events", "50", "--article-age"}, "", 0, []string{"too old", "hours 19 to 24", "B  exponential(base=1s,factor=2,max=12h) jitter=from-base attempts=unlimited age=24h, the age as in the article's program"}},
		{"asynchronous function in an outage", []string{"async-lambda", "constant(10m) jitter=none", "--events", "50", "--outage", "1h@0s", "--lambda-retries", "1", "-o", "json"}, "", 0, []string{`"succeeded": 50`, `"waiting": 0`}},
		{"too many retries of Lambda", []string{"async-lambda", "--lambda-retries", "3"}, "", 2, []string{"Lambda's own retries is 3", "set 0 to 2"}},
		{"no time of a run", []string{"async-lambda", "--takes", "long"}, "", 2, []string{"--takes"}},
		{"without traffic", nil, "", 2, []string{"traffic is empty"}},
		{"never", []string{"--messages", "1", "--failing", "100%", "--retry", "constant(1s) attempts=unlimited age=unlimited"}, "", 2, []string{"it never gives up"}},
		{"unknown key", []string{"--scenario", "-"}, "traffic: {backlogs: 7}", 2, []string{"backlogs"}},
		{"no file", []string{"--scenario", "none.yaml"}, "", 2, []string{"none.yaml"}},
		{"no number", []string{"--messages", "1", "--outage", "20m"}, "", 2, []string{"such as 20m@1h"}},
		{"stray argument", []string{"--messages", "1", "constant(1s)"}, "", 2, []string{"pass a policy as --retry"}},
		{"nothing to compare", []string{"--messages", "1", "--compare"}, "", 2, []string{"nothing to compare"}},
		{"no policy", []string{"--messages", "1", "--compare", "sometimes"}, "", 2, []string{"neither a policy nor"}},
		{"no metric", []string{"--messages", "1", "--find", "speed>1"}, "", 2, []string{"no metric"}},
		{"no format", []string{"--messages", "1", "-o", "pdf"}, "", 2, []string{"use table, json, yaml"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := reprise(t, test.stdin, append([]string{"simulate"}, test.args...)...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d: %s", got.code, test.code, got.stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stdout+got.stderr, want) {
					t.Errorf("does not say %q:\n%s%s", want, got.stdout, got.stderr)
				}
			}
		})
	}
	for _, format := range []string{"json", "csv", "svg", "html"} {
		args := []string{"simulate", "--scenario", file, "-o", format}
		one, again := reprise(t, "", args...), reprise(t, "", args...)
		if one.code != 0 || one.stdout != again.stdout || len(one.stdout) < 1000 || format == "json" && !json.Valid([]byte(one.stdout)) {
			t.Errorf("%s: exit code %d and %d bytes, or two runs differ", format, one.code, len(one.stdout))
		}
	}
}

// TestSimulateInterrupted: Ctrl-C prints what was found until then.
func TestSimulateInterrupted(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "simulate", "--scenario", pipe, "-o", "json")
	file, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the program reads, and so heeds signals
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("traffic: {rate: 100}\nhorizon: 27h\n"); err != nil {
		t.Fatal(err)
	}
	file.Close()
	p.signal(syscall.SIGINT)
	code, output := p.wait()
	if code != 1 || !strings.Contains(output, "interrupted: the result is that until then") || !strings.Contains(output, `"stop": "interrupted"`) {
		t.Errorf("exit code %d, want 1, and what was found until then:\n%.2000s", code, output)
	}
}

// pictureCommand is a command of a page that draws a picture of the page.
var pictureCommand = regexp.MustCompile(`(?m)^(reprise simulate .*-o svg) > (\S+\.svg)$`)

// TestPicturesOfSimulate: the pictures of docs/simulate.md are those that its commands draw. With -update
// they are drawn again.
func TestPicturesOfSimulate(t *testing.T) {
	t.Parallel()
	const page = "docs/simulate.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, page)
	drawn := 0
	for _, m := range pictureCommand.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
		drawn++
		got := strings.TrimPrefix(s.play("$ "+m[1]+"\n"), "$ "+m[1]+"\n")
		path := filepath.Join(root, "docs", m[2])
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s is not what %q draws: draw it again with -update (%v)", path, m[1], err)
		}
		if !strings.Contains(string(text), "]("+m[2]+")") {
			t.Errorf("%s does not show %s", page, m[2])
		}
	}
	if drawn < 3 {
		t.Errorf("%s draws %d pictures, want 3 at least", page, drawn)
	}
}
