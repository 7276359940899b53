package journal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSpaceIsGivenBack sends, and deletes soon after, many times what may be on the
// disk: what waits is small, and the rest are logs and tables of a bounded size.
func TestSpaceIsGivenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("writes half a gigabyte")
	}
	temp := t.TempDir()
	j := open(t, journal.Options{Dir: temp})
	const messages, waiting, group, limit = 500_000, 2000, 500, 256 << 20
	body, state := randomText(1<<10), randomText(48)
	var batch sqsserver.Batch
	var most int64
	for n := range uint64(messages) {
		batch.Set(messageKey('m', n), state)
		batch.Set(messageKey('b', n), body)
		if n >= waiting {
			batch.Delete(messageKey('m', n-waiting))
			batch.Delete(messageKey('b', n-waiting))
		}
		if n%group != group-1 {
			continue
		}
		if err := j.Commit(&batch, true); err != nil {
			t.Fatal(err)
		}
		batch.Reset()
		if n%(100*group) == 100*group-1 {
			most = max(most, diskBytes(t, temp))
		}
	}
	if most > limit {
		t.Errorf("%d MiB were on the disk, want at most %d", most>>20, limit>>20)
	}
	mustClose(t, j)
	t.Logf("at most %d MiB, %d when closed, of %d sent", most>>20, diskBytes(t, temp)>>20, messages*len(body)>>20)
}

func diskBytes(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) { // it was just given back
			return nil
		}
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestLowOnSpace(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name    string
		minFree int64
		free    uint64
		want    bool
	}{
		{"room", 0, 512 * mib, false},
		{"less than the default", 0, 512*mib - 1, true},
		{"less than set", 10 * mib, 10*mib - 1, true},
		{"as much as set", 10 * mib, 10 * mib, false},
		{"off", -1, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := vfs.NewMem()
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: test.free, TotalBytes: 1 << 40})
			j := open(t, journal.Options{FS: fs, MinFree: test.minFree})
			if got := j.LowOnSpace(); got != test.want {
				t.Errorf("LowOnSpace() = %t, want %t", got, test.want)
			}
			mustCommit(t, j, change{"a", gone}) // deletes go on
			mustClose(t, j)
		})
	}
}

func TestLowOnSpaceFollowsTheDisk(t *testing.T) {
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1, TotalBytes: 1 << 40})
	j := open(t, journal.Options{FS: fs})
	if !j.LowOnSpace() {
		t.Error("LowOnSpace() = false on a full disk")
	}
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	for j.LowOnSpace() { // the test's own timeout is the limit
		time.Sleep(time.Millisecond)
	}
	mustClose(t, j)
}
