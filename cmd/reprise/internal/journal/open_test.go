package journal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

func TestReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := journal.Open(journal.Options{Dir: dir, FS: fs, ReadOnly: true}); err == nil {
		t.Error("Open of nothing, to be read only, succeeded")
	}
	if _, err := fs.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open made a directory to be read only: Stat: %v", err)
	}

	j := open(t, journal.Options{FS: fs})
	mustCommit(t, j, change{"a", "1"})
	mustClose(t, j)
	j = open(t, journal.Options{FS: fs, ReadOnly: true})
	checkContents(t, j, "", change{"a", "1"})
	if err := commit(j, true, change{"b", "2"}); err == nil {
		t.Error("Commit succeeded on a journal opened to be read only")
	}
	checkContents(t, j, "", change{"a", "1"})
	mustClose(t, j)
}

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		options journal.Options
		file    string // what the directory has
		content string
		want    []string
	}{
		{name: "no directory", options: journal.Options{Dir: ""}, want: []string{"Dir is empty"}},
		{name: "negative interval", options: journal.Options{Dir: dir, SyncInterval: -1}, want: []string{"SyncInterval is -1ns"}},
		{name: "negative cache", options: journal.Options{Dir: dir, CacheBytes: -1}, want: []string{"CacheBytes is -1"}},
		{name: "files of others", options: journal.Options{Dir: dir}, file: "photo.jpg",
			want: []string{dir, "photo.jpg", "choose an empty directory"}},
		{name: "newer format", options: journal.Options{Dir: dir}, file: "JOURNAL", content: "reprise journal, format 2\n",
			want: []string{dir, "format 2", "format 1 only", "use the version of reprise that wrote it"}},
		{name: "damaged format", options: journal.Options{Dir: dir}, file: "JOURNAL", content: "reprise journal, format 1\x00\n",
			want: []string{dir + "/JOURNAL is damaged", "restore"}},
		{name: "empty format", options: journal.Options{Dir: dir}, file: "JOURNAL", want: []string{dir + "/JOURNAL is damaged"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := vfs.NewMem()
			if test.file != "" {
				writeFile(t, fs, fs.PathJoin(dir, test.file), test.content)
			}
			test.options.FS = fs
			_, err := journal.Open(test.options)
			if err == nil {
				t.Fatal("Open succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open: %v\nwant it to say %q", err, want)
				}
			}
			if test.file == "" {
				return
			}
			// The refusal releases the directory and leaves it as it was.
			names, err := fs.List(dir)
			if diff := cmp.Diff([]string{"LOCK", test.file}, names, sorted); err != nil || diff != "" {
				t.Errorf("files after the refusal: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestOpenWhileOpen(t *testing.T) {
	temp := t.TempDir()
	j := open(t, journal.Options{Dir: temp})
	for readOnly, remedy := range map[bool]string{false: "another directory with --data", true: "make a backup"} {
		_, err := journal.Open(journal.Options{Dir: temp, ReadOnly: readOnly})
		if err == nil || !strings.Contains(err.Error(), temp) || !strings.Contains(err.Error(), "in use") ||
			!strings.Contains(err.Error(), remedy) {
			t.Errorf("Open while open = %v, want the directory and what to do", err)
		}
	}
	mustCommit(t, j, change{"a", "1"}) // unharmed
	mustClose(t, j)
	j = open(t, journal.Options{Dir: temp})
	checkContents(t, j, "", change{"a", "1"})
	mustClose(t, j)
}

// TestOpenWhileOpenElsewhere runs itself: the lock must hold between processes.
func TestOpenWhileOpenElsewhere(t *testing.T) {
	if at := os.Getenv("REPRISE_TEST_OPEN"); at != "" {
		_, err := journal.Open(journal.Options{Dir: at})
		fmt.Println("opened elsewhere:", err)
		return
	}
	temp := t.TempDir()
	j := open(t, journal.Options{Dir: temp})
	command := exec.Command(os.Args[0], "-test.run=^TestOpenWhileOpenElsewhere$")
	command.Env = append(os.Environ(), "REPRISE_TEST_OPEN="+temp)
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "in use by another process") {
		t.Errorf("opening in another process: %v\n%s", err, output)
	}
	mustCommit(t, j, change{"a", "1"})
	mustClose(t, j)
}

func TestUnwritableDirectory(t *testing.T) {
	temp := t.TempDir()
	if err := os.WriteFile(temp+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Open(journal.Options{Dir: temp + "/file/journal"})
	if err == nil || !strings.Contains(err.Error(), temp) {
		t.Errorf("Open below a file = %v, want an error that names it", err)
	}
}

// A lock that cannot be had is mostly one in use, and not always.
func TestRefusedLock(t *testing.T) {
	for what, test := range map[string]struct {
		err  error
		want string
	}{
		"a lock that cannot be opened": {&os.PathError{Op: "open", Path: dir + "/LOCK", Err: syscall.EACCES}, "writable for the user that reprise runs as"},
		"too many open files":          {&os.PathError{Op: "open", Path: dir + "/LOCK", Err: syscall.EMFILE}, "ulimit -n"},
		"a lock that is held":          {syscall.EACCES, "in use by another process"},
	} {
		for _, readOnly := range []bool{false, true} {
			fs := vfs.NewMem()
			writeFile(t, fs, fs.PathJoin(dir, "JOURNAL"), "reprise journal, format 1\n")
			_, err := journal.Open(journal.Options{Dir: dir, ReadOnly: readOnly, FS: noLocks{fs, test.err}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", what, err, test.want)
			}
		}
	}
}

// noLocks is a file system that refuses locks.
type noLocks struct {
	vfs.FS
	err error
}

func (f noLocks) Lock(string) (io.Closer, error) { return nil, f.err }

// Where there must be a journal none is begun: a disk that is not mounted leaves an
// empty directory.
func TestOpenExisting(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Open(journal.Options{Dir: dir, FS: fs, Existing: true})
	if err == nil || !strings.Contains(err.Error(), "not a journal: it has no file JOURNAL") {
		t.Errorf("Open in an empty directory: %v", err)
	}
	if names := list(t, fs); len(names) > 0 {
		t.Errorf("it left %v", names)
	}
	mustClose(t, open(t, journal.Options{Dir: dir, FS: fs}))
	mustClose(t, open(t, journal.Options{Dir: dir, FS: fs, Existing: true}))
}
