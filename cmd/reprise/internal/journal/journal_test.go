package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const dir = "/data/journal"

// change is a change of a batch: a value is set unless it begins with "!".
type change struct{ key, value string }

const (
	gone      = "!"       // delete
	goneOnce  = "!once"   // delete a key that was set once
	goneUntil = "!until " // delete up to the key that follows
)

func commit(j sqsserver.Journal, sync bool, changes ...change) error {
	var b sqsserver.Batch
	for _, c := range changes {
		switch {
		case strings.HasPrefix(c.value, goneUntil):
			b.DeleteRange([]byte(c.key), []byte(strings.TrimPrefix(c.value, goneUntil)))
		case c.value == gone:
			b.Delete([]byte(c.key))
		case c.value == goneOnce:
			b.DeleteOnce([]byte(c.key))
		default:
			b.Set([]byte(c.key), []byte(c.value))
		}
	}
	return j.Commit(&b, sync)
}

func mustCommit(t *testing.T, j sqsserver.Journal, changes ...change) {
	t.Helper()
	if err := commit(j, true, changes...); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func open(t *testing.T, o journal.Options) *journal.Journal {
	t.Helper()
	if o.Dir == "" {
		o.Dir = dir
	}
	j, err := journal.Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return j
}

func mustClose(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// contents returns what j has below prefix, in order.
func contents(t *testing.T, j sqsserver.Journal, prefix string) []change {
	t.Helper()
	var all []change
	err := j.Scan([]byte(prefix), func(key, value []byte) error {
		all = append(all, change{string(key), string(value)})
		return nil
	})
	if err != nil {
		t.Fatalf("Scan(%q): %v", prefix, err)
	}
	return all
}

func checkContents(t *testing.T, j sqsserver.Journal, prefix string, want ...change) {
	t.Helper()
	if diff := cmp.Diff(want, contents(t, j, prefix), cmp.AllowUnexported(change{})); diff != "" {
		t.Errorf("contents below %q (-want +got):\n%s", prefix, diff)
	}
}

func TestCommit(t *testing.T) {
	body := strings.Repeat("body ", 300)
	for _, test := range []struct {
		name    string
		batches [][]change
		want    []change
	}{
		{"nothing", nil, nil},
		{"set", [][]change{{{"a", "1"}}}, []change{{"a", "1"}}},
		{"empty value", [][]change{{{"a", ""}}}, []change{{"a", ""}}},
		{"bytewise order", [][]change{{{"b", "2"}, {"a\xff", "1"}, {"a", "0"}, {"\xff", "3"}}},
			[]change{{"a", "0"}, {"a\xff", "1"}, {"b", "2"}, {"\xff", "3"}}},
		{"last of a batch wins", [][]change{{{"a", "1"}, {"a", "2"}}}, []change{{"a", "2"}}},
		{"last batch wins", [][]change{{{"a", "1"}}, {{"a", "2"}}}, []change{{"a", "2"}}},
		{"delete", [][]change{{{"a", "1"}, {"b", "2"}}, {{"a", gone}}}, []change{{"b", "2"}}},
		{"delete what is not there", [][]change{{{"a", gone}}}, nil},
		{"set after delete in a batch", [][]change{{{"a", gone}, {"a", "1"}}}, []change{{"a", "1"}}},
		{"delete after set in a batch", [][]change{{{"a", "1"}, {"a", gone}}}, nil},
		{"range without its end", [][]change{{{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", goneUntil + "c"}}},
			[]change{{"c", "3"}}},
		{"range before a set in a batch", [][]change{{{"a", "1"}}, {{"a", goneUntil + "c"}, {"b", "2"}}}, []change{{"b", "2"}}},
		{"set before a range in a batch", [][]change{{{"b", "2"}, {"a", goneUntil + "c"}}}, nil},
		{"delete what was set once", [][]change{{{"a", "1"}, {"b", "2"}}, {{"a", goneOnce}}}, []change{{"b", "2"}}},
		{"delete once after set in a batch", [][]change{{{"a", "1"}, {"b", "2"}, {"a", goneOnce}}}, []change{{"b", "2"}}},
		{"kinds by turns", [][]change{{{"b1", "1"}, {"m1", "1"}, {"b2", "2"}, {"m1", "2"}, {"b1", goneOnce}, {"m2", "3"}, {"m2", gone}}},
			[]change{{"b2", "2"}, {"m1", "2"}}},
		{"body", [][]change{{{"b1", body}, {"m1", "state"}}}, []change{{"b1", body}, {"m1", "state"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := vfs.NewMem()
			j := open(t, journal.Options{FS: fs})
			for _, batch := range test.batches {
				mustCommit(t, j, batch...)
			}
			checkContents(t, j, "", test.want...)
			mustClose(t, j)

			j = open(t, journal.Options{FS: fs})
			checkContents(t, j, "", test.want...)
			var keys []string
			for _, c := range test.want {
				keys = append(keys, c.key)
				if got, err := getOne(j, c.key); err != nil || got != c.value {
					t.Errorf("Get(%q) = %q, %v, want %q", c.key, got, err, c.value)
				}
			}
			got, err := get(j, keys...)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(change{})); err != nil || diff != "" {
				t.Errorf("Get(%q): %v, (-want +got):\n%s", keys, err, diff)
			}
			mustClose(t, j)
		})
	}
}

func TestScan(t *testing.T) {
	j := open(t, journal.Options{FS: vfs.NewMem()})
	mustCommit(t, j, change{"b1", "x"}, change{"m", "0"}, change{"m1", "1"}, change{"m\xff", "2"}, change{"m\xff\xff", "3"},
		change{"n", "y"}, change{"\xff\xff", "z"})

	checkContents(t, j, "m", change{"m", "0"}, change{"m1", "1"}, change{"m\xff", "2"}, change{"m\xff\xff", "3"})
	checkContents(t, j, "m\xff", change{"m\xff", "2"}, change{"m\xff\xff", "3"})
	checkContents(t, j, "\xff", change{"\xff\xff", "z"})
	checkContents(t, j, "x")

	t.Run("ends with an error of f", func(t *testing.T) {
		wrong, calls := errors.New("wrong"), 0
		err := j.Scan([]byte("m"), func(_, _ []byte) error { calls++; return wrong })
		if !errors.Is(err, wrong) || calls != 1 {
			t.Errorf("Scan = %v after %d calls, want the error of the first", err, calls)
		}
	})
	t.Run("sees the journal as it was", func(t *testing.T) {
		var seen []string
		err := j.Scan([]byte("m"), func(key, _ []byte) error {
			seen = append(seen, string(key))
			return commit(j, false, change{"m2", "new"}, change{"m\xff", gone})
		})
		if diff := cmp.Diff([]string{"m", "m1", "m\xff", "m\xff\xff"}, seen); err != nil || diff != "" {
			t.Errorf("Scan: %v, keys (-want +got):\n%s", err, diff)
		}
	})
	mustClose(t, j)
}

func TestEmptyBatch(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j := open(t, journal.Options{FS: fs})
	if err := commit(j, false, change{"a", "1"}); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, j) // syncs the commits before
	after := open(t, journal.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	checkContents(t, after, "", change{"a", "1"})
	mustClose(t, after)
	mustClose(t, j)
}

func TestSyncInterval(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j := open(t, journal.Options{FS: fs, SyncInterval: time.Millisecond})
	mustCommit(t, j, change{"a", "1"})
	for { // until it is on the disk; the test's own timeout is the limit
		after := open(t, journal.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
		synced := len(contents(t, after, "")) == 1
		mustClose(t, after)
		if synced {
			break
		}
	}
	mustClose(t, j)
}

func TestSyncIntervalClose(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j := open(t, journal.Options{FS: fs, SyncInterval: time.Hour})
	mustCommit(t, j, change{"a", "1"})
	early := open(t, journal.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	checkContents(t, early, "")
	mustClose(t, early)

	mustClose(t, j)
	late := open(t, journal.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	checkContents(t, late, "", change{"a", "1"})
	mustClose(t, late)
}

// Writes into a deleted directory are lost when the process ends: no further commit is
// acknowledged.
func TestDirectoryDeletedWhileOpen(t *testing.T) {
	temp := filepath.Join(t.TempDir(), "journal")
	j := open(t, journal.Options{Dir: temp})
	mustCommit(t, j, change{"a", "1"})
	await(j, journal.Listed)
	if err := os.RemoveAll(temp); err != nil {
		t.Fatal(err)
	}
	for j.Err() == nil { // the test's own timeout is the limit
		j.LowOnSpace()
		time.Sleep(time.Millisecond)
	}
	err := commit(j, true, change{"b", "2"})
	if err == nil || !strings.Contains(err.Error(), temp+": the directory is gone") || !strings.Contains(err.Error(), "backup") {
		t.Errorf("Commit = %v, want what is wrong and what to do", err)
	}
	if err := j.Close(); err == nil {
		t.Error("Close succeeded")
	}
}

// await waits for a condition that work in the background brings about.
func await(j *journal.Journal, condition func(*journal.Journal) bool) {
	for !condition(j) { // the test's own timeout is the limit
		time.Sleep(time.Millisecond)
	}
}

func writeFile(t *testing.T, fs vfs.FS, name, content string) {
	t.Helper()
	if err := fs.MkdirAll(fs.PathDir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write([]byte(content))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

var sorted = cmp.Transformer("sorted", func(names []string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range names {
		set[name] = true
	}
	return set
})
