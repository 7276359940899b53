package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// fault is a disk that fails an operation on the files of a kind, once.
type fault struct {
	kinds []errorfs.OpKind
	file  string // part of its name
	err   error
	late  bool // not before a log was reused, as all but the first are

	reused atomic.Bool
	armed  atomic.Bool
	over   atomic.Bool
	mu     sync.Mutex
	after  []string // changes after it was over
}

func (f *fault) hook(op errorfs.Op) error {
	if f.over.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock {
		f.mu.Lock()
		f.after = append(f.after, fmt.Sprintf("op %d on %s", op.Kind, op.Path))
		f.mu.Unlock()
	}
	if op.Kind == errorfs.OpReuseForWrite {
		f.reused.Store(true)
	}
	if !f.armed.Load() || !strings.Contains(op.Path, f.file) {
		return nil
	}
	for _, kind := range f.kinds {
		if op.Kind == kind && f.armed.Swap(false) {
			return f.err
		}
	}
	return nil
}

var (
	writes  = []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}
	syncs   = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData}
	creates = []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}
)

// TestFailedDisk fails each kind of change that a journal makes of its files. The
// disk works again at once, which is the worst that can happen: a program that does
// not remember goes on over a hole.
func TestFailedDisk(t *testing.T) {
	const full, broken = "free space", "check the disk"
	for _, test := range []struct {
		name   string
		fault  *fault
		remedy string
	}{
		{"log full", &fault{kinds: writes, file: ".log", err: syscall.ENOSPC}, full},
		{"log over quota", &fault{kinds: writes, file: ".log", err: syscall.EDQUOT}, full},
		{"log write", &fault{kinds: writes, file: ".log", err: syscall.EIO}, broken},
		{"log sync", &fault{kinds: syncs, file: ".log", err: syscall.EIO}, broken},
		{"reused log full", &fault{kinds: writes, file: ".log", err: syscall.ENOSPC, late: true}, full},
		{"reused log write", &fault{kinds: writes, file: ".log", err: syscall.EIO, late: true}, broken},
		{"reused log sync", &fault{kinds: syncs, file: ".log", err: syscall.EIO, late: true}, broken},
		{"next log", &fault{kinds: creates, file: ".log", err: syscall.ENOSPC}, full},
		{"list of logs create", &fault{kinds: creates, file: "LOGS", err: syscall.ENOSPC}, full},
		{"list of logs write", &fault{kinds: writes, file: "LOGS", err: syscall.ENOSPC}, full},
		{"list of logs sync", &fault{kinds: syncs, file: "LOGS", err: syscall.EIO}, broken},
		{"list of logs rename", &fault{kinds: []errorfs.OpKind{errorfs.OpRename}, file: "LOGS", err: syscall.EIO}, broken},
		{"table create", &fault{kinds: creates, file: ".sst", err: syscall.ENOSPC}, full},
		{"table write", &fault{kinds: writes, file: ".sst", err: syscall.ENOSPC}, full},
		{"table sync", &fault{kinds: syncs, file: ".sst", err: syscall.EIO}, broken},
		{"bodies write", &fault{kinds: writes, file: ".blob", err: syscall.ENOSPC}, full},
		{"bodies sync", &fault{kinds: syncs, file: ".blob", err: syscall.EIO}, broken},
		{"manifest write", &fault{kinds: writes, file: "MANIFEST", err: syscall.EIO}, broken},
		{"manifest sync", &fault{kinds: syncs, file: "MANIFEST", err: syscall.EIO}, broken},
		{"directory sync", &fault{kinds: syncs, file: dir, err: syscall.EIO}, broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			disk, f := vfs.NewCrashableMem(), test.fault
			var log bytes.Buffer
			j := open(t, small(journal.Options{
				FS:     diskfault.Wrap(disk, f.hook),
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}))
			mustCommit(t, j, numbered(1)...)
			acked := 1
			for ; f.late && !f.reused.Load(); acked++ {
				mustCommit(t, j, numbered(acked+1)...)
				if acked > 10_000 {
					t.Fatal("no log was reused")
				}
			}
			f.armed.Store(true)
			var err error
			for ; err == nil && acked < 10_000; acked++ {
				err = commit(j, true, numbered(acked+1)...)
			}
			if err == nil {
				t.Fatal("Commit never failed")
			}
			acked--
			if !errors.Is(err, f.err) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), test.remedy) {
				t.Errorf("Commit: %v\nwant the cause, the directory, and %q", err, test.remedy)
			}
			time.Sleep(20 * time.Millisecond) // for the work under way in the background
			f.over.Store(true)
			for range 3 {
				if again := commit(j, true, numbered(acked+2)...); again == nil || again.Error() != err.Error() {
					t.Errorf("Commit after a failure = %v, want the failure", again)
				}
			}
			if _, getErr := getOne(j, "b1"); getErr == nil || getErr.Error() != err.Error() {
				t.Errorf("Get after a failure = %v, want the failure", getErr)
			}
			if closeErr := j.Close(); closeErr == nil || closeErr.Error() != err.Error() {
				t.Errorf("Close = %v, want the failure", closeErr)
			}
			if f.after != nil {
				t.Errorf("changes of the disk after its failure: %v", f.after)
			}
			select {
			case <-j.Failed():
			default:
				t.Error("Failed is not closed")
			}
			if j.Err() == nil || j.Err().Error() != err.Error() {
				t.Errorf("Err = %v, want the failure", j.Err())
			}
			if log.Len() > 0 { // the caller that gets the error logs it once
				t.Errorf("the failure is logged, too:\n%s", &log)
			}

			for _, unsynced := range []int{0, 100} {
				after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(0, 0))})
				checkNumbered(t, after, acked, acked+1)
			}
		})
	}
}

