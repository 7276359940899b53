//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package stack

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// tryLock locks file until it is closed, which the end of the process does too. It
// reports false if another process, or this one by another file, has it locked.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// ownedByUs reports whether the file is this user's.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
