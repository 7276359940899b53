package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// search is a row of the night: a search, which takes as long as it may, or a check, which takes as long as it takes.
type search struct {
	name  string
	unit  string // what it counts; empty for a check
	share int    // its part of the night, among the parts of all
	run   func(ctx context.Context, w *worker, until time.Time) outcome
	// compile is what can be compiled before the time begins: a short night would do little else. What does not
	// compile fails the search.
	compile func(ctx context.Context, w *worker)
}

// outcome is what a search did.
type outcome struct {
	done  int64
	took  time.Duration
	broke []string
	note  string // what a reader has to know although nothing broke
}

// failed adds what broke.
func (o *outcome) failed(format string, args ...any) {
	o.broke = append(o.broke, fmt.Sprintf(format, args...))
}

// timed is a search with the end of the whole night, and the parts of the searches from this one on.
type timed struct {
	search
	end   time.Time
	parts int
}

// budget is how long the search may take now: its part of the time that is left. What those before it have not used
// is divided among those that follow.
func (s timed) budget() time.Duration {
	return max(0, time.Until(s.end)) * time.Duration(s.share) / time.Duration(s.parts)
}

// inTurn divides the time until end among searches.
func inTurn(all []search, end time.Time) (turns []timed) {
	parts := 0
	for _, s := range slices.Backward(all) {
		parts += s.share
		turns = append(turns, timed{s, end, parts})
	}
	slices.Reverse(turns)
	return turns
}

// worker runs the programs of searches.
type worker struct {
	dir   string // of logs and binaries
	start uint64 // the first seed
	made  map[string]made
}

// made is a binary of tests, or why there is none.
type made struct {
	file string
	err  error
}

func (w *worker) carryOut(ctx context.Context, s timed) outcome {
	return w.timed(func() outcome { return s.run(ctx, w, time.Now().Add(s.budget())) })
}

func (w *worker) once(ctx context.Context, s search) outcome {
	return w.timed(func() outcome { return s.run(ctx, w, time.Time{}) })
}

func (w *worker) timed(run func() outcome) outcome {
	began := time.Now()
	o := run()
	o.took = time.Since(began)
	for _, b := range o.broke {
		fmt.Fprintf(os.Stdout, "BROKE: %s\n", b)
	}
	return o
}

// output runs a program in a folder, and returns all that it prints, which it keeps in a file, too. An error names the
// file.
func (w *worker) output(ctx context.Context, name, folder string, env []string, args ...string) (string, error) {
	log, err := os.CreateTemp(w.dir, name+"-*.log")
	if err != nil {
		return "", err
	}
	defer log.Close() //nolint:errcheck // the output is in text, too
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	cmd.Stdout = io.MultiWriter(&text, log)
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = 10 * time.Second // for those that it has started
	if err := cmd.Run(); err != nil {
		return text.String(), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, log.Name())
	}
	return text.String(), nil
}

// test compiles the tests of a package, the first time that it is asked for, and returns the file.
func (w *worker) test(ctx context.Context, pkg string, flags ...string) (file string, err error) {
	key := strings.Join(append(flags, pkg), " ")
	if m, known := w.made[key]; known {
		return m.file, m.err
	}
	file = filepath.Join(w.dir, fmt.Sprintf("tests-%d", len(w.made)))
	_, err = w.output(ctx, "build", "", nil, append(append([]string{"go", "test", "-vet=off", "-c", "-o", file}, flags...), pkg)...)
	w.made[key] = made{file, err}
	return file, err
}

// tests compiles the tests of packages, as test does.
func tests(flags []string, packages ...string) func(context.Context, *worker) {
	return func(ctx context.Context, w *worker) {
		for _, pkg := range packages {
			_, _ = w.test(ctx, pkg, flags...) // the search asks again, and gets the error
		}
	}
}

// seeds searches with a test that runs a number of seeds from a first one on.
type seeds struct {
	test, pkg   string
	from, count string // names of flags
	first       int64  // how many the first round runs
}

// mostBroken ends a search: what else would break is seldom another mistake.
const mostBroken = 5

// round is how long a round of seeds takes, about. Memory of a round is given back at its end.
const round = time.Minute

func (s seeds) run(ctx context.Context, w *worker, until time.Time) (o outcome) {
	binary, err := w.test(ctx, s.pkg)
	if err != nil {
		o.failed("%v", err)
		return o
	}
	from, n := w.start, s.first
	for n > 0 && ctx.Err() == nil && len(o.broke) < mostBroken {
		began := time.Now()
		text, err := w.output(ctx, s.test, s.pkg, []string{"GOGC=800"}, binary, "-test.timeout=0", "-test.run=^"+s.test+"$", fmt.Sprintf("-%s=%d", s.from, from), fmt.Sprintf("-%s=%d", s.count, n))
		if err != nil && ctx.Err() == nil {
			o.broke = append(o.broke, s.broken(text, err)...)
		}
		o.done += ran(text)
		from += uint64(n)
		n = next(n, time.Since(began), time.Until(until))
	}
	return o
}

// ran returns how many seeds a round says that it ran.
func ran(text string) (n int64) {
	if m := regexp.MustCompile(`(?m)^Test\w+: (\d+) seeds`).FindStringSubmatch(text); m != nil {
		n, _ = strconv.ParseInt(m[1], 10, 64) // digits, as matched
	}
	return n
}

// next returns how many seeds the next round runs, when one of n took so long and so much time is left: as many as
// take about a minute, or what is left. None begins without time for a tenth of the round before.
func next(n int64, took, left time.Duration) int64 {
	took = max(took, time.Millisecond)
	rate := float64(n) / took.Seconds()
	if left <= 0 || rate*left.Seconds() < float64(n)/10 && left < round {
		return 0
	}
	return max(1, min(int64(rate*min(left, round).Seconds()), 10*n))
}

// broken returns a command for each seed that broke, or the round that did.
func (s seeds) broken(text string, err error) (commands []string) {
	var seen []string
	for _, m := range regexp.MustCompile(`-`+regexp.QuoteMeta(s.from)+`=(\d+)|--- FAIL: `+s.test+`/seeds/#\d+/(\d+) `).FindAllStringSubmatch(text, -1) {
		if seed := m[1] + m[2]; !slices.Contains(seen, seed) {
			seen = append(seen, seed)
			commands = append(commands, fmt.Sprintf("go test -timeout 0 -count=1 -run '^%s$' %s -%s=1 -%s=%s", s.test, s.pkg, s.count, s.from, seed))
		}
	}
	if len(commands) == 0 {
		return []string{err.Error()}
	}
	return commands
}
