//go:build unix

package emulator

import (
	"errors"
	"syscall"
)

// maxDrain bounds what drain reads from a process that never stops writing: some times the size
// of a pipe.
const maxDrain = 1 << 20

// run reads until the pipe ends or is closed. Each read takes the pipe anew: otherwise a pipe
// that always has more to read could not be closed.
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

// drain reads the output written so far, an unfinished line included. So the output before an
// answer is known before the answer is used.
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
