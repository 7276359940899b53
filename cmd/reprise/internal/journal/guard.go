package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is the file system that Pebble writes to. It remembers the first failure
// and lets nothing change on the disk after it.
//
// A failed disk cannot be rolled back. Pebble expects to die of a failed log or
// manifest: it calls Logger.Fatalf, and what it does if that returns is
// undefined, from reporting success to deleting tables that the manifest names. A
// second sync after a failed one succeeds without having written anything. So the
// guard turns an error into what recovery is made for: a crash at that moment,
// with the process still there to say why.
//
// It guards what is below the journal's directory only: a backup that fails is a
// failed backup.
type guard struct {
	vfs.FS
	prefix string
	dir    string
	logger *slog.Logger

	failed chan struct{} // closed after the first failure
	once   sync.Once
	err    error // set before failed is closed
}

func newGuard(fs vfs.FS, dir string, logger *slog.Logger) *guard {
	return &guard{FS: fs, prefix: fs.PathJoin(dir, "x")[:len(fs.PathJoin(dir, "x"))-1], dir: dir, logger: logger,
		failed: make(chan struct{})}
}

// fail records err unless something failed before, and returns what failed first.
func (g *guard) fail(err error) error {
	g.once.Do(func() {
		g.err = describe(g.dir, err)
		g.logger.Error("the journal failed; nothing is acknowledged any more", "dir", g.dir, "error", g.err)
		close(g.failed)
	})
	<-g.failed
	return g.err
}

// failure returns what failed, nil if nothing has.
func (g *guard) failure() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// errFrozen is what Pebble gets to hear after a failure.
var errFrozen = errors.New("the journal has failed before")

// change performs a change of a file of the journal, unless one failed before.
func (g *guard) change(what, name string, f func() error) error {
	if g.failure() != nil {
		return errFrozen
	}
	if err := f(); err != nil {
		_ = g.fail(fmt.Errorf("%s %s: %w", what, g.FS.PathBase(name), err))
		return err
	}
	return nil
}

// tidy performs a change that may fail without harm: what is left over is removed
// another time.
func (g *guard) tidy(f func() error) error {
	if g.failure() != nil {
		return errFrozen
	}
	return f()
}

func (g *guard) owns(name string) bool { return strings.HasPrefix(name, g.prefix) || name == g.dir }

func (g *guard) opened(file vfs.File, name string) vfs.File {
	if file == nil || !g.owns(name) {
		return file
	}
	return &guardedFile{File: file, guard: g, name: name}
}

func (g *guard) Create(name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	if !g.owns(name) {
		return g.FS.Create(name, category)
	}
	err = g.change("creating", name, func() error {
		file, err = g.FS.Create(name, category)
		return err
	})
	return g.opened(file, name), err
}

func (g *guard) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	err = g.change("reusing", oldname, func() error {
		file, err = g.FS.ReuseForWrite(oldname, newname, category)
		return err
	})
	return g.opened(file, newname), err
}

func (g *guard) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := g.FS.OpenReadWrite(name, category, options...)
	if err != nil {
		return nil, err
	}
	return g.opened(file, name), nil
}

func (g *guard) OpenDir(name string) (vfs.File, error) {
	file, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return g.opened(file, name), nil
}

func (g *guard) Rename(oldname, newname string) error {
	if !g.owns(newname) {
		return g.FS.Rename(oldname, newname)
	}
	return g.change("renaming", oldname, func() error { return g.FS.Rename(oldname, newname) })
}

func (g *guard) Link(oldname, newname string) error {
	if !g.owns(newname) {
		return g.FS.Link(oldname, newname)
	}
	return g.tidy(func() error { return g.FS.Link(oldname, newname) })
}

func (g *guard) Remove(name string) error {
	if !g.owns(name) {
		return g.FS.Remove(name)
	}
	return g.tidy(func() error { return g.FS.Remove(name) })
}

func (g *guard) RemoveAll(name string) error {
	if !g.owns(name) {
		return g.FS.RemoveAll(name)
	}
	return g.tidy(func() error { return g.FS.RemoveAll(name) })
}

func (g *guard) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file of the journal that is written to.
type guardedFile struct {
	vfs.File
	guard *guard
	name  string
}

func (f *guardedFile) Write(p []byte) (n int, err error) {
	err = f.guard.change("writing", f.name, func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *guardedFile) WriteAt(p []byte, offset int64) (n int, err error) {
	err = f.guard.change("writing", f.name, func() error {
		n, err = f.File.WriteAt(p, offset)
		return err
	})
	return n, err
}

func (f *guardedFile) Sync() error {
	return f.guard.change("syncing", f.name, f.File.Sync)
}

func (f *guardedFile) SyncData() error {
	return f.guard.change("syncing", f.name, f.File.SyncData)
}

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	err = f.guard.change("syncing", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// describe returns err with the directory, the damaged file if there is one, and
// what to do about it.
func describe(dir string, err error) error {
	remedy := ""
	switch {
	case pebble.IsCorruptionError(err):
		file := "a file"
		if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
			file = info.Path
		}
		return fmt.Errorf("journal %s: %s is damaged: %w: look at the disk; then restore the directory from a backup, "+
			"or move it away to begin with an empty one", dir, file, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = ": free space on the disk, then start again: nothing that was acknowledged is lost"
	case errors.Is(err, syscall.EIO):
		remedy = ": look at the disk and the log of the system, then start again on a disk that works: " +
			"nothing that was acknowledged is lost if it can be read"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = ": make the directory writable for the user that reprise runs as, or choose another"
	}
	return fmt.Errorf("journal %s: %w%s", dir, err, remedy)
}
