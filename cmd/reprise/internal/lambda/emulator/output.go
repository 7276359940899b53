package emulator

import (
	"bytes"
	"os"
	"sync"
	"syscall"
)

const (
	// maxLine is the length at which a line without an end is cut, so that memory stays bounded.
	maxLine = 256 << 10
	// maxTail is how much of a log the Invoke API returns.
	maxTail = 4 << 10
)

// output reads what one instance writes and splits it into lines.
type output struct {
	file *os.File // the reading end of the pipe
	raw  syscall.RawConn
	emit func(line string) // called in the order of the lines, one at a time
	done chan struct{}     // closed when nothing more is read

	mu     sync.Mutex
	buffer []byte // scratch for reading
	rest   []byte // of a line whose end has not been read
}

// newOutput returns the output and the file that the process is to write to.
func newOutput(emit func(string)) (*output, *os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	raw, err := reader.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	return &output{file: reader, raw: raw, emit: emit, done: make(chan struct{}), buffer: make([]byte, 32<<10)}, writer, nil
}

// close reads the rest and closes the pipe, even if a process still has its other end open.
func (o *output) close() {
	o.drain()
	_ = o.file.Close() // it was only read
	<-o.done
}

// take splits text that was read into lines; o.mu is held.
func (o *output) take(text []byte) {
	o.rest = append(o.rest, text...)
	for {
		line, rest, found := bytes.Cut(o.rest, []byte("\n"))
		if !found {
			break
		}
		o.emit(string(bytes.TrimSuffix(line, []byte("\r"))))
		o.rest = rest
	}
	if len(o.rest) > maxLine {
		o.flush()
	}
}

// flush emits the unfinished line; o.mu is held.
func (o *output) flush() {
	if len(o.rest) > 0 {
		o.emit(string(o.rest))
	}
	o.rest = nil
}

// tail keeps the end of a log.
type tail []byte

func (t *tail) add(line string) {
	*t = append(append(*t, line...), '\n')
	if excess := len(*t) - maxTail; excess > 0 {
		*t = append((*t)[:0], (*t)[excess:]...)
	}
}
