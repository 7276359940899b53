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
	// scratchPrefix begins the names of the folders for built files.
	scratchPrefix = "reprise-lambda-"
	// scratchLock is the file that a process keeps locked in its folder for as long as
	// it lives.
	scratchLock = "LOCK"
	// scratchGrace is the age from which on an empty folder counts as left over: a new folder has
	// no lock for a moment.
	scratchGrace = time.Hour
)

// scratch is a temporary folder for built files.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch makes a folder that is removed when the program ends or, if it was killed, by the
// next one.
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
	// Lock the file before it gets its name: other processes consider the owner of an unlocked
	// file dead.
	made := filepath.Join(dir, scratchLock+".new")
	if s.lock, err = os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	locked, err := tryLock(s.lock)
	if err != nil || !locked {
		return nil, fmt.Errorf("locking %s: %w", made, errors.Join(err, errors.New("another user owns it")))
	}
	return s, os.Rename(made, filepath.Join(dir, scratchLock))
}

// remove removes the folder, then its lock.
func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// sweepScratch removes the folders of this user's processes that were killed. It leaves folders
// that may be in use.
func sweepScratch(log *slog.Logger) {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	if err != nil {
		return // the pattern is sound
	}
	for _, dir := range folders {
		if err := sweep(dir); err != nil {
			log.Debug("files that a killed process has left in the temporary folder cannot be removed", "folder", dir, "error", err)
		}
	}
}

// sweep removes dir if its process is gone.
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

// sweepUnlocked removes a folder whose process was killed before it had a lock: the folder
// contains at most an unfinished lock.
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
			return nil // not a folder of ours
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
