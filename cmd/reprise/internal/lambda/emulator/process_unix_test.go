//go:build unix

package emulator_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// awaitEnd waits until the process has ended; the test's own deadline bounds it.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for !gone(pid) {
		if t.Context().Err() != nil {
			t.Fatalf("process %d is still alive", pid)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// gone says that no process has this id, or that it is dead and only not reaped.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestGroupEnds: whatever an instance has started ends with it.
func TestGroupEnds(t *testing.T) {
	t.Parallel()
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f")}})
	file := filepath.Join(t.TempDir(), "pid")
	result := invoke(t, l, order{Do: "child", File: file})
	if !strings.Contains(string(result.Payload), "Runtime.ExitError") {
		t.Fatalf("payload %s", result.Payload)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the function did not come to start a child: %v", err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, pid)
}
