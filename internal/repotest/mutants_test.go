package repotest

import (
	"cmp"
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

	"github.com/reprise-sqs/reprise/internal/variants"
)

var mutantsRun = flag.String("mutants", "", "the mutants that TestMutants runs: their names, with commas, or all")

// mutant is a mistake that the consumer does not make, as a patch of it in
// testdata/mutants. Lines before the diff describe the mistake and what must notice it:
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

	changed map[string][]byte // by file: its text with the mistake
}

const (
	mutantsFolder = "testdata/mutants"
	fleetPackage  = "./internal/fleet" // of TestFleet, which checks the invariants
	mutantSeeds   = 60
)

// TestMutants checks the tests themselves: each mutant named by -mutants is run, and the invariant
// or test that its patch names must fail. Without the flag it checks that the patches apply, are
// Go, and name something that exists.
func TestMutants(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git, which applies the patches, is not installed: ", err)
	}
	paths, err := filepath.Glob(mutantsFolder + "/*.patch")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no patches in %s: %v", mutantsFolder, err)
	}
	all := make([]*mutant, len(paths))
	t.Run("apply", func(t *testing.T) {
		for i, path := range paths {
			t.Run(mutantName(path), func(t *testing.T) {
				t.Parallel()
				m := readMutant(t, path)
				m.apply(t)
				all[i] = m
			})
		}
	})
	var names []string
	var chosen []*mutant
	asked := strings.Split(*mutantsRun, ",")
	for i, path := range paths {
		name := mutantName(path)
		names = append(names, name)
		if m := all[i]; m != nil && (slices.Contains(asked, "all") || slices.Contains(asked, name)) {
			chosen = append(chosen, m)
		}
	}
	for _, name := range asked {
		if name != "" && name != "all" && !slices.Contains(names, name) {
			t.Errorf("-mutants names %q, which is not in %s; there are %q", name, mutantsFolder, names)
		}
	}
	if *mutantsRun != "" {
		runMutants(t, chosen)
	} else if _, _, err := variants.Merge(versions(slices.DeleteFunc(all, func(m *mutant) bool { return m == nil }))); err != nil {
		t.Error(err)
	}
}

func mutantName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".patch") }

// readMutant reads a patch and checks its header.
func readMutant(t *testing.T, path string) *mutant {
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
	m := &mutant{name: mutantName(path), patch: full, breaks: said("breaks"), seeds: mutantSeeds}
	m.test, m.pkg, _ = strings.Cut(said("test"), " ")
	if m.breaks != "" {
		m.pkg = fleetPackage
	}
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

// seer returns the problem of the invariant or test that m names, or "".
func (m *mutant) seer(t *testing.T) string {
	t.Helper()
	switch {
	case (m.breaks == "") == (m.test == ""):
		return "must say either breaks: or test: before its diff"
	case m.breaks != "" && !strings.Contains(readText(t, "internal/world/invariants.go"), fmt.Sprintf("= %q\n", m.breaks)):
		return fmt.Sprintf("says that it breaks %q, which is none of the invariants in internal/world/invariants.go", m.breaks)
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

// apply applies m to copies of the files that it changes.
func (m *mutant) apply(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, file := range m.files {
		copied := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, []byte(readText(t, file)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// One line of context is enough: a change next to a mistake does not remove it.
	git := exec.CommandContext(t.Context(), "git", "apply", "-C1", m.patch)
	git.Dir = dir
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // no repository's, whatever lies around the folder
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply any more: make the same mistake in the code as it is now, and keep the diff\n%s", m.patch, out)
	}
	m.changed = make(map[string][]byte)
	for _, file := range m.files {
		m.changed[file] = []byte(readText(t, filepath.Join(dir, file)))
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
