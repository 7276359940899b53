package forward

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
)

// lineProcess is a process of [Lines].
type lineProcess struct {
	stdin   *os.File
	stdout  *os.File
	said    chan said // what it writes; closed at the end
	stderr  *tail
	used    bool               // it has answered
	cancel  context.CancelFunc // stops the process
	stopped <-chan struct{}    // closed by cancel
	ended   chan struct{}      // closed when it has ended with err
	err     error
	left    int64 // how many bytes it has not read, when it has ended
}

// said is a line that a process has written, or why there is none.
type said struct {
	line []byte
	err  error
}

var errEnded = errors.New("the worker ended")

func (l *Lines) start() (_ *lineProcess, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &lineProcess{said: make(chan said), stderr: &tail{}, cancel: cancel, stopped: ctx.Done(), ended: make(chan struct{})}
	stdin, stdout, err := p.pipes()
	if err != nil {
		cancel()
		return nil, err
	}
	cmd := shell(ctx, l.cfg.Command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, p.stderr
	if l.stderr != nil {
		p.stderr.also = &lineWriter{to: l.stderr}
	}
	mark := children.NewMark()
	cmd.Env = append(inherited(), "REPRISE_QUEUE="+l.cfg.Queue, mark)
	cmd.WaitDelay = termGrace + pipeGrace
	go func() {
		defer close(p.ended)
		p.err = children.New(cmd, mark, termGrace).Run()
		closePipes(p.stdin) // ends a write to a process that reads no more
		p.left, _ = io.Copy(io.Discard, stdin)
		closePipes(stdin, stdout)                                  // now its reader sees the end,
		time.AfterFunc(pipeGrace, func() { closePipes(p.stdout) }) // although a process that it left behind may have it open
	}()
	go p.read()
	return p, nil
}

// pipes makes the pipes of a process, and returns its ends of them.
func (p *lineProcess) pipes() (stdin, stdout *os.File, err error) {
	if stdin, p.stdin, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if p.stdout, stdout, err = os.Pipe(); err != nil {
		closePipes(stdin, p.stdin)
		return nil, nil, err
	}
	return stdin, stdout, nil
}

// closePipes closes ends of pipes. An error could only say that one is closed already.
func closePipes(ends ...*os.File) {
	for _, end := range ends {
		_ = end.Close()
	}
}

// read reads what the process writes, line by line, also while it has no message: then nothing must come.
func (p *lineProcess) read() {
	defer close(p.said)
	for lines := bufio.NewReaderSize(p.stdout, maxAnswer); ; {
		line, err := lines.ReadSlice('\n')
		select {
		case p.said <- said{bytes.Clone(line), err}:
		case <-p.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// exchange writes a line and reads the answer. unread reports that the process has ended, and has read nothing of the line.
func (p *lineProcess) exchange(line []byte, answer *Answer) (unread bool, err error) {
	n, err := p.stdin.Write(line)
	if err != nil { // it reads no more
		<-p.ended
		return p.left >= int64(n), errEnded
	}
	said, more := <-p.said
	switch {
	case errors.Is(said.err, bufio.ErrBufferFull):
		return false, fmt.Errorf("the worker's answer is longer than %d KiB", maxAnswer>>10)
	case !more, said.err != nil:
		<-p.ended
		return p.left >= int64(n), errEnded
	}
	if err := json.Unmarshal(bytes.TrimSpace(said.line), answer); err != nil {
		return false, fmt.Errorf("the worker's answer is not an object of JSON on one line: %q: only answers go to the standard output", said.excerpt())
	}
	return false, nil
}

// unasked is what was wrong with a line that came while the process had no message.
func (s *said) unasked() error {
	if len(s.line) == 0 {
		return errEnded
	}
	return fmt.Errorf("the worker wrote %q: each message has one answer, and nothing else goes to the standard output", s.excerpt())
}

func (s *said) excerpt() string {
	return excerpt(s.line[:min(len(s.line), maxErrorText)])
}

// failed judges the end of a process that has been stopped, or that has ended by itself.
func (p *lineProcess) failed(err error) error {
	<-p.ended
	if !errors.Is(err, errEnded) {
		return Unavailable.apply(err) // whatever the message, it does not speak the protocol
	}
	exit, ended := errors.AsType[*exec.ExitError](p.err)
	if p.err != nil && !ended {
		return notRun(fmt.Errorf("running the worker: %w", p.err))
	}
	code, state := 0, "exit status 0"
	if ended {
		code, state = exit.ExitCode(), exit.String()
	}
	failure := &ExitError{Code: code, State: state, Stderr: p.stderr.text()}
	switch code {
	case exitNotExecutable, exitNotFound, exitUnavailable, exitConfiguration:
		return Unavailable.apply(failure)
	}
	return failure
}

// stop stops the process, and returns when it has ended and its pipes are closed.
func (p *lineProcess) stop() {
	p.cancel()
	<-p.ended
	closePipes(p.stdin, p.stdout)
}

// close lets the process end by itself.
func (p *lineProcess) close() {
	closePipes(p.stdin)
	select {
	case <-p.ended:
	case <-time.After(termGrace):
	}
	p.stop()
}
