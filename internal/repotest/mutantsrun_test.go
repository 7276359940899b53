package repotest

import (
	"cmp"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/variants"
)

// runMutants compiles all mutants into one binary of each package's tests, and runs the
// tests once without a mistake and once with each. Mutants that change more than bodies of
// functions are compiled one by one.
func runMutants(t *testing.T, mutants []*mutant) {
	began := time.Now()
	mutants, merged, alone := compileMerged(t, mutants)
	took := time.Since(began)
	count := 0
	t.Run("run", func(t *testing.T) {
		for _, pkg := range slices.Sorted(maps.Keys(merged)) {
			t.Run("no mistake in "+pkg, func(t *testing.T) {
				t.Parallel()
				runWithoutMistake(t, merged[pkg], mutants)
			})
		}
		for _, m := range mutants {
			if _, found := alone[m.name]; found {
				continue
			}
			count++
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				m.run(t, merged[m.pkg])
			})
		}
		for _, m := range mutants {
			reason, found := alone[m.name]
			if !found {
				continue
			}
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				fmt.Printf("%-36s in a build of its own: %s\n", m.name, reason)
				tests, err := compile(t, variants.Overlay(m.changed), m.pkg)
				if err != nil {
					t.Fatalf("it does not compile:\n%s", err)
				}
				m.run(t, tests[m.pkg])
			})
		}
	})
	fmt.Printf("%d mutants in %.0f s: %d in one build (%d packages' tests, %.0f s), %d in builds of their own\n",
		len(mutants), time.Since(began).Seconds(), count, len(merged), took.Seconds(), len(alone))
}

// testBinary is the compiled tests of a package.
type testBinary struct{ pkg, path string }

// compileMerged compiles the tests of all packages that mutants name, with the mutants.
// It fails t for mutants that do not compile, and returns the others, and the reasons of
// those that cannot be merged.
func compileMerged(t *testing.T, mutants []*mutant) (good []*mutant, tests map[string]testBinary, alone map[string]string) {
	t.Helper()
	for {
		merged, alone, err := variants.Merge(versions(mutants))
		if err != nil {
			t.Fatal(err)
		}
		var pkgs []string
		for _, m := range mutants {
			if _, found := alone[m.name]; !found {
				pkgs = append(pkgs, m.pkg)
			}
		}
		tests, err := compile(t, merged, pkgs...)
		if err == nil {
			return mutants, tests, alone
		}
		culprits := variants.Culprits(err)
		if len(culprits) == 0 {
			t.Fatalf("the mutants do not compile together:\n%s", err)
		}
		t.Errorf("%q do not compile:\n%s", culprits, err)
		mutants = slices.DeleteFunc(mutants, func(m *mutant) bool { return slices.Contains(culprits, m.name) })
	}
}

func versions(mutants []*mutant) []variants.Variant {
	var all []variants.Variant
	for _, m := range mutants {
		all = append(all, variants.Variant{Name: m.name, Files: m.changed})
	}
	return all
}

// compile compiles the tests of packages with other texts for some files.
func compile(t *testing.T, overlay variants.Overlay, pkgs ...string) (map[string]testBinary, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := overlay.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]testBinary)
	for i, pkg := range slices.Compact(slices.Sorted(slices.Values(pkgs))) {
		tests[pkg] = testBinary{pkg, filepath.Join(dir, fmt.Sprint(i, ".test"))}
		if err := variants.BuildTests(t.Context(), file, pkg, tests[pkg].path); err != nil {
			return nil, err
		}
	}
	return tests, nil
}

// command runs tests as a variant; "" is the original.
func (b testBinary) command(t *testing.T, variant string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(t.Context(), b.path, append(args, "-test.timeout=5m")...)
	cmd.Dir = b.pkg
	cmd.Env = append(cmd.Environ(), variants.Environment+"="+variant)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// runWithoutMistake checks that the tests for the mutants pass in the same binary without a
// mistake.
func runWithoutMistake(t *testing.T, tests testBinary, mutants []*mutant) {
	var names []string
	for _, m := range mutants {
		if m.pkg == tests.pkg {
			names = append(names, cmp.Or(m.test, "TestFleet"))
		}
	}
	slices.Sort(names)
	args := []string{"-test.run=^(" + strings.Join(slices.Compact(names), "|") + ")$"}
	if slices.Contains(names, "TestFleet") {
		args = append(args, fmt.Sprint("-fleet.seeds=", mutantSeeds))
	}
	if out, err := tests.command(t, "", args...); err != nil {
		t.Fatalf("the tests fail without a mistake, in the binary with the mutants (%v):\n%s", err, lastLines(out, 60))
	}
}

// run runs the test or fleets that must notice m, prints which of them did, and fails if none does.
func (m *mutant) run(t *testing.T, tests testBinary) {
	t.Helper()
	args := []string{"-test.run=^" + m.test + "$"}
	if m.breaks != "" {
		args = []string{"-test.run=^TestFleet$", "-fleet.until=" + m.breaks, fmt.Sprint("-fleet.seeds=", m.seeds)}
	}
	began := time.Now()
	out, err := tests.command(t, m.name, args...)
	took := time.Since(began).Seconds()
	switch {
	case err == nil:
		t.Fatalf("it survives %s: see CONTRIBUTING.md", m.tested())
	case m.test != "" && !strings.Contains(out, "--- FAIL: "+m.test+" "):
		t.Fatalf("%s does not fail, but:\n%s", m.test, lastLines(out, 40))
	case m.test != "":
		fmt.Printf("%-36s %5.1f s             %s\n", m.name, took, m.test)
		return
	}
	broken := regexp.MustCompile(`seed (\d+) breaks: (.*)`).FindAllStringSubmatch(out, -1)
	at := slices.IndexFunc(broken, func(b []string) bool { return b[2] == m.breaks })
	if at < 0 {
		t.Fatalf("it does not break %q in %s, but:\n%s", m.breaks, m.tested(), lastLines(out, 40))
	}
	fmt.Printf("%-36s %5.1f s  seed %4s  %s\n", m.name, took, broken[at][1], m.breaks)
}

// tested is the result of the tests with m.
func (m *mutant) tested() string { return cmp.Or(m.test, fmt.Sprintf("%d fleets", m.seeds)) }

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
