// Holds off a target of --exec whose processes start others when one of theirs is killed.

package children_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
)

// TestAttackRespawn: processes that have left their group, their session and their
// environment, and that start another as often as one is killed, all end.
func TestAttackRespawn(t *testing.T) {
	const parents = 12
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret") // in the command line of each
	script := fmt.Sprintf(`trap "" TERM
i=0; while [ $i -lt %d ]; do
  env -i PATH="$PATH" setsid sh -c 'trap "" TERM; echo here >>"$0"; while :; do sh -c "echo >>\"\$0\"; sleep 1000" "$0.run"; done' '%s' &
  i=$((i+1))
done; wait`, parents, secret)
	ctx, cancel := context.WithCancel(t.Context())
	mark := children.NewMark()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), mark)
	child := children.New(cmd, mark, 0)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for started := 0; started < parents; {
		text, _ := os.ReadFile(secret + ".run") // until it is there; the test's own deadline bounds it
		started = strings.Count(string(text), "\n")
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := child.Wait(); err == nil {
		t.Error("the command was not stopped")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), secret) {
			t.Errorf("%s lives: %q", file, line)
		}
	}
	t.Logf("%d were killed at the end", children.KillAll())
}
