package journal

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is the file system that Pebble writes to. It keeps the first failure and permits no
// change of the disk after it: the call that failed, and every later call that would change
// something, blocks for ever.
//
// A failed disk cannot be rolled back. Pebble then calls Logger.Fatalf, which must end the
// process. If it returned, Pebble could report success for lost writes, or delete tables that the
// manifest names; a log that cannot be created makes Pebble panic in a goroutine of its own; a
// repeated sync succeeds without having written anything. So the guard makes a failure look like
// a crash at that moment, which Pebble recovers from at the next start, while the rest of the
// process can report it. The blocked Pebble keeps its memory until the process ends. Calls of
// Pebble that may block go through await.
//
// Only files in the journal's directory are guarded: when a backup fails, the journal keeps
// working.
type guard struct {
	vfs.FS
	dir    string
	prefix string // of the names of files in dir

	failed chan struct{} // closed after the first failure
	once   sync.Once
	err    error // set before failed is closed

	logsMu sync.Mutex // held until LOGS, or SYNCED, is written
	logs   []string   // that LOGS names
	ended  bool       // nothing more is listed in the background

	batches atomic.Int64 // in the newest log
	listing atomic.Bool  // SYNCED is about to be written in the background

	progressMu sync.Mutex
	progress   map[string]*progress // of the files that were made since opening
	synced     syncedParts          // that SYNCED lists
	gone       map[string]bool      // of these, the files that were removed since
	manifest   string               // that is in use
}

func newGuard(fs vfs.FS, dir string) *guard {
	return &guard{
		FS:     fs,
		dir:    dir,
		prefix: strings.TrimSuffix(fs.PathJoin(dir, "x"), "x"),
		failed: make(chan struct{}),

		progress: make(map[string]*progress),
		synced:   make(syncedParts),
		gone:     make(map[string]bool),
	}
}

// fail records err unless something failed before, and returns the first failure.
func (g *guard) fail(err error) error {
	g.once.Do(func() {
		g.err = describe(g.dir, err)
		close(g.failed)
	})
	<-g.failed
	return g.err
}

// failure returns the first failure, or nil.
func (g *guard) failure() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// await runs f, and returns its error, or the first failure if that comes earlier.
func (g *guard) await(f func() error) error {
	if err := g.failure(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- recovered(f) }()
	select {
	case err := <-done:
		if failure := g.failure(); failure != nil || err == nil {
			return failure
		}
		return describe(g.dir, err)
	case <-g.failed:
		return g.err
	}
}

// recovered runs f, and returns its error or its panic. Pebble panics with the disk's error if it
// cannot sync the directory of a backup, and with a text on some damage: version 2.1 if a file of
// bodies is missing or its end is damaged.
func recovered(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("panic: %w", p)
		default:
			err = fmt.Errorf("%w: a file of bodies (.blob), or a file that refers to it: panic: %v", errDamaged, p)
		}
	}()
	return f()
}

// stop records err, unless something failed before, and never returns.
func (g *guard) stop(err error) {
	_ = g.fail(err)
	select {}
}

// change performs a change of a file of the journal.
func (g *guard) change(what, name string, f func() error) error {
	if err := g.failure(); err != nil {
		g.stop(err)
	}
	if err := f(); err != nil {
		g.stop(fmt.Errorf("%s %s: %w", what, g.FS.PathBase(name), err))
	}
	return nil
}

// tidy performs a change that may fail without harm: a file that stays is removed later.
func (g *guard) tidy(f func() error) error {
	if err := g.failure(); err != nil {
		g.stop(err)
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

// followed returns a file that was made, or will be written anew from its beginning.
func (g *guard) followed(file vfs.File, name string) vfs.File {
	opened := g.opened(file, name)
	if f, ok := opened.(*guardedFile); ok {
		f.progress = g.follow(name)
	}
	return opened
}

// A marker is an empty file whose name contains that of the manifest. Pebble syncs the directory
// after it has created both; after a crash, a file system that does not keep the order of changes
// might have the marker without the manifest.
const markerPrefix = "marker."

func (g *guard) Create(name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	if !g.owns(name) {
		return g.FS.Create(name, category)
	}
	g.forget(name)
	err = g.change("creating", name, func() error {
		if strings.HasPrefix(g.FS.PathBase(name), markerPrefix) {
			if err := syncDir(g.FS, g.dir); err != nil {
				return err
			}
		}
		file, err = g.FS.Create(name, category)
		return err
	})
	if err == nil {
		g.selected(name)
	}
	return g.followed(file, name), err
}

func (g *guard) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	g.dropLog(oldname)
	g.forget(newname)
	err = g.change("reusing", oldname, func() error {
		file, err = g.FS.ReuseForWrite(oldname, newname, category)
		return err
	})
	return g.followed(file, newname), err
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
	g.dropLog(name)
	g.removed(name)
	return g.tidy(func() error { return g.FS.Remove(name) })
}

func (g *guard) RemoveAll(name string) error {
	if !g.owns(name) {
		return g.FS.RemoveAll(name)
	}
	return g.tidy(func() error { return g.FS.RemoveAll(name) })
}

func (g *guard) MkdirAll(name string, _ os.FileMode) error {
	if g.owns(name) || !onDisk(g.FS) {
		return g.FS.MkdirAll(name, dirMode)
	}
	// The directory of a backup. It must be new: another user could have made it, as a link or
	// with a wider mode, since the check that it does not exist.
	if err := g.FS.MkdirAll(g.FS.PathDir(name), dirMode); err != nil {
		return err
	}
	return os.Mkdir(name, dirMode)
}

func (g *guard) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file of the journal that is open for writing.
type guardedFile struct {
	vfs.File
	guard    *guard
	name     string
	progress *progress // nil: SYNCED does not list the file
}

func (f *guardedFile) Write(p []byte) (n int, err error) {
	f.progress.write(p)
	err = f.guard.change("writing", f.name, func() error {
		n, err = f.File.Write(p)
		return err
	})
	if err == nil {
		f.progress.wrote()
	}
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
	return f.sync(f.File.Sync)
}

func (f *guardedFile) SyncData() error {
	return f.sync(f.File.SyncData)
}

func (f *guardedFile) sync(sync func() error) error {
	part := f.progress.sync()
	err := f.guard.change("syncing", f.name, sync)
	if err == nil {
		f.progress.didSync(part)
	}
	return err
}

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	err = f.guard.change("syncing", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
