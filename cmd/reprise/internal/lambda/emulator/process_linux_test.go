package emulator_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
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

// TestDetachedWriter: what a function leaves behind in a session of its own, and what
// writes faster than it is read, keeps no instance from ending, and ends with it.
func TestDetachedWriter(t *testing.T) {
	t.Parallel()
	lines := 0
	l, err := emulator.New(emulator.Config{
		Functions: []emulator.Function{self(t, "f")},
		Log: func(line emulator.Line) {
			if line.Source == emulator.SourceFunction {
				lines++
				time.Sleep(time.Millisecond) // which is longer than the writer takes
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(t.TempDir(), "started")
	result := invoke(t, l, order{Do: "detach", File: started})
	if !strings.Contains(string(result.Payload), "Runtime.ExitError") {
		t.Errorf("payload %s", result.Payload)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("Close = %v", err)
	}
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !gone(pid) {
		t.Errorf("the detached process %d lives on: %v", pid, err)
	}
	if lines == 0 {
		t.Error("the detached process came to write nothing: this test tests nothing")
	}
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
