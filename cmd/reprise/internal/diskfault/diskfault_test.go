package diskfault_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
)

// TestReusedFiles: what happens to a file is seen, and can fail, under the name that
// the file has, however it was opened.
func TestReusedFiles(t *testing.T) {
	var seen []errorfs.Op
	var failure error
	fs := diskfault.Wrap(vfs.NewMem(), func(op errorfs.Op) error {
		seen = append(seen, op)
		return failure
	})
	write := func(file vfs.File, err error) error {
		if err != nil {
			return err
		}
		_, err = file.Write([]byte("x"))
		return errors.Join(err, file.SyncData())
	}
	for _, test := range []struct {
		name string
		open func() (vfs.File, error)
		want []errorfs.Op
	}{
		{"made", func() (vfs.File, error) { return fs.Create("a", vfs.WriteCategoryUnspecified) }, []errorfs.Op{
			{Kind: errorfs.OpCreate, Path: "a"}, {Kind: errorfs.OpFileWrite, Path: "a"}, {Kind: errorfs.OpFileSyncData, Path: "a"},
		}},
		{"reused", func() (vfs.File, error) { return fs.ReuseForWrite("a", "b", vfs.WriteCategoryUnspecified) }, []errorfs.Op{
			{Kind: errorfs.OpReuseForWrite, Path: "a"}, {Kind: errorfs.OpFileWrite, Path: "b"}, {Kind: errorfs.OpFileSyncData, Path: "b"},
		}},
	} {
		seen = nil
		file, err := test.open()
		if err := write(file, err); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if !slices.Equal(seen, test.want) {
			t.Errorf("%s: seen %v, want %v", test.name, seen, test.want)
		}
		failure = errors.New("the disk failed")
		if err := file.SyncData(); !errors.Is(err, failure) {
			t.Errorf("%s: a sync that fails: %v, want %v", test.name, err, failure)
		}
		failure = nil
	}
}
