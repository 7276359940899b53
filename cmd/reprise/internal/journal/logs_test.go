package journal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// TestMissingLog removes each log of a crashed journal, and of a backup: opening or checking
// it fails with the log's name and changes nothing. The remedy in the error opens everything
// that was acknowledged before that log, and no part of what came later.
func TestMissingLog(t *testing.T) {
	for name, disk := range map[string]*vfs.MemFS{
		"one":      crashedDisk(t, 1, false),
		"several":  crashedDisk(t, 3, false),
		"recycled": crashedDisk(t, 0, true),
		"closed":   closedDisk(t),
		"backup":   backedUpDisk(t),
	} {
		logs := logsOf(t, disk)
		if len(logs) == 0 || name == "several" && len(logs) < 3 {
			t.Errorf("%s: only %v: the test has lost its point", name, logs)
		}
		all := numbersOf(t, disk.CrashClone(vfs.CrashCloneCfg{}))
		for i, log := range logs {
			t.Run(name+"/"+strconv.Itoa(i), func(t *testing.T) {
				clone := disk.CrashClone(vfs.CrashCloneCfg{})
				remove(t, clone, log)
				later := append([]string{"LOGS"}, logs[i+1:]...)
				remedy := "remove " + strings.Join(later, ", ") + ")"
				_, err := journal.Check(journal.Options{Dir: dir, FS: clone})
				checkSays(t, "Check", err, dir, "missing: "+log, "restore", remedy)
				before := list(t, clone)
				_, err = journal.Open(journal.Options{Dir: dir, FS: clone})
				checkSays(t, "Open", err, dir, "missing: "+log, "restore", remedy)
				if after := list(t, clone); !slices.Equal(before, after) {
					t.Errorf("there were %v, now %v", before, after)
				}
				remove(t, clone, later...)
				if rest := numbersOf(t, clone); rest > all {
					t.Errorf("%d batches are there, there were %d", rest, all)
				}
			})
		}
	}
}

func checkSays(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q in it", what, err, part)
		}
	}
}

// crashedDisk returns a journal as a crash leaves it that has so many logs, of none of
// which anything is in a table, or with one whose file was another's.
func crashedDisk(t *testing.T, logs int, recycled bool) *vfs.MemFS {
	t.Helper()
	var reused atomic.Bool
	tables := make(chan struct{}) // closed to let them be written
	disk := vfs.NewCrashableMem()
	j := open(t, small(journal.Options{FS: diskfault.Wrap(disk, func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && !recycled && (kindOf(op.Path) == "sst" || kindOf(op.Path) == "blob") {
			<-tables
		}
		reused.CompareAndSwap(false, op.Kind == errorfs.OpReuseForWrite)
		return nil
	})}))
	for n := 1; len(logsOf(t, disk)) < logs || recycled && !reused.Load(); n++ {
		mustCommit(t, j, numbered(n)...)
		if n > 10_000 {
			t.Fatalf("no %d logs, or none recycled", logs)
		}
	}
	mustCommit(t, j, change{"last", "1"})
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	close(tables)
	mustClose(t, j)
	return crashed
}

func closedDisk(t *testing.T) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewCrashableMem()
	j := open(t, journal.Options{FS: disk})
	mustCommit(t, j, numbered(1)...)
	mustClose(t, j)
	return disk
}

func backedUpDisk(t *testing.T) *vfs.MemFS {
	t.Helper()
	const original = "/data/original"
	disk := vfs.NewCrashableMem()
	j := open(t, journal.Options{FS: disk, Dir: original})
	mustCommit(t, j, numbered(1)...)
	if err := j.Backup(dir); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	return disk
}

// logsOf returns the names of the logs, from the oldest on.
func logsOf(t *testing.T, disk vfs.FS) []string {
	t.Helper()
	return slices.DeleteFunc(list(t, disk), func(name string) bool { return kindOf(name) != "log" })
}

