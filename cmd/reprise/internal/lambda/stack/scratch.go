package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// scratchPrefix begins the names of the folders for what is built.
	scratchPrefix = "reprise-lambda-"
	// scratchLock is the file that a process keeps locked in its folder for as long as
	// it lives.
	scratchLock = "LOCK"
	// scratchGrace is how old an empty folder must be to belong to nobody: one that is
	// being made has no lock for a moment.
	scratchGrace = time.Hour
)

// scratch is a folder for what is built, in the folder for temporary files.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch makes a folder that is removed when the program ends, or by the next one
// if it was killed.
func newScratch() (_ *scratch, err error) {
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return nil, err
	}
	s := &scratch{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	// Locked before it has its name: whoever finds the file unlocked takes its owner for
	// dead.
	made := filepath.Join(dir, scratchLock+".new")
	if s.lock, err = os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	locked, err := tryLock(s.lock)
	if err != nil || !locked {
		return nil, fmt.Errorf("locking %s: %w", made, errors.Join(err, errors.New("it is somebody else's")))
	}
	return s, os.Rename(made, filepath.Join(dir, scratchLock))
}

// remove removes the folder, and gives up its lock after that.
func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// sweepScratch removes the folders of this user's processes that were killed. What it
// cannot judge it leaves.
func sweepScratch(log *slog.Logger) {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	if err != nil {
		return // the pattern is sound
	}
	for _, dir := range folders {
		if err := sweep(dir); err != nil {
			log.Debug("what a process that was killed has left in the temporary folder cannot be removed", "folder", dir, "error", err)
		}
	}
}

// sweep removes dir if it is left over.
func sweep(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !ownedByUs(info) {
		return ignoreMissing(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, scratchLock), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return sweepUnlocked(dir, info)
	}
	if err != nil {
		return err
	}
	locked, err := tryLock(lock)
	if err == nil && locked {
		err = os.RemoveAll(dir)
	}
	return errors.Join(err, lock.Close())
}

// sweepUnlocked removes a folder that was left before it had a lock: it has nothing
// but an unfinished one.
func sweepUnlocked(dir string, info fs.FileInfo) error {
	if time.Since(info.ModTime()) < scratchGrace {
		return nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), scratchLock) {
			return nil // of something else
		}
	}
	return os.RemoveAll(dir)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
