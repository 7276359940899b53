// Mutation makes small mistakes in pure packages, one at a time and by rule, and runs
// each package's own tests against every one: a comparison is negated or moved by one, a
// sum becomes a difference, a condition's "and" an "or", a statement is left out.
//
//	go run ./internal/mutation ./internal/breaker ./retry
//	go run ./internal/mutation -files begin.go,admit.go ./internal/consumer
//	go run ./internal/mutation -also . ./internal/consumer
//
// All mistakes of a package are compiled into one test binary, and a variable of the
// environment selects one, so that a mutant costs no build. It costs runs of the tests that
// reach it, the shortest first, until one fails. A mutant that no test notices survives. Survivors that change nothing are named, with
// the reason, in testdata/survivors in a file of the package's name; all others count
// against the share that must be killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/variants"
)

var (
	least = flag.Float64("least", 90, "the percentage of mutants that must be killed, those explained left out")
	list  = flag.Bool("list", false, "print the mutants, and run none")
	also  = flag.String("also", "", "a package that imports it, whose tests run too against the mutants that its own tests do not kill")
	quick = flag.Duration("quick", 300*time.Millisecond, "with -also and -together: tests that take longer are left out")
	files = flag.String("files", "", "mutate only these files, by their names with commas between (all)")

	only     = flag.String("run", "^(Test|Fuzz|Example)", "run only the package's tests that match")
	together = flag.Bool("together", false, "run the quick tests that reach a mutant in one process: for packages of many tests")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: mutation [flags] PACKAGE...\nMakes mistakes in packages, and runs their tests against each.\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	failed := false
	for _, pattern := range flag.Args() {
		if err := examine(os.Stdout, pattern); err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "mutation: %s: %v\n", pattern, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// examine runs the mutants of one package, and prints the survivors.
func examine(w io.Writer, pattern string) error {
	p, err := load(pattern)
	if err != nil {
		return err
	}
	mutants := p.mutate()
	if *list {
		for _, m := range mutants {
			fmt.Fprintf(w, "%s:%d %s\n", filepath.Base(m.file), m.line, m.name)
		}
		return nil
	}
	reasons, err := readReasons(p)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	overlay, err := p.overlay().Write(dir)
	if err != nil {
		return err
	}
	own, err := build(overlay, dir, p.ImportPath, p.Dir)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := own.baseline(dir); err != nil {
		return err
	}
	fates := make([]fate, len(mutants))
	if *together {
		own.leaveOutSlow()
		each(mutants, fates, own.together)
	} else {
		each(mutants, fates, own.one)
	}
	if *also != "" {
		if err := another(overlay, dir, mutants, fates); err != nil {
			return err
		}
	}
	return report(w, p, mutants, reasons, fates, time.Since(began))
}

// another runs the quick tests of the package of -also against the mutants that are not killed.
func another(overlay, dir string, mutants []mutant, fates []fate) error {
	out, err := goList("-f", "{{.ImportPath}}\t{{.Dir}}", *also)
	if err != nil {
		return err
	}
	path, folder, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	dir = filepath.Join(dir, "also")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r, err := build(overlay, dir, path, folder)
	if err != nil {
		return err
	}
	if err := r.baseline(dir); err != nil {
		return err
	}
	r.leaveOutSlow()
	left := make([]mutant, 0, len(mutants))
	numbers := make([]int, 0, len(mutants))
	for i, m := range mutants {
		if fates[i] != killed {
			left, numbers = append(left, m), append(numbers, i)
		}
	}
	outcomes := make([]fate, len(left))
	each(left, outcomes, r.together)
	for i, n := range numbers {
		if outcomes[i] != unreached {
			fates[n] = outcomes[i]
		}
	}
	return nil
}

// fate is the outcome of a mutant.
type fate int

const (
	killed fate = iota
	survived
	unreached // no test runs the statement
)

// runner is a test binary with all mutants of a package in it.
type runner struct {
	binary, dir string
	tests       []test // that reach a mutant, the shortest first
}

// test is a test of the package, and what it does without a mistake.
type test struct {
	name    string
	reaches map[int]bool // the numbers of mutants
	asked   int          // how often mutated places asked whether they are wrong
	took    time.Duration
}

// build makes the binary of the tests of a package, which is in folder, with the mutants of overlay.
func build(overlay, dir, path, folder string) (*runner, error) {
	r := &runner{binary: filepath.Join(dir, "tests"), dir: folder}
	if err := variants.BuildTests(context.Background(), overlay, path, r.binary); err != nil {
		return nil, fmt.Errorf("building its tests with the mutants: %w", err)
	}
	if _, err := os.Stat(r.binary); err != nil {
		return nil, errors.New("it has no tests, so every mutant survives")
	}
	return r, nil
}

// baseline runs each test without a mistake.
func (r *runner) baseline(dir string) error {
	file := filepath.Join(dir, "seen")
	names, err := r.command(context.Background(), []string{seenName + "=" + file}, "-test.list", *only).Output()
	if err != nil {
		return fmt.Errorf("listing its tests: %w", err)
	}
	for _, name := range strings.Fields(string(names)) {
		t, err := r.observe(name, file)
		if err != nil {
			return err
		}
		if len(t.reaches) > 0 {
			r.tests = append(r.tests, t)
		}
	}
	slices.SortFunc(r.tests, func(a, b test) int { return a.asked - b.asked })
	return nil
}

// observe runs a test without a mistake; file is where it notes what it reaches.
func (r *runner) observe(name, file string) (test, error) {
	t := test{name: name, reaches: make(map[int]bool)}
	began := time.Now()
	if out, err := r.command(context.Background(), []string{seenName + "=" + file}, "-test.run", exactly(name)).CombinedOutput(); err != nil {
		return t, fmt.Errorf("%s fails without a mistake: %w\n%s", name, err, out)
	}
	t.took = time.Since(began)
	text, err := os.ReadFile(file) //nolint:gosec // G304: in a folder of ours
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(string(text)) {
		var what string
		var n int
		if _, err := fmt.Sscan(line, &what, &n); err != nil {
			return t, err
		}
		if what == "asked" {
			t.asked = n
		} else {
			t.reaches[n] = true
		}
	}
	return t, nil
}

func (r *runner) command(ctx context.Context, variables []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, append([]string{"-test.short", "-test.failfast"}, args...)...) //nolint:gosec // G204: it was built above
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), variables...)
	return cmd
}