func remove(t *testing.T, disk vfs.FS, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := disk.Remove(disk.PathJoin(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// numbersOf returns how many numbered batches there are, and fails unless they are the
// first ones.
func numbersOf(t *testing.T, disk vfs.FS) int {
	t.Helper()
	j := open(t, journal.Options{FS: disk})
	defer mustClose(t, j)
	found := contents(t, j, numberKey)
	number := 0
	if len(found) > 0 {
		number, _ = strconv.Atoi(found[0].value)
	}
	if bodies := contents(t, j, "b"); len(bodies) != number {
		t.Errorf("%d bodies are there, want those of %d batches", len(bodies), number)
	}
	return number
}

// TestDamagedLogs: a list of the logs that is not as it was written is no list.
func TestDamagedLogs(t *testing.T) {
	disk := crashedDisk(t, 3, false)
	text := string(fileData(t, disk, "LOGS"))
	lines := strings.SplitAfter(text, "\n")
	for _, damaged := range []string{"", lines[0], strings.Join(lines[:len(lines)-2], ""), text + lines[1], text[:len(text)-1], lines[1]} {
		clone := disk.CrashClone(vfs.CrashCloneCfg{})
		writeFile(t, clone, clone.PathJoin(dir, "LOGS"), damaged)
		for _, readOnly := range []bool{true, false} {
			_, err := journal.Open(journal.Options{Dir: dir, FS: clone, ReadOnly: readOnly})
			checkSays(t, fmt.Sprintf("Open with LOGS %q", damaged), err, dir+"/LOGS", "restore", "remove it")
		}
	}
}

// TestNoLogs: a directory that has no list of its logs, for an older version has
// written it, is opened, and has one from then on.
func TestNoLogs(t *testing.T) {
	disk := crashedDisk(t, 3, false)
	want := numbersOf(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	remove(t, disk, "LOGS")
	if got := numbersOf(t, disk); got != want {
		t.Errorf("%d batches are there, want %d", got, want)
	}
	named := string(fileData(t, disk, "LOGS"))
	for _, log := range logsOf(t, disk) {
		if !strings.Contains(named, log+"\n") {
			t.Errorf("LOGS has no %s:\n%s", log, named)
		}
	}
}

// TestCrashAtLogs cuts the power at every change of a log and, during the recovery from it, at
// every change again: the journal can always be opened, with everything that was acknowledged.
func TestCrashAtLogs(t *testing.T) {
	at, cuts, again := map[string]bool{}, 0, 0
	missing := func() (kinds []string) {
		for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRemove} {
			if where := fmt.Sprintf("op %d on %s/", kind, dir); !at[where] {
				kinds = append(kinds, where)
			}
		}
		return kinds
	}
	// Pebble removes logs in the background: one script may end before it does.
	for seed := uint64(1); seed == 1 || seed <= 10 && missing() != nil; seed++ {
		s := newScript(rand.New(rand.NewPCG(seed, 0)), 60)
		c := newCutter(vfs.NewCrashableMem(), 1, 1)
		j := open(t, small(journal.Options{FS: c.logsFS()}))
		c.run(t, j, s)
		mustClose(t, j)
		for n, cut := range c.cuts {
			second := newCutter(cut.disk, uint64(n), recoveries())
			second.acked.Store(int64(cut.acked))
			second.begun.Store(int64(cut.begun))
			check(t, 1, cut, s, second.logsFS())
			at[strings.TrimRight(cut.where, "0123456789.log")] = true
			for _, cut := range second.cuts {
				check(t, 1, cut, s, cut.disk)
				at[strings.TrimRight(cut.where, "0123456789.log")] = true
			}
			again += len(second.cuts)
		}
		cuts += len(c.cuts)
	}
	t.Logf("%d crashes, and %d more during recovery", cuts, again)
	for _, where := range missing() {
		t.Errorf("no crash at %s*.log: the test has lost its point: %v", where, at)
	}
}

// recoveries is the share of the changes of a recovery at which the power is cut.
func recoveries() float64 {
	if raceDetector || testing.Short() {
		return 0.02
	}
	return 0.3
}

// logsFS has c cut at what makes, names, and removes logs.
func (c *cutter) logsFS() vfs.FS {
	return diskfault.Wrap(c.disk, func(op errorfs.Op) error {
		isLog := kindOf(op.Path) == "log" && op.Kind != errorfs.OpFileWrite && !isSync(op)
		if isLog || strings.Contains(op.Path, "LOGS") || op.Path == dir {
			return c.hook(op)
		}
		return nil
	})
}
