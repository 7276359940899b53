package daemon_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

// TestCheckOfAnOlderFormat: a check reads the directory of the format before as the server would, which
// converts it, and changes nothing.
func TestCheckOfAnOlderFormat(t *testing.T) {
	dir := t.TempDir()
	archive, err := zip.OpenReader("../journal/testdata/formats/records-1.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	if err := os.CopyFS(dir, archive); err != nil {
		t.Fatal(err)
	}
	contents := func() map[string]string {
		all := make(map[string]string)
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, name.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if name.Name() != "LOCK" {
				all[name.Name()] = string(text)
			}
		}
		return all
	}
	before := contents()
	for range 2 {
		report, err := daemon.Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Queues) != 3 { // their messages may have expired since
			t.Errorf("queues %+v", report.Queues)
		}
	}
	if diff := cmp.Diff(before, contents()); diff != "" {
		t.Errorf("the directory has changed (-before +after):\n%s", diff)
	}
}
