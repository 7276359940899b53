package journal_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// TestBackup takes backups on a real disk while batches are committed.
func TestBackup(t *testing.T) {
	temp := t.TempDir()
	j := open(t, journal.Options{Dir: filepath.Join(temp, "journal")})
	const backups, batches = 5, 40
	committed := 0
	for n := range backups {
		least := committed
		done := make(chan error)
		go func() {
			var err error
			for range batches {
				committed++
				if err == nil {
					err = commit(j, committed%2 == 0, numbered(committed)...)
				}
			}
			done <- err
		}()
		backup := filepath.Join(temp, "backups", strconv.Itoa(n))
		if err := j.Backup(backup); err != nil {
			t.Fatalf("Backup: %v", err)
		}
		if err := <-done; err != nil {
			t.Fatalf("Commit: %v", err)
		}
		if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("Stat of the backup: %v, %v, want mode 0700", info.Mode(), err)
		}
		if _, err := journal.Check(journal.Options{Dir: backup}); err != nil {
			t.Errorf("Check of the backup: %v", err)
		}
		if least > 0 {
			checkBackup(t, backup, least, committed)
		}
	}
	// Backups do not change with the journal, or the journal with them.
	mustCommit(t, j, change{"b", goneUntil + "c"}, change{numberKey, "0"})
	checkBackup(t, filepath.Join(temp, "backups", "4"), (backups-1)*batches, backups*batches)
	mustClose(t, j)
}

func checkBackup(t *testing.T, backup string, least, most int) {
	t.Helper()
	j := open(t, journal.Options{Dir: backup, ReadOnly: true})
	found, err := getOne(j, numberKey)
	number, _ := strconv.Atoi(found)
	if err != nil || number < least || number > most {
		t.Errorf("backup %s has %q batches (%v), want %d to %d", backup, found, err, least, most)
	}
	if bodies := contents(t, j, "b"); len(bodies) != number {
		t.Errorf("backup %s has %d bodies, want those of %d batches", backup, len(bodies), number)
	}
	mustClose(t, j)
}

func TestBackupRefuses(t *testing.T) {
	fs := vfs.NewMem()
	j := open(t, journal.Options{FS: fs})
	writeFile(t, fs, "/data/taken/file", "")
	for to, want := range map[string]string{
		"":                "outside",
		dir:               "outside",
		dir + "/backup":   "outside",
		"/data/taken":     "exists",
		"/data/journal/x": "outside",
	} {
		if err := j.Backup(to); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("Backup(%q) = %v, want an error that says %q", to, err, want)
		}
	}
	mustClose(t, j)
}

// TestFailedBackup makes a backup fail at each of its changes: the journal goes on, and the
// remains of the backup are not taken for a journal.
func TestFailedBackup(t *testing.T) {
	const to = "/data/backup"
	for n := 1; ; n++ {
		disk, ops := vfs.NewMem(), 0
		j := open(t, journal.Options{FS: diskfault.Wrap(disk, func(op errorfs.Op) error {
			if strings.HasPrefix(op.Path, to) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if ops++; ops == n {
					return syscall.ENOSPC
				}
			}
			return nil
		})})
		mustCommit(t, j, numbered(1)...)
		err := j.Backup(to)
		mustCommit(t, j, numbered(2)...)
		mustClose(t, j)
		if err == nil && ops < n {
			if n < 10 {
				t.Errorf("a backup makes only %d changes: the test has lost its point", n)
			}
			return
		}
		if err != nil && (!strings.Contains(err.Error(), to) || !strings.Contains(err.Error(), "free space")) {
			t.Errorf("change %d failed: Backup: %v, want the directory and what to do", n, err)
		}
		if err == nil {
			continue // what failed was not needed
		}
		if left, err := journal.Open(journal.Options{Dir: to, FS: disk, ReadOnly: true}); err == nil {
			t.Errorf("change %d failed: what is left is taken for a journal", n)
			mustClose(t, left)
		}
	}
}

func TestCheck(t *testing.T) {
	fs := vfs.NewMem()
	j := open(t, journal.Options{FS: fs})
	mustCommit(t, j, change{"b1", "body"}, change{"b2", "body"}, change{"b3", "body"}, change{"m1", "state"}, change{"v", "1"})
	mustClose(t, j)
	j = open(t, journal.Options{FS: fs})
	mustCommit(t, j, change{"b2", gone})
	if _, err := journal.Check(journal.Options{Dir: dir, FS: fs}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Check while open = %v, want that it is in use", err)
	}
	mustClose(t, j)

	report, err := journal.Check(journal.Options{Dir: dir, FS: fs})
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	if report.DiskBytes == 0 {
		t.Error("Check reports no bytes on the disk")
	}
	report.DiskBytes = 0
	want := journal.Report{Format: journal.Format, Kinds: []journal.Kind{
		{Prefix: 'b', Keys: 2, Bytes: 12}, {Prefix: 'm', Keys: 1, Bytes: 7}, {Prefix: 'v', Keys: 1, Bytes: 2},
	}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	disk, _ := usedDisk(t)
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range names {
		if kindOf(name) != "sst" {
			continue
		}
		clone := disk.CrashClone(vfs.CrashCloneCfg{})
		fileData(t, clone, name)[10] ^= 1
		_, err := journal.Check(journal.Options{Dir: dir, FS: clone})
		if err == nil { // a crash may leave tables that are no longer needed
			continue
		}
		damaged++
		if !strings.Contains(err.Error(), name) {
			t.Errorf("Check with a damaged %s = %v, want an error that names it", name, err)
		}
	}
	if damaged == 0 {
		t.Error("Check found no damage in any table")
	}
}
