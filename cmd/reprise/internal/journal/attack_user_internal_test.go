//go:build unix

// Holds off another user of the machine, who may look into every directory whose mode
// lets him, and write where everybody may: /tmp, and directories with wide modes.

package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// wideUmask lets files have the modes that they ask for. The umask is the process's:
// tests that call it run alone.
func wideUmask(t *testing.T) {
	t.Helper()
	old := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(old) })
}

// wideFiles are the files below dir that others may use.
func wideFiles(t *testing.T, dir string) (wide []string, all int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // an open journal removes files that it no longer needs
		}
		if err != nil {
			return err
		}
		all++
		if info.Mode().Perm()&others != 0 {
			wide = append(wide, info.Mode().String()+" "+entry.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return wide, all
}

// churn commits until there are tables, files of bodies and logs that are used again.
func churn(t *testing.T, j *Journal) {
	t.Helper()
	for i := range 200 {
		b := new(sqsserver.Batch)
		b.Set([]byte{'b', byte(i)}, bytes.Repeat([]byte{byte(i)}, 4<<10))
		if err := j.Commit(b, i%50 == 0); err != nil {
			t.Fatal(err)
		}
		if i%40 == 39 {
			if err := j.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAttackJournalFiles: with every umask and mode of the directory, no other user may use a
// file of a journal or of its backup.
func TestAttackJournalFiles(t *testing.T) {
	temp := t.TempDir()
	wideUmask(t)
	dir, backup := filepath.Join(temp, "journal"), filepath.Join(temp, "backup")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // G301: which is the attack
		t.Fatal(err)
	}
	j, err := Open(Options{Dir: dir, memTable: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	churn(t, j)
	if err := j.Backup(backup); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, backup} {
		if wide, all := wideFiles(t, dir); len(wide) > 0 || all < 6 {
			t.Errorf("of %d files in %s others may use %q", all, dir, wide)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if wide, _ := wideFiles(t, dir); len(wide) > 0 {
		t.Errorf("after the end others may use %q", wide)
	}
}

// TestAttackOlderFiles: what an earlier version has left for everybody to read is
// taken away from them, and both that and the directory's mode are said.
func TestAttackOlderFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	churn(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Chmod(filepath.Join(dir, entry.Name()), 0o644); err != nil { //nolint:gosec // G302: see above
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // G302: see above
		t.Fatal(err)
	}
	var log bytes.Buffer
	j, err = Open(Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if wide, _ := wideFiles(t, dir); len(wide) > 0 {
		t.Errorf("others may use %q", wide)
	}
	for _, want := range []string{"had access to files of the data directory", "list the data directory", "chmod 700 " + dir} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}

// TestAttackPlantedDirectory: a directory or link that another user has put in the journal's
// place is refused, and a warning is logged for modes that volumes of containers have. The
// files are this user's, so the test pretends to be another user.
func TestAttackPlantedDirectory(t *testing.T) {
	temp := t.TempDir()
	wideUmask(t)
	made := func(name string, mode os.FileMode) string {
		path := filepath.Join(temp, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(to, name string) string {
		path := filepath.Join(temp, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := made("own", 0o700)
	made("public", 0o777|fs.ModeSticky)
	open := made("open", 0o777)
	inPublic, inOpen := made("public/journal", 0o700), made("open/journal", 0o700)
	wide, readable := made("wide", 0o770), made("readable", 0o750)
	plain, planted := link(own, "link"), link(own, "public/link")
	us := uint32(os.Getuid())
	if us == 0 { // the owner of all that was made is the superuser, whom everybody trusts
		us = 1234
		for _, path := range []string{own, inPublic, inOpen, wide, readable, plain, planted} {
			if err := os.Lchown(path, int(us), -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	const stranger = 4321
	for _, test := range []struct {
		name, dir string
		uid       uint32
		refused   string // empty: it is not
		warned    string // empty: it is not
	}{
		{"our own", own, us, "", ""},
		{"our own by a link", plain, us, "", ""},
		{"our own in /tmp", inPublic, us, "", ""},
		{"our own by our link in /tmp", planted, us, "", ""},
		{"their link in /tmp", planted, stranger, "symbolic link", ""},
		{"theirs in /tmp", inPublic, stranger, "belongs to the user", ""},
		{"theirs", own, stranger, "belongs to the user", ""},
		{"theirs, for the superuser", own, 0, "", "belongs to another user"},
		{"theirs in /tmp, for the superuser", inPublic, 0, "belongs to the user", ""},
		{"the group may write", wide, us, "", "remove and replace"},
		{"the group may read", readable, us, "", "list the data directory"},
		{"in a directory that everybody may rename in", inOpen, us, "", "chmod o-w " + open},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			err := auditDirectory(slog.New(slog.NewTextHandler(&log, nil)), test.dir, test.uid)
			if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("refused: %v, want %q", err, test.refused)
			}
			if (log.Len() > 0) != (test.warned != "") || !strings.Contains(log.String(), test.warned) {
				t.Errorf("logged %q, want %q", log.String(), test.warned)
			}
		})
	}
}
