//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMissingLog: a data directory, or a backup, whose log was deleted is refused, with the log's
// name and the remedy, and exit code 4; without the list of the logs the rest is served.
func TestMissingLog(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	data, backup := filepath.Join(temp, "data"), filepath.Join(temp, "backup")
	p, endpoint := keep(t, data, "--queue", "q")
	sendAll(t, endpoint, "q", "kept")
	p.stop()
	p, endpoint = keep(t, data)
	sendAll(t, endpoint, "q", "lost")
	if got := reprise(t, "", "backup", "--data", data, backup); got.code != 0 {
		t.Fatalf("backup: %+v", got)
	}
	p.kill()
	for _, dir := range []string{data, backup} {
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil || len(logs) == 0 {
			t.Fatalf("%s has no logs: %v", dir, err)
		}
		newest := slices.Max(logs)
		if err := os.Remove(newest); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"check", dir}, {"serve", "--addr", "127.0.0.1:0", "--data", dir}} {
			got := reprise(t, "", args...)
			if got.code != 4 || !strings.HasPrefix(got.stderr, "reprise: ") ||
				!containsAll(got.stderr, dir, "damaged", "missing: "+filepath.Base(newest), "restore", "remove LOGS") {
				t.Errorf("%v: %+v; want exit code 4, the log and the remedy", args, got)
			}
		}
		if err := os.Remove(filepath.Join(dir, "LOGS")); err != nil {
			t.Fatal(err)
		}
		if got := reprise(t, "", "check", dir); checkedMessages(t, got) != 1 {
			t.Errorf("check of the rest: %+v", got)
		}
		_, endpoint := keep(t, dir)
		if got := receiveUntil(t, endpoint, "q", 1); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("received %q", got)
		}
	}
}