// numbered returns a batch with its number, and large enough to fill the disk.
func numbered(n int) []change {
	return []change{{numberKey, strconv.Itoa(n)}, {"b" + strconv.Itoa(n), strings.Repeat("x", 20<<10)}}
}

// checkNumbered checks that the batches up to the number of one between least and
// most are there.
func checkNumbered(t *testing.T, fs vfs.FS, least, most int) {
	t.Helper()
	j := open(t, journal.Options{FS: fs})
	found, err := getOne(j, numberKey)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	number, err := strconv.Atoi(found)
	if err != nil || number < least || number > most {
		t.Errorf("%q batches are there, want %d to %d", found, least, most)
	}
	if bodies := contents(t, j, "b"); len(bodies) != number {
		t.Errorf("%d bodies are there, want those of %d batches", len(bodies), number)
	}
	mustClose(t, j)
}

// TestFailedDiskWhileOpening fails each change that opening makes, one after the
// other: no Open may succeed on a disk that failed, or spoil it for the next.
func TestFailedDiskWhileOpening(t *testing.T) {
	for n := 0; ; n++ {
		disk := vfs.NewCrashableMem()
		j := open(t, journal.Options{FS: disk})
		mustCommit(t, j, numbered(1)...)
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, j)

		var ops atomic.Int64
		fs := diskfault.Wrap(crashed, func(op errorfs.Op) error {
			changes := append(append(append([]errorfs.OpKind(nil), writes...), syncs...), creates...)
			for _, kind := range changes {
				if op.Kind == kind && ops.Add(1) == int64(n+1) {
					return syscall.ENOSPC
				}
			}
			return nil
		})
		j, err := journal.Open(journal.Options{Dir: dir, FS: fs})
		if err == nil { // it may be that a table is still being written
			err = errors.Join(commit(j, true, change{"b1", gone}), j.Close())
			if ops.Load() <= int64(n) {
				if err != nil {
					t.Errorf("without a failure: %v", err)
				}
				if n < 5 {
					t.Errorf("opening makes only %d changes: the test has lost its point", n)
				}
				return
			}
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
			t.Errorf("change %d failed: %v, want an error that says so", n, err)
		}
		after := open(t, journal.Options{FS: crashed.CrashClone(vfs.CrashCloneCfg{})})
		if number, err := getOne(after, numberKey); number != "1" {
			t.Errorf("change %d failed: the next Open has batch %q: %v", n, number, err)
		}
		mustClose(t, after)
	}
}

// TestDiskThatStaysFull has writes wait for a table in memory that can never be
// written: Commit must not wait for ever.
func TestDiskThatStaysFull(t *testing.T) {
	var full atomic.Bool
	fs := diskfault.Wrap(vfs.NewMem(), func(op errorfs.Op) error {
		if full.Load() && (strings.HasSuffix(op.Path, ".sst") || strings.HasSuffix(op.Path, ".blob")) {
			return syscall.ENOSPC
		}
		return nil
	})
	j := open(t, small(journal.Options{FS: fs}))
	full.Store(true)
	var err error
	for n := 1; err == nil; n++ { // the test's own timeout is the limit
		err = commit(j, false, change{"b" + strconv.Itoa(n), strings.Repeat("x", 100<<10)})
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Commit: %v, want ENOSPC", err)
	}
	if err := j.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want ENOSPC", err)
	}
}
