package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRounds: rounds grow to a minute, end with the time that is left, and the last is not a splinter.
func TestRounds(t *testing.T) {
	tests := []struct {
		n          int64
		took, left time.Duration
		want       int64
	}{
		{20, time.Second, time.Hour, 200},               // ten times as many at most
		{200, 10 * time.Second, time.Hour, 1200},        // a minute
		{1200, 40 * time.Second, time.Hour, 1800},       // faster than it was
		{1200, time.Minute, 30 * time.Second, 600},      // what is left
		{1200, time.Minute, 5 * time.Second, 0},         // less than a tenth
		{5, 10 * time.Minute, 50 * time.Second, 0},      // too slow
		{5, 10 * time.Minute, 5 * time.Minute, 1},       // one, although it takes longer than a minute
		{20, 0, time.Hour, 200},                         // no time at all
		{20, time.Second, 0, 0},                         // none left
		{20, time.Second, -time.Second, 0},              // long over
		{1 << 40, time.Second, time.Hour, 60 * 1 << 40}, // no overflow
	}
	for _, tt := range tests {
		if got := next(tt.n, tt.took, tt.left); tt.want < 1<<40 && got != tt.want || got < 0 {
			t.Errorf("after %d in %v, with %v left: %d, want %d", tt.n, tt.took, tt.left, got, tt.want)
		}
	}
}

// TestTurns: searches share the time by their parts, and what one does not use is divided among the next.
func TestTurns(t *testing.T) {
	end := time.Now().Add(time.Hour)
	turns := inTurn([]search{{name: "a", share: 1}, {name: "b", share: 2}, {name: "c", share: 3}}, end)
	for i, want := range []time.Duration{10 * time.Minute, 24 * time.Minute, time.Hour} { // none has used anything yet
		if got := turns[i].budget(); got > want || got < want-time.Second {
			t.Errorf("%s may take %v, want %v", turns[i].name, got, want)
		}
	}
	if late := inTurn([]search{{share: 1}}, time.Now().Add(-time.Hour)); late[0].budget() != 0 {
		t.Errorf("when the night is over, a search may take %v", late[0].budget())
	}
}

// TestSharesOfSearches: each search has a part of the night, and something to count.
func TestSharesOfSearches(t *testing.T) {
	for _, s := range searches(nil, nil) {
		if s.share <= 0 || s.unit == "" {
			t.Errorf("%s has the share %d, and counts %q", s.name, s.share, s.unit)
		}
	}
}

