//go:build unix

package main_test

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"
)

// raced are the tests whose processes have the race detector, if raceFlags ask for it: those in which much goes on at
// once in a process. The others show what a command prints, refuses or keeps, and the tests of its packages run the
// same code in the tests' own process, with the detector. A new test of a command that works beside others belongs here.
var raced = []string{
	// The server: connections, polls that wait, several clients, its time and faults, its journal.
	"TestServe", "TestServeTLS", "TestServeConfig", "TestServeFaultsAndTime", "TestServeLimitsConnections", "TestServeCutsSlowClients",
	"TestManyConnections", "TestStopAnswersPolls", "TestConformanceAgainstTheProgram", "TestTakeover", "TestBackup", "TestKilled", "TestLowDisk",
	"TestAttackBodiesAnnounced",
	// The consumer: workers, children, breakers, and what it tells of itself meanwhile.
	"TestRun", "TestRunLosesNothing", "TestRunGivingUpByTheMany", "TestUpURL", "TestUpExec", "TestToQueue", "TestLambdaTarget", "TestWorkers",
	"TestMissingQueue", "TestMetricsOfTheConsumer", "TestOTLP", "TestHealthOfAServer", "TestAttackTimeout", "TestAttackKilledProgram",
	// A new configuration while work goes on.
	"TestReload",
	// Operators, and jobs of the server beside its clients.
	"TestControl", "TestControlOfKeys", "TestControlOfAServer", "TestOperatorsBesideConsumers", "TestDeadOfALiveQueue",
	"TestJobs", "TestJobOutlivesItsClient", "TestRedrive", "TestRedriveStops", "TestRedriveByServer", "TestMove", "TestRedriveTask",
	// Tests of the pages and commands that show a process at work.
	"TestLiveEvents", "TestTail", "TestTop", "TestDashboardOverview", "TestDashboardSurvivesARestart", "TestDashboardLocal",
	// Signals.
	"TestUpDrains", "TestUpSecondSignal", "TestAttackSecondSignal", "TestAttackStop", "TestAttackStopAtOnce", "TestDemoInterrupted",
	"TestLambdaUpStopped",
	// Functions on this machine.
	"TestLambdaUp", "TestLambdaUpWatch", "TestAsyncLambdaRetries", "TestAsyncLambdaDuplicates",
}

// TestRacedTestsExist: a test that is renamed or removed does not leave the list without a word.
func TestRacedTestsExist(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	for i, name := range raced {
		if !found[name] {
			t.Errorf("raced has %s, which is no test of this package: give its new name, or that of the test that shows the same", name)
		}
		if slices.Contains(raced[:i], name) {
			t.Errorf("raced has %s twice", name)
		}
	}
}

// TestProgramOfATest: a test of raced starts the program with the race detector where that is asked for, every other
// one without.
func TestProgramOfATest(t *testing.T) {
	t.Parallel()
	for test, want := range map[string]bool{raced[0]: len(raceFlags) > 0, raced[0] + "/case": len(raceFlags) > 0, t.Name(): false} {
		file, err := programOf(test)
		if err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" }); got != want {
			t.Errorf("the program of %s has the race detector: %v, want %v; it is asked for: %v", test, got, want, len(raceFlags) > 0)
		}
	}
}
