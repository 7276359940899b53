package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// examineSample runs the mutants of a small package, with survivors explained as given.
func examineSample(t *testing.T, explained string) (output, problem string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/sample")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	if err := os.MkdirAll("internal/mutation/testdata/survivors", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("internal/mutation/testdata/survivors/sample.txt", []byte(explained), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := examine(&out, "."); err != nil {
		problem = err.Error()
	}
	return regexp.MustCompile(` in \d+ s\n`).ReplaceAllString(out.String(), "\n"), problem
}

// TestSample: mutants that a test notices are killed, among them one that makes it run for ever and
// one in what runs before the tests; the others are named, unless they are explained, and what no test runs is
// said to be so.
func TestSample(t *testing.T) {
	output, problem := examineSample(t, "note: notes = append(notes, i) -> nothing -- nobody reads the notes\n")
	const want = `sample.go:16 Level: i == 3 -> i != 3 survives
sample.go:19 Level: note(i) -> nothing survives
sample.go:32 Idle: a <= b || a*2 == b -> a <= b && a*2 == b is reached by no test
sample.go:32 Idle: a <= b -> a > b is reached by no test
sample.go:32 Idle: a <= b -> a < b is reached by no test
sample.go:32 Idle: a*2 == b -> a*2 != b is reached by no test
sample.go:32 Idle: a*2 -> a / 2 is reached by no test
sample: 23 mutants, 15 killed (68.2 %), 7 survive, 1 more change nothing,
`
	if got := strings.TrimRight(output, "\n") + "\n"; got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	if want := "68.2 % of the mutants are killed, want 90: write the test that notices a survivor"; !strings.HasPrefix(problem, want) {
		t.Errorf("it says %q, want %q", problem, want)
	}
}

// TestExplanationsAreTrue: what is said to change nothing exists, and survives.
func TestExplanationsAreTrue(t *testing.T) {
	for explained, want := range map[string]string{
		"note: gone -> nothing -- it was there once\n":             `names "note: gone -> nothing", which is not a mutant any more`,
		"Level: level++ -> nothing -- somebody thought so\n":       "Level: level++ -> nothing is killed: remove its line from",
		"note: notes = append(notes, i) -> nothing\n":              "has no reason",
		"note: notes = append(notes, i) -> nothing -- \n":          "has no reason",
		"Level: level++ -> nothing\nLevel: note(i) -> nothing\n\n": "has no reason",
	} {
		t.Run(want, func(t *testing.T) {
			if _, problem := examineSample(t, explained); !strings.Contains(problem, want) {
				t.Errorf("it says %q, want %q", problem, want)
			}
		})
	}
}

// TestOneFile: with -files, explanations of mutants of other files stay unread.
func TestOneFile(t *testing.T) {
	*files = "sample.go"
	defer func() { *files = "" }()
	_, problem := examineSample(t, "Other: gone -> nothing -- it is in another file\n")
	if want := "% of the mutants are killed, want 90"; !strings.Contains(problem, want) {
		t.Errorf("it says %q, want %q", problem, want)
	}
}
