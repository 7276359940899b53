//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package stack

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep: of the folders in the temporary folder those of dead processes go; those
// of living ones, of nobody knows whom, and what links point to stay.
func TestSweep(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	alive, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead.dir, "bootstrap"), []byte("18 MB"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := dead.lock.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for path, old := range map[string]bool{
		filepath.Join(temporary, scratchPrefix+"young"):            false,
		filepath.Join(temporary, scratchPrefix+"old"):              true,
		filepath.Join(temporary, scratchPrefix+"somebodys", "bin"): true,
		filepath.Join(temporary, "reprise-other"):                  true,
	} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if then := time.Now().Add(-2 * scratchGrace); old {
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(filepath.Join(temporary, scratchPrefix+"somebodys"), then, then); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	for _, path := range []string{filepath.Join(elsewhere, scratchLock), filepath.Join(temporary, scratchPrefix+"file")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(temporary, scratchPrefix+"link")); err != nil {
		t.Fatal(err)
	}

	sweepScratch(slog.New(slog.DiscardHandler))
	var left []string
	entries, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{filepath.Base(alive.dir), scratchPrefix + "file", scratchPrefix + "link", scratchPrefix + "somebodys", scratchPrefix + "young", "reprise-other"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, scratchLock)); err != nil {
		t.Errorf("what a link points to is gone: %v", err)
	}
	if err := alive.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(alive.dir); !os.IsNotExist(err) {
		t.Errorf("after its end the folder is still there (%v)", err)
	}
}
