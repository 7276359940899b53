package reprise_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var mutantsRun = flag.String("mutants", "", "the mutants that TestMutants runs: their names, with commas, or all")

// mutant is a mistake that the consumer does not make, as a patch of it in
// testdata/mutants. Lines before the diff say what the mistake is and who sees it:
//
//	breaks: the words of an invariant of the fleets
//	seeds: how many fleets that takes at most; default: 60
//
// or, where no fleet can see it,
//
//	test: a test's name, and its package if that is not the root
type mutant struct {
	name   string
	patch  string // absolute path
	files  []string
	breaks string
	seeds  int
	test   string
	pkg    string
}

const (
	mutantsFolder = "testdata/mutants"
	mutantSeeds   = 60
)

// TestMutants shows that the tests bite: each mutant named by -mutants is run, and
// what its patch names must fail. Without the flag it checks that the patches
// apply and name something that exists.
func TestMutants(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git, which applies the patches, is not installed: ", err)
	}
	paths, err := filepath.Glob(mutantsFolder + "/*.patch")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no patches in %s: %v", mutantsFolder, err)
	}
	var names []string
	for _, path := range paths {
		m := readMutant(t, path)
		names = append(names, m.name)
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay := m.apply(t)
			if asked := strings.Split(*mutantsRun, ","); slices.Contains(asked, "all") || slices.Contains(asked, m.name) {
				m.run(t, overlay)
			}
		})
	}
	for name := range strings.SplitSeq(*mutantsRun, ",") {
		if name != "" && name != "all" && !slices.Contains(names, name) {
			t.Errorf("-mutants names %q, which is not in %s; there are %q", name, mutantsFolder, names)
		}
	}
}

// readMutant reads a patch and checks what it says of itself.
func readMutant(t *testing.T, path string) mutant {
	t.Helper()
	text := readText(t, path)
	header, diff, found := strings.Cut(text, "\n--- a/")
	if !found {
		t.Fatalf("%s holds no diff: make it with diff -u, or git diff", path)
	}
	said := func(key string) string {
		_, rest, _ := strings.Cut("\n"+header, "\n"+key+": ")
		value, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(value)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), patch: full, breaks: said("breaks"), seeds: mutantSeeds}
	m.test, m.pkg, _ = strings.Cut(said("test"), " ")
	m.pkg = cmp.Or(m.pkg, ".")
	if s := said("seeds"); s != "" {
		if m.seeds, err = strconv.Atoi(s); err != nil || m.seeds < 1 {
			t.Fatalf("%s says seeds: %s, which is no count", path, s)
		}
	}
	for _, file := range regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`).FindAllStringSubmatch(diff, -1) {
		m.files = append(m.files, file[1])
	}
	if problem := m.seer(t); problem != "" {
		t.Fatalf("%s %s", path, problem)
	}
	return m
}

// seer returns what is wrong with what m says of who sees it; empty if nothing is.
func (m mutant) seer(t *testing.T) string {
	t.Helper()
	switch {
	case (m.breaks == "") == (m.test == ""):
		return "must say either breaks: or test: before its diff"
	case m.breaks != "" && !strings.Contains(readText(t, "fleet_invariants_test.go"), fmt.Sprintf("= %q\n", m.breaks)):
		return fmt.Sprintf("says that it breaks %q, which is none of the invariants in fleet_invariants_test.go", m.breaks)
	case m.test != "":
		files, _ := filepath.Glob(m.pkg + "/*_test.go") // the pattern is good
		for _, file := range files {
			if strings.Contains(readText(t, file), "\nfunc "+m.test+"(") {
				return ""
			}
		}
		return fmt.Sprintf("names the test %s, which is not in %s", m.test, m.pkg)
	}
	return ""
}

// apply applies m to copies of the files that it changes, and returns the overlay
// which puts those in the place of the originals.
func (m mutant) apply(t *testing.T) (overlay string) {
	t.Helper()
	dir := t.TempDir()
	var replaced struct{ Replace map[string]string }
	replaced.Replace = make(map[string]string)
	for _, file := range m.files {
		original, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		mutated := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(mutated), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(mutated, []byte(readText(t, file)), 0o644); err != nil {
			t.Fatal(err)
		}
		replaced.Replace[original] = mutated
	}
	// One line of context is enough: a change beside a mistake does not unmake it.
	git := exec.CommandContext(t.Context(), "git", "apply", "-C1", m.patch)
	git.Dir = dir
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // no repository's, whatever lies around the folder
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply any more: make the same mistake in the code as it is now, and keep the diff\n%s", m.patch, out)
	}
	text, err := json.Marshal(replaced)
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// run runs what is to see m, prints what did, and fails if nothing does.
func (m mutant) run(t *testing.T, overlay string) {
	t.Helper()
	args := []string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-v", "-timeout=10m"}
	if m.test != "" {
		args = append(args, "-run", "^"+m.test+"$", m.pkg)
	} else {
		args = append(args, "-run", "^TestFleet$", ".", "-fleet.until", m.breaks, "-fleet.seeds", fmt.Sprint(m.seeds))
	}
	began := time.Now()
	output, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	out, took := string(output), time.Since(began)
	switch {
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		t.Fatalf("it does not compile:\n%s", out)
	case err == nil:
		t.Fatalf("it survives %s: see CONTRIBUTING.md", m.tested())
	case m.test != "" && !strings.Contains(out, "--- FAIL: "+m.test+" "):
		t.Fatalf("%s does not fail, but:\n%s", m.test, lastLines(out, 40))
	case m.test != "":
		fmt.Printf("%-36s %4.0f s           %s\n", m.name, took.Seconds(), m.test)
		return
	}
	broken := regexp.MustCompile(`seed (\d+) breaks: (.*)`).FindAllStringSubmatch(out, -1)
	at := slices.IndexFunc(broken, func(b []string) bool { return b[2] == m.breaks })
	if at < 0 {
		t.Fatalf("it does not break %q in %s, but:\n%s", m.breaks, m.tested(), lastLines(out, 40))
	}
	fmt.Printf("%-36s %4.0f s  seed %4s  %s\n", m.name, took.Seconds(), broken[at][1], m.breaks)
}

// tested is what was run of m.
func (m mutant) tested() string { return cmp.Or(m.test, fmt.Sprintf("%d fleets", m.seeds)) }

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
