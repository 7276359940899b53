//go:build unix

package emulator

import (
	"errors"
	"syscall"
)

// maxDrain bounds what drain reads from a process that never stops writing: what a
// pipe holds, some times over.
const maxDrain = 1 << 20

// run reads until the pipe ends or is closed. Every read asks anew for the pipe: one
// that always has more to read could not be closed otherwise.
func (o *output) run() {
	defer close(o.done)
	for state := readMore; state != readEnd; {
		err := o.raw.Read(func(fd uintptr) bool {
			_, state = o.read(int(fd))
			return state != readBlocked
		})
		if err != nil {
			return // the pipe has been closed here
		}
	}
}

// drain takes what has been written so far, an unfinished line too. What a process
// wrote before it answered an invoke is therefore known before the answer is used.
func (o *output) drain() {
	_ = o.raw.Control(func(fd uintptr) {
		for total := 0; total < maxDrain; {
			n, state := o.read(int(fd))
			if state != readMore {
				break
			}
			total += n
		}
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

type readState int

const (
	readMore readState = iota
	readBlocked
	readEnd
)

// read reads once, without waiting.
func (o *output) read(fd int) (int, readState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := syscall.Read(fd, o.buffer)
	switch {
	case errors.Is(err, syscall.EINTR):
		return 0, readMore
	case errors.Is(err, syscall.EAGAIN):
		return 0, readBlocked
	case err != nil || n == 0:
		return 0, readEnd
	}
	o.take(o.buffer[:n])
	return n, readMore
}
