//go:build unix

// Holds off a command that leaves processes in its group where nothing else can be
// found: on systems other than Linux, and without /proc.

package children

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAttackGroupWithoutProc: the process group is killed though no process is looked for.
func TestAttackGroupWithoutProc(t *testing.T) {
	const alone = "CHILDREN_TEST_ALONE"
	if os.Getenv(alone) == "" { // adopt is called once in a process, which other tests need
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // G204: this test itself
		again.Env = append(os.Environ(), alone+"=1")
		if output, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, output)
		}
		return
	}
	threads.begin.Do(func() { go threads.run() }) // without adopt, as if it had failed
	file := filepath.Join(t.TempDir(), "id")
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `trap "" TERM; (trap "" TERM; sleep 1000) & echo $! >"$0.new"; mv "$0.new" "$0"; wait; sleep 1000`, file)
	child := New(cmd, NewMark(), 50*time.Millisecond)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for text == nil {
		text, _ = os.ReadFile(file) // until it is there; the test's own deadline bounds it
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := child.Wait(); err == nil {
		t.Error("the command was not stopped")
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for !errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			break // dead, and not yet waited for by init
		}
		if t.Context().Err() != nil {
			t.Fatal("a process of the group lives")
		}
		time.Sleep(time.Millisecond)
	}
}
