package journal_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMissingMarker: a directory without the file that says which manifest counts is
// refused, and nothing in it changes: Pebble would overwrite it with an empty journal.
func TestMissingMarker(t *testing.T) {
	disk, _ := usedDisk(t)
	clone := disk.CrashClone(vfs.CrashCloneCfg{})
	removed := false
	for _, name := range list(t, clone) {
		if strings.HasPrefix(name, "marker.manifest.") {
			removed = true
			if err := clone.Remove(clone.PathJoin(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := list(t, clone)
	if _, err := readAll(clone); !removed || err == nil || !strings.Contains(err.Error(), "no file marker.manifest.") || !strings.Contains(err.Error(), "restore") {
		t.Errorf("without the marker: %v, want an error that names it, and the remedy", err)
	}
	if after := list(t, clone); !slices.Equal(before, after) {
		t.Errorf("there were %v, now %v", before, after)
	}
}

func list(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