func TestWhatBroke(t *testing.T) {
	fleets := seeds{test: "TestFleet", pkg: "./internal/fleet", from: "fleet.from", count: "fleet.seeds"}
	machines := seeds{test: "TestMachines", pkg: "./internal/machines", from: "machines.from", count: "machines.seeds"}
	command := func(s seeds, seed string) string {
		return fmt.Sprintf("go test -timeout 0 -count=1 -run '^%s$' %s -%s=1 -%s=%s", s.test, s.pkg, s.count, s.from, seed)
	}
	tests := []struct {
		name string
		s    seeds
		text string
		want []string
	}{
		{"a fleet", fleets, "fleet_test.go:85: replay it: go test -run '^TestFleet$' -fleet.seeds=1 -fleet.sdk=1 -fleet.from=12 ./internal/fleet\n    --- FAIL: TestFleet/seeds/#01/12 (0.1s)\n", []string{command(fleets, "12")}},
		{"a panic in a fleet", fleets, "    --- FAIL: TestFleet/seeds/#00/77 (0.1s)\npanic: deadlock", []string{command(fleets, "77")}},
		{"two fleets of machines", machines, "seed 5, again with go test ./internal/machines -machines.from=5 -machines.seeds=1:\nseed 9, again with go test ./internal/machines -machines.from=9 -machines.seeds=1:", []string{command(machines, "5"), command(machines, "9")}},
		{"no seed", machines, "no fleet has noted [\"starts\"]", []string{"exit status 1"}},
	}
	for _, tt := range tests {
		if got := tt.s.broken(tt.text, errors.New("exit status 1")); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCounts(t *testing.T) {
	if got := ran("=== RUN\nTestMachines: 1200 seeds in 4.1 s, 292 a second, from 1; 7 runs of handlers\n"); got != 1200 {
		t.Errorf("%d seeds have run, want 1200", got)
	}
	if got := ran("TestFleet: 20 seeds from 12: 1.0 days, 9 messages, 9 runs in 1.0 s: 1.0 days a second\n"); got != 20 {
		t.Errorf("%d seeds have run, want 20", got)
	}
	if got := ran("panic: deadlock"); got != 0 {
		t.Errorf("%d seeds have run, want 0", got)
	}
	if got := inputs("fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 2)\nfuzz: elapsed: 4s, execs: 150 (50/sec), new interesting: 1 (total: 2)\n"); got != 150 {
		t.Errorf("%d inputs were tried, want 150", got)
	}
}

// TestEndedLate: a target that only ended too late has found nothing; one that names an input has.
func TestEndedLate(t *testing.T) {
	late := "--- FAIL: FuzzParse (1.10s)\n    context deadline exceeded\nFAIL\n"
	for text, want := range map[string]bool{late: true, late + "    Failing input written to testdata/fuzz/FuzzParse/1\n": false, "panic: index out of range": false} {
		if got := endedLate(text); got != want {
			t.Errorf("it ended late: %v, want %v:\n%s", got, want, text)
		}
	}
}

// TestSearchOfSeeds: a search runs rounds of seeds that follow each other from the first of the night, until its time
// is over or so many have broken, and counts and names what breaks.
func TestSearchOfSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: it compiles a package; run it without -short")
	}
	dir := t.TempDir()
	module := filepath.Join(dir, "fleet")
	for name, text := range map[string]string{
		"go.mod": "module fleet\ngo 1.26\n",
		"fleet_test.go": `package fleet
import ("flag"; "fmt"; "testing")
var from, seeds = flag.Int("fleet.from", 1, ""), flag.Int("fleet.seeds", 1, "")
func TestFleet(t *testing.T) {
	for seed := *from; seed < *from + *seeds; seed++ { if seed >= 1003 && seed < 1010 { t.Errorf("replay it: go test -fleet.from=%d", seed) } }
	fmt.Printf("TestFleet: %d seeds from %d\n", *seeds, *from)
}`,
	} {
		if err := os.MkdirAll(module, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(module)
	t.Setenv("GOWORK", "off")
	w := &worker{dir: dir, start: 1000, made: make(map[string]made)}
	s := seeds{"TestFleet", ".", "fleet.from", "fleet.seeds", 2}
	o := s.run(t.Context(), w, time.Now().Add(time.Hour)) // so many broken seeds end it
	if len(o.broke) < mostBroken || o.done < 4 {
		t.Fatalf("%d seeds have run, and %q broke; want %d broken ones at least", o.done, o.broke, mostBroken)
	}
	for i, command := range o.broke {
		if want := fmt.Sprintf("go test -timeout 0 -count=1 -run '^TestFleet$' . -fleet.seeds=1 -fleet.from=%d", 1003+i); command != want {
			t.Errorf("%q, want %q", command, want)
		}
	}
	if o := s.run(t.Context(), &worker{dir: dir, start: 5000, made: w.made}, time.Now()); o.done != 2 || len(o.broke) != 0 {
		t.Errorf("without any time: %+v, want one round", o)
	}
}

// TestResultPermits: a release needs a night on its commit, in which nothing broke, of this week and long enough.
func TestResultPermits(t *testing.T) {
	began := time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC)
	good := Result{Commit: "c1", Began: began, Asked: "6h0m0s", Rows: []Row{{Name: "fleets", Done: 9, Unit: "seeds"}, {Name: "lint"}}}
	tests := []struct {
		name           string
		change         func(*Result)
		commit, source string
		later          time.Duration
		want           string // a part of the error; "": none
	}{
		{"good", func(*Result) {}, "c1", "", time.Hour, ""},
		{"a week old", func(*Result) {}, "c1", "", 7 * 24 * time.Hour, ""},
		{"older", func(*Result) {}, "c1", "", 7*24*time.Hour + time.Second, "more than 7 days ago: run make night"},
		{"another commit", func(*Result) {}, "c2", "", time.Hour, "the night was on c1, and this is c2: run make night"},
		{"the commit of its release", func(*Result) {}, "c2", "c1", time.Hour, ""},
		{"the commit of another release", func(*Result) {}, "c3", "c2", time.Hour, "run make night"},
		{"changed", func(r *Result) { r.Changed = true }, "c1", "", time.Hour, "differ from the commit"},
		{"as short as may be", func(r *Result) { r.Asked = "2h0m0s" }, "c1", "", time.Hour, ""},
		{"shorter", func(r *Result) { r.Asked = "1h59m59s" }, "c1", "", time.Hour, "at least 2h0m0s are required: run make night"},
		{"of no known length", func(r *Result) { r.Asked = "" }, "c1", "", time.Hour, "at least 2h0m0s are required: run make night"},
		{"broke", func(r *Result) { r.Rows[0].Broke = []string{"go test x"} }, "c1", "", time.Hour, "mended first, and then run make night:\nfleets: go test x"},
		{"a note", func(r *Result) { r.Rows[1].Note = "no network" }, "c1", "", time.Hour, ""},
		{"empty", func(r *Result) { *r = Result{} }, "", "", 0, "it has no searches: run make night"},
	}
	for _, tt := range tests {
		r := good
		r.Rows = slices.Clone(good.Rows)
		tt.change(&r)
		file := filepath.Join(t.TempDir(), "night.json")
		if err := r.write(file); err != nil {
			t.Fatal(err)
		}
		got, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		err = got.permits(tt.commit, tt.source, began.Add(tt.later))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := read(filepath.Join(t.TempDir(), "absent.json")); err == nil || !strings.Contains(err.Error(), "run make night") {
		t.Errorf("no file: %v, want the command to run", err)
	}
	garbage := filepath.Join(t.TempDir(), "night.json")
	if err := os.WriteFile(garbage, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(garbage); err == nil || !strings.Contains(err.Error(), "run make night") {
		t.Errorf("a file that is none: %v, want the command to run", err)
	}
}

func TestTable(t *testing.T) {
	r := Result{Commit: "0123456789abcdef", Began: time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC), Asked: "6h0m0s", Took: "6h12m0s", Start: 7}
	r.add(search{name: "fleets", unit: "seeds"}, outcome{done: 300, took: time.Minute, broke: []string{"go test a|b", "go test c"}})
	r.add(search{name: "machines", unit: "seeds"}, outcome{done: 12, took: 0})
	r.add(search{name: "lint"}, outcome{took: 2 * time.Second, note: "it was short"})
	const want = `A night of 6h0m0s on 0123456789ab, 2026-11-27, seeds from 7; it took 6h12m0s.

| search | done | time (s) | a second | broke |
|---|---|---|---|---|
| fleets | 300 seeds | 60 | 5 | 2: go test a\|b; go test c |
| machines | 12 seeds | 0 |  | nothing |
| lint |  | 2 |  | nothing, but it was short |
`
	if got := r.table(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

// TestReleaseOf: the commit that make release puts on top counts as the one that it releases, and no other commit does.
func TestReleaseOf(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: ", err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"} {
		t.Setenv(name, value)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := git(context.Background(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	commit := func(subject string, files ...string) string {
		t.Helper()
		for _, name := range files {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(subject+fmt.Sprint(time.Now().UnixNano())), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run("add", "--all")
		run("commit", "--quiet", "--message", subject)
		return run("rev-parse", "HEAD")
	}
	run("init", "--quiet")
	commit("first", "go.mod", "main.go")
	if got := releaseOf(t.Context()); got != "" {
		t.Errorf("of the first commit: %q", got)
	}
	source := commit("retry: mend it", "main.go")
	if got := releaseOf(t.Context()); got != "" {
		t.Errorf("of a change: %q", got)
	}
	commit("release: v0.1.0", "go.mod", "adapters/x/go.mod", "adapters/x/go.sum")
	if got := releaseOf(t.Context()); got != source {
		t.Errorf("of a release: %q, want %q", got, source)
	}
	commit("release: v0.1.0", "cmd/go.sum")
	if got := releaseOf(t.Context()); got != source {
		t.Errorf("of a release in two commits: %q, want %q", got, source)
	}
	commit("modules: require newer ones", "go.mod")
	if got := releaseOf(t.Context()); got != "" {
		t.Errorf("of a change of requirements: %q", got)
	}
	commit("release: v0.2.0", "go.mod", "main.go")
	if got := releaseOf(t.Context()); got != "" {
		t.Errorf("of a release that changes code: %q", got)
	}
	if _, changed, err := checkout(t.Context()); err != nil || changed {
		t.Errorf("a clean checkout is changed: %v, %v", changed, err)
	}
	if err := os.WriteFile("new.go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := checkout(t.Context()); err != nil || !changed {
		t.Errorf("a checkout with another file is changed: %v, %v", changed, err)
	}
}