// exactly is a pattern that matches the test alone.
func exactly(name string) string { return "^" + name + "$" }

// each finds the fate of each mutant by its number, of as many at once as there are processors.
func each(mutants []mutant, fates []fate, one func(number int) fate) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				fates[i] = one(mutants[i].number)
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	wg.Wait()
}

// one runs the tests that reach a mistake, until one fails.
func (r *runner) one(number int) fate {
	outcome := unreached
	for _, t := range r.tests {
		if t.reaches[number] {
			if outcome = survived; !r.passes(t, number) {
				return killed
			}
		}
	}
	return outcome
}

func (r *runner) leaveOutSlow() {
	r.tests = slices.DeleteFunc(r.tests, func(t test) bool { return t.took > *quick })
}

// together is one, with all tests in one process: for tests that take less time than to start it.
func (r *runner) together(number int) fate {
	var all test
	var names []string
	for _, t := range r.tests {
		if t.reaches[number] {
			names = append(names, t.name)
			all.asked += t.asked
			all.took += t.took
		}
	}
	if names == nil {
		return unreached
	}
	if all.name = "(" + strings.Join(names, "|") + ")"; r.passes(all, number) {
		return survived
	}
	return killed
}

// passes runs a test with a mistake. A test that hangs fails: it runs much further than without the mistake
// or, where it runs through no mutated place, takes much longer.
func (r *runner) passes(t test, number int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+10*t.took)
	defer cancel()
	variables := []string{fmt.Sprintf("%s=%d", mutantName, number), fmt.Sprintf("%s=%d", limitName, 1000+10*t.asked)}
	return r.command(ctx, variables, "-test.run", exactly(t.name)).Run() == nil
}

// report prints the survivors, and returns an error if there are too many.
func report(w io.Writer, p *pack, mutants []mutant, reasons map[string]string, fates []fate, took time.Duration) error {
	dead, explained, counted := 0, 0, 0
	for i, m := range mutants {
		_, known := reasons[m.name]
		delete(reasons, m.name)
		switch {
		case fates[i] == killed && known:
			return fmt.Errorf("%s is killed: remove its line from %s", m.name, p.reasonsFile())
		case fates[i] == killed:
			dead++
			counted++
		case known:
			explained++
		default:
			counted++
			how := "survives"
			if fates[i] == unreached {
				how = "is reached by no test"
			}
			fmt.Fprintf(w, "%s:%d %s %s\n", filepath.Base(m.file), m.line, m.name, how)
		}
	}
	for name := range reasons {
		if *files != "" {
			break // it may be a mutant of another file
		}
		return fmt.Errorf("%s names %q, which is not a mutant any more: remove the line", p.reasonsFile(), name)
	}
	share := 100.0
	if counted > 0 {
		share = 100 * float64(dead) / float64(counted)
	}
	fmt.Fprintf(w, "%s: %d mutants, %d killed (%.1f %%), %d survive, %d more change nothing, in %.0f s\n", p.name(), len(mutants), dead, share, counted-dead, explained, took.Seconds())
	if share < *least {
		return fmt.Errorf("%.1f %% of the mutants are killed, want %g: write the test that notices a survivor, or say in %s why it changes nothing", share, *least, p.reasonsFile())
	}
	return nil
}
