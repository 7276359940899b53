package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// searches are all searches of a night, those first that may end before their time is over.
func searches(strangers, mutated []string) []search {
	ofSeeds := func(name string, share int, s seeds) search {
		return search{name, "seeds", share, s.run, tests(nil, s.pkg)}
	}
	return []search{
		{"mistakes by rule that no test may miss", "mistakes", 4, mutation(mutated).run, nil},
		{"kills of the program under load", "kills", 3, kills, tests(nil, "./cmd/reprise")},
		{"kills of server, consumers and target", "messages", 3, chaos{"soak", "TestSoak", "REPRISE_SOAK"}.run, nil},
		{"clients of five languages at once", "messages", 3, chaos{"crowd", "TestCrowd", "REPRISE_CROWD"}.run, nil},
		{"fuzzing of what strangers can write", "inputs", 6, fuzzing(strangers).run, tests(fuzzed, strangers...)},
		ofSeeds("damage to a data directory", 2, seeds{"TestEveryDamage", "./cmd/reprise/internal/journal", "damage.from", "damage.seeds", 10}),
		ofSeeds("requests through the four doors", 2, seeds{"TestDoors", "./sqsserver", "doors.from", "doors.seeds", 100}),
		ofSeeds("fleets of plain consumers", 2, seeds{"TestPlainFleets", "./internal/world", "world.from", "world.seeds", 500}),
		ofSeeds("fleets through the SDK", 2, seeds{"TestFleetOfSDKs", "./internal/fleet", "fleet.from", "fleet.sdk", 5}),
		ofSeeds("fleets", 8, seeds{"TestFleet", "./internal/fleet", "fleet.from", "fleet.seeds", 20}),
		ofSeeds("a stranger's scenarios", 8, seeds{"TestStranger", "./internal/stranger", "stranger.from", "stranger.seeds", 50}),
		ofSeeds("fleets of machines", 8, seeds{"TestMachines", "./internal/machines", "machines.from", "machines.seeds", 200}),
	}
}

// fuzzed are the flags that have tests note which code an input reaches.
var fuzzed = []string{"-fuzz=."}

// checks are what a change's gate leaves out and is no search.
func checks() []search {
	return []search{
		{name: "known vulnerabilities", run: func(ctx context.Context, w *worker, _ time.Time) (o outcome) {
			text, err := w.output(ctx, "vulncheck", "", nil, "make", "--no-print-directory", "vulncheck")
			if m := regexp.MustCompile(`.*fetching vulnerabilities.*`).FindString(text); err != nil && m != "" {
				o.note = "the database of vulnerabilities could not be had: " + m
			} else if err != nil {
				o.failed("%v", err)
			}
			return o
		}},
		{name: "lint of all modules", run: command("lint", "make", "--no-print-directory", "lint")},
		{name: "tests of bench", run: command("tests", "go", "test", "-race", "-vet=off", "-timeout=20m", "./bench/...")},
		{name: "tests that start processes", run: command("driven", "make", "--no-print-directory", "driven", "DETECTOR=-race")}, // those of deploy/ among them
		{name: "benchmarks", run: command("bench", "make", "--no-print-directory", "bench", "BENCHTIME=20ms")},
	}
}

// command is a check that a program makes.
func command(name string, args ...string) func(context.Context, *worker, time.Time) outcome {
	return func(ctx context.Context, w *worker, _ time.Time) (o outcome) {
		if _, err := w.output(ctx, name, "", nil, args...); err != nil {
			o.failed("%v", err)
		}
		return o
	}
}

// mutation is the packages in which mistakes are made by rule.
type mutation []string

// run examines the packages in a random order, until the time is over: that ends what is under way, which does not
// count.
func (packages mutation) run(ctx context.Context, w *worker, until time.Time) (o outcome) {
	tool := filepath.Join(w.dir, "mutation") // its time ends it: what go run starts would go on
	if _, err := w.output(ctx, "build", "", nil, "go", "build", "-o", tool, "./internal/mutation"); err != nil {
		o.failed("%v", err)
		return o
	}
	examined := 0
	random := rand.New(rand.NewPCG(w.start, 0))
	packages = slices.Clone(packages)
	random.Shuffle(len(packages), func(i, j int) { packages[i], packages[j] = packages[j], packages[i] })
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for _, pkg := range packages {
		text, err := w.output(within, "mutation", "", nil, tool, pkg)
		if within.Err() != nil {
			break
		}
		if err != nil {
			o.failed("%v", err)
		}
		if m := regexp.MustCompile(`(?m)^\S+: (\d+) mutants, `).FindStringSubmatch(text); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64) // digits, as matched
			o.done += n
		}
		examined++
	}
	if examined < len(packages) {
		o.note = fmt.Sprintf("there was time for %d of %d packages", examined, len(packages))
	}
	return o
}

