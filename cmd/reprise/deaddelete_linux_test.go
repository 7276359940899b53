package main_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// answered runs the program on a terminal, where it asks a question that is answered with yes when meanwhile has returned.
// It returns the exit code and what the terminal shows.
func answered(t *testing.T, question string, meanwhile func(), args ...string) (code int, shown string) {
	t.Helper()
	master, slave := openTerminal(t, 120)
	defer master.Close()
	cmd := exec.Command(program(t), args...)
	cmd.Env = environment("TERM=dumb")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	killer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	var screen strings.Builder
	read := func() error {
		some := make([]byte, 1000)
		n, err := master.Read(some)
		screen.Write(some[:n])
		return err
	}
	for !strings.Contains(screen.String(), question+" [y/N] ") {
		if err := read(); err != nil {
			t.Fatalf("%v: %s", err, screen.String())
		}
	}
	meanwhile()
	if _, err := master.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	for read() == nil { // the end is EIO
	}
	return exitCode(t, cmd.Wait()), screen.String()
}

// TestDeadDeleteAsShown: of the letters that match, those that arrive while the operator reads the question stay.
func TestDeadDeleteAsShown(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead")
	sendAll(t, endpoint, "dead", "shown 1", "shown 2", "other")
	code, shown := answered(t, "Delete 2 dead letters from dead for good?", func() { sendAll(t, endpoint, "dead", "not shown") },
		"dead", "delete", "dead", "--body", "shown", "--endpoint", endpoint)
	if code != 0 || !strings.Contains(shown, "2 dead letters deleted from ") {
		t.Errorf("exit code %d: %s", code, shown)
	}
	left := strings.Join(received(t, endpoint, "dead", 2), ", ")
	if !strings.Contains(left, "not shown") || !strings.Contains(left, "other") {
		t.Errorf("left are %s", left)
	}
}

// TestDeadDeleteSaysWhatItSpared: of a queue that is not a dead-letter queue --all spares what is not a dead letter, also
// when the operator has said yes; the exit code and the last line say so.
func TestDeadDeleteSaysWhatItSpared(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "jobs")
	sendJSON(t, endpoint, "jobs", `{"order":1}`, map[string]any{"reason": "permanent", "error": "no such card"})
	sendJSON(t, endpoint, "jobs", `{"order":2}`, nil)
	code, shown := answered(t, "Delete 1 dead letter from jobs for good?", func() {}, "dead", "delete", "jobs", "--all", "--endpoint", endpoint)
	_, after, _ := strings.Cut(shown, "1 dead letter deleted from ")
	if code != 3 || !strings.Contains(after, "left 1 message: nothing says") {
		t.Errorf("exit code %d: %s", code, shown)
	}
	if left := received(t, endpoint, "jobs", 1); left[0] != `{"order":2}` {
		t.Errorf("left is %s", left)
	}
}
