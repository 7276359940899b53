package journal

import (
	"fmt"
	"maps"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestManyFilesListed: a directory with hundreds of gigabytes has tens of thousands of files.
func TestManyFilesListed(t *testing.T) {
	fs := vfs.NewMem()
	want := make(syncedParts)
	for i := range 100_000 {
		want[fmt.Sprintf("%06d.sst", i)] = syncedPart{64 << 20, uint32(i)}
	}
	if err := replaceFile(fs, "", syncedFile, want.text()); err != nil {
		t.Fatal(err)
	}
	got, err := readSynced(fs, "")
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%d files were listed, and %d are read: %v", len(want), len(got), err)
	}
}