// kills kills the program under load, and audits what is left.
func kills(ctx context.Context, w *worker, until time.Time) (o outcome) {
	binary, err := w.test(ctx, "./cmd/reprise")
	if err != nil {
		o.failed("%v", err)
		return o
	}
	for n := int64(5); n > 0 && ctx.Err() == nil && len(o.broke) == 0; {
		began := time.Now()
		_, err := w.output(ctx, "kills", "./cmd/reprise", []string{fmt.Sprint("REPRISE_KILLS=", n)}, binary, "-test.timeout=0", "-test.run=^TestKilled$", "-test.v")
		if err != nil && ctx.Err() == nil {
			o.failed("make crash N=%d: %v", n, err)
			break
		}
		o.done += n
		n = next(n, time.Since(began), time.Until(until))
	}
	return o
}

// leastChaos is the shortest time that these tests accept.
const leastChaos = 10 * time.Second

// chaos is a test of a whole system whose processes are killed at random.
type chaos struct{ target, test, variable string }

func (c chaos) run(ctx context.Context, w *worker, until time.Time) (o outcome) {
	binary, err := w.test(ctx, "./cmd/reprise")
	if err != nil {
		o.failed("%v", err)
		return o
	}
	lasting := max(leastChaos, time.Until(until).Round(time.Second))
	text, err := w.output(ctx, c.target, "./cmd/reprise", []string{c.variable + "=" + lasting.String()}, binary, "-test.timeout=0", "-test.run=^"+c.test+"$", "-test.v")
	if err != nil && ctx.Err() == nil {
		o.failed("make %s DURATION=%v: %v", c.target, lasting, err)
	}
	if m := regexp.MustCompile(`(\d+) sends acknowledged`).FindStringSubmatch(text); m != nil {
		o.done, _ = strconv.ParseInt(m[1], 10, 64) // digits, as matched
	}
	return o
}

// fuzzing is the packages that are fuzzed.
type fuzzing []string

// run gives each target an equal part of the time, after all have been compiled. What is found to reach more code is
// kept where go test -fuzz keeps it, for the next night.
func (packages fuzzing) run(ctx context.Context, w *worker, until time.Time) (o outcome) {
	cache, err := w.output(ctx, "env", "", nil, "go", "env", "GOCACHE")
	if err != nil {
		o.failed("%v", err)
		return o
	}
	type target struct{ pkg, binary, name string }
	var targets []target
	for _, pkg := range packages {
		binary, err := w.test(ctx, pkg, fuzzed...)
		if err != nil {
			o.failed("%v", err)
			continue
		}
		list, err := w.output(ctx, "list", pkg, nil, binary, "-test.list=^Fuzz")
		if err != nil {
			o.failed("%v", err)
		}
		for name := range strings.FieldsSeq(list) {
			if strings.HasPrefix(name, "Fuzz") {
				targets = append(targets, target{pkg, binary, name})
			}
		}
	}
	for i, t := range targets {
		if ctx.Err() != nil {
			break
		}
		lasting := max(time.Second, (time.Until(until) / time.Duration(len(targets)-i)).Round(time.Second))
		text, err := w.output(ctx, t.name, t.pkg, nil, t.binary, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+lasting.String(),
			"-test.fuzzminimizetime=10x", "-test.fuzzcachedir="+filepath.Join(strings.TrimSpace(cache), "fuzz", "night", t.pkg), "-test.paniconexit0")
		o.done += inputs(text)
		if err != nil && ctx.Err() == nil && !endedLate(text) {
			o.failed("%s in %s: keep its input in testdata/fuzz/%s: %v", t.name, t.pkg, t.name, err)
		}
	}
	return o
}

// endedLate reports whether a target failed only since its workers did not end with its time, on a busy machine: it has
// found no input then.
func endedLate(text string) bool {
	return strings.Contains(text, "context deadline exceeded") && !strings.Contains(text, "Failing input written to")
}

// inputs returns how many inputs a target says that it tried.
func inputs(text string) (n int64) {
	for _, m := range regexp.MustCompile(`, execs: (\d+) `).FindAllStringSubmatch(text, -1) {
		n, _ = strconv.ParseInt(m[1], 10, 64) // digits, as matched; the last is the whole
	}
	return n
}
