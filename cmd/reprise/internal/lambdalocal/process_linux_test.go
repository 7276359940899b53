package lambdalocal_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestNoOrphans: a program that is killed leaves no instance behind.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "LAMBDALOCAL_PROGRAM=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	line := nextLine(t, lines)
	var instance who
	if err := json.NewDecoder(strings.NewReader(line)).Decode(&instance); err != nil {
		t.Fatalf("the program printed %q: %v", line, err)
	}
	t.Cleanup(func() {
		if t.Failed() && !gone(instance.PID) {
			_ = syscall.Kill(instance.PID, syscall.SIGKILL) // which is what the test is about
		}
	})
	if line := nextLine(t, lines); line != "sleeping\n" {
		t.Fatalf("the program printed %q", line)
	}
	if gone(instance.PID) {
		t.Fatal("the instance ended before the program")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	awaitEnd(t, instance.PID)
}

// nextLine reads a line that a process prints.
func nextLine(t *testing.T, from *bufio.Reader) string {
	t.Helper()
	line, err := from.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}
