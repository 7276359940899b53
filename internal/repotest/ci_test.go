package repotest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFailuresOfARun: the end of a run's output has the reason why packages failed, although a
// crash prints its cause first and its goroutines last.
func TestFailuresOfARun(t *testing.T) {
	for _, tool := range []string{"bash", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool, " is not installed: ", err)
		}
	}
	many := func(n int, format string) string {
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, format+"\n", i)
		}
		return lines.String()
	}
	crash := "SIGSEGV: segmentation violation\nPC=0x4d0f2a m=4 sigcode=1\n\n" +
		"goroutine 71 gp=0xc000 m=4 [running]:\nruntime.racecall()\n\n" +
		many(300, "goroutine %d [select]:") +
		"example.org/a_test.TestOfTheCrash.func1()\nexample.org/a_test.TestOfTheCrash(0xc0001)\nexample.org/a_test.(*world).run(...)\n" +
		many(30, "r%d 0x7f00")
	passed := "ok  \texample.org/passed\t0.1s\n"
	tests := []struct {
		name, log     string
		want, wantNot []string
	}{
		{"a crash", "noise of a package that passes\n" + passed + "before\n" + crash + "FAIL\texample.org/a\t1.0s\n" + passed + "FAIL\nmake: *** [test] Error 1\n",
			[]string{"-- example.org/a ", "SIGSEGV: segmentation violation", "goroutine 71 ", "tests in the dump: TestOfTheCrash\n"}, []string{"noise", "r29", "example.org/passed"}},
		{"a crash after a failure", "--- FAIL: TestBefore (0.1s)\n" + many(70, "    a_test.go:%d: wrong") + crash + "FAIL\texample.org/a\t1.0s\n",
			[]string{"SIGSEGV", "--- FAIL: TestBefore", "goroutine 71 "}, []string{"r29"}},
		{"failures", "--- FAIL: TestOne (0.1s)\n    a_test.go:1: first cause\n" + many(80, "    a_test.go:%d: wrong") + "--- FAIL: TestTwo (0.1s)\nFAIL\nFAIL\texample.org/a\t1.0s\n",
			[]string{"first cause", "--- FAIL: TestTwo"}, []string{"_test.go:79"}},
		{"a race", passed + "==================\nWARNING: DATA RACE\nWrite at 0x1 by goroutine 9:\n" + many(70, "  f%d()") + "--- FAIL: TestRace (0.1s)\nFAIL\nFAIL\texample.org/a\t1.0s\n",
			[]string{"WARNING: DATA RACE", "Write at", "--- FAIL: TestRace"}, nil},
		{"a package that does not compile", "# example.org/a\na.go:1:1: syntax error\nFAIL\texample.org/a [build failed]\n",
			[]string{"a.go:1:1: syntax error"}, nil},
		{"several packages", strings.Repeat("--- FAIL: TestOne (0.1s)\n"+many(80, "    a_test.go:%d: wrong")+"FAIL\nFAIL\texample.org/a\t1.0s\n", 3),
			[]string{"--- FAIL: TestOne"}, nil},
		{"no package", many(50, "line %d") + "make: *** [test] Error 2\n", []string{"no package failed", "Error 2"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(log, []byte(tt.log), 0o644); err != nil {
				t.Fatal(err)
			}
			printed, err := exec.CommandContext(t.Context(), "bash", ".ci/failures", log).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			out := string(printed)
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("it does not print %q, but:\n%s", want, out)
				}
			}
			for _, not := range tt.wantNot {
				if strings.Contains(out, not) {
					t.Errorf("it prints %q:\n%s", not, out)
				}
			}
			if lines := strings.Count(out, "\n"); lines > 75 {
				t.Errorf("it prints %d lines, which the last 80 of a run do not hold", lines)
			}
			if strings.Contains(tt.log, crash) {
				if kept := readText(t, filepath.Join(log+".failed", "example.org_a")); !strings.Contains(kept, crash) {
					t.Errorf("the file of the package's output does not hold the crash, but:\n%s", kept)
				}
			}
		})
	}
}

// TestStepsOfARun: each step of a run ends with its time by the clock and that of the processors,
// and the end of a run lists all of them.
func TestStepsOfARun(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: ", err)
	}
	script := `set -euo pipefail
. .ci/steps
step "Waits, 100%"
sleep 0.3
step Computes
bash -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'
steps
step Passed`
	printed, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	row := regexp.MustCompile(`(?m)^(-- )? *(\d+\.\d) s +(\d+\.\d) s of processors  (.*)$`)
	var names []string
	seconds := make(map[string][2]float64)
	for _, m := range row.FindAllStringSubmatch(string(printed), -1) {
		wall, _ := strconv.ParseFloat(m[2], 64) // digits, as matched
		processors, _ := strconv.ParseFloat(m[3], 64)
		names, seconds[m[4]] = append(names, m[1]+m[4]), [2]float64{wall, processors}
	}
	if want := []string{"-- Waits, 100%", "-- Computes", "Waits, 100%", "Computes", "in all"}; !slices.Equal(names, want) {
		t.Fatalf("it times %q, want %q:\n%s", names, want, printed)
	}
	if waits, computes, all := seconds["Waits, 100%"], seconds["Computes"], seconds["in all"]; waits[0] < 0.3 || computes[1] <= waits[1] || all[0] < waits[0] || all[1] < computes[1] {
		t.Errorf("the times are not those of the steps:\n%s", printed)
	}
	if !strings.HasSuffix(string(printed), "\n== Passed\n") {
		t.Errorf("the last step is not the end:\n%s", printed)
	}
}

// TestWhatTheRaceDetectorShortens: make full, which CI runs, runs each package whose tests do less
// with the race detector, unless make test runs it without.
func TestWhatTheRaceDetectorShortens(t *testing.T) {
	_, rest, _ := strings.Cut(readText(t, "Makefile"), "\nfull:")
	recipe, _, found := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatal("the Makefile has no recipe of full")
	}
	shortens := regexp.MustCompile(`\brace\.(Enabled|Fewer)\b|\bif raceDetector\b|\bcase raceDetector\b`)
	packages := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || path == "internal/repotest/ci_test.go" || !shortens.MatchString(readText(t, path)) {
			return err
		}
		where := filepath.ToSlash(filepath.Dir(path))
		if where != "." {
			where = "./" + where
		}
		packages[where] = true
		runs := func(pattern string) bool {
			above, folders := strings.CutSuffix(pattern, "...")
			return pattern == where || folders && strings.HasPrefix(where, above)
		}
		if !slices.ContainsFunc(strings.Fields(recipe), runs) && !slices.Contains(makeVariable(t, "ALONE"), where) {
			t.Errorf("make full does not run the tests of %s, nor make test all of them, where %s makes fewer runs with the race detector", where, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 3 {
		t.Errorf("%v make fewer runs with the race detector, want those of make full:%s", packages, recipe)
	}
}
