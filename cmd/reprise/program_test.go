//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-sqs/reprise/internal/race"
)

// raceVariable is the environment variable that has the programs of raced get the race detector, if it is not empty,
// although the tests themselves do without: they only start processes and ask them. With "go test -race" they get it too.
const raceVariable = "REPRISE_TEST_RACE"

// raceFlags have a build of what raced starts use the race detector, or not.
var raceFlags = func() []string {
	if race.Enabled || os.Getenv(raceVariable) != "" {
		return []string{"-race"}
	}
	return nil
}()

// programVariable is the environment variable with the absolute path of the program, built without the race
// detector, that the tests start. Default: they build it. Who runs the tests of several packages builds it once.
const programVariable = "REPRISE_TEST_BIN"

// binaries is a folder for what the tests build. It is removed after the last test.
var binaries string

// withoutCommit has a build leave the commit out of the program's version, whatever go's settings are and
// whether or not the checkout is clean: tests and the sessions of the docs know the version.
const withoutCommit = "-buildvcs=false"

// program returns the file of the program that a test starts.
func program(t testing.TB) string {
	t.Helper()
	file, err := programOf(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// programOf returns the program under test: the commands are run as users run them. It is built without the race
// detector, which makes all that a process does several times as slow, unless test is one of raced.
func programOf(test string) (string, error) {
	if isRaced(test) {
		return racedProgram()
	}
	return plainProgram()
}

// isRaced reports whether the processes of a test, or of a case of one, have the race detector.
func isRaced(test string) bool {
	name, _, _ := strings.Cut(test, "/")
	return len(raceFlags) > 0 && slices.Contains(raced, name)
}

// plainProgram and racedProgram build the program once, when the first test needs it.
var (
	plainProgram = sync.OnceValues(func() (string, error) {
		if given := os.Getenv(programVariable); given != "" {
			if !filepath.IsAbs(given) {
				return "", fmt.Errorf("%s is %q: make it an absolute path, each test has its own folder", programVariable, given)
			}
			_, err := os.Stat(given)
			return given, err
		}
		return buildProgram("reprise")
	})
	racedProgram = sync.OnceValues(func() (string, error) { return buildProgram("reprise-race", raceFlags...) })
)

func buildProgram(name string, flags ...string) (string, error) {
	file := filepath.Join(binaries, name)
	build := exec.Command("go", append(append([]string{"build", withoutCommit, "-o", file}, flags...), ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return file, nil
}
