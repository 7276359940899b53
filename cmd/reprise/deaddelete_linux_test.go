package main_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDeadDeleteAsShown: of the letters that match, those that arrive while the operator reads the question stay.
func TestDeadDeleteAsShown(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead")
	sendAll(t, endpoint, "dead", "shown 1", "shown 2", "other")
	master, slave := openTerminal(t, 120)
	defer master.Close()
	cmd := exec.Command(program(t), "dead", "delete", "dead", "--body", "shown", "--endpoint", endpoint)
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
	for !strings.Contains(screen.String(), "Delete 2 dead letters from dead for good? [y/N] ") {
		if err := read(); err != nil {
			t.Fatalf("%v: %s", err, screen.String())
		}
	}
	sendAll(t, endpoint, "dead", "not shown")
	if _, err := master.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	for read() == nil { // the end is EIO
	}
	if code := exitCode(t, cmd.Wait()); code != 0 || !strings.Contains(screen.String(), "2 dead letters deleted from ") {
		t.Errorf("exit code %d: %s", code, screen.String())
	}
	left := strings.Join(received(t, endpoint, "dead", 2), ", ")
	if !strings.Contains(left, "not shown") || !strings.Contains(left, "other") {
		t.Errorf("left are %s", left)
	}
}
