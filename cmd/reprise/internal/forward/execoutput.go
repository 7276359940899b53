package forward

import (
	"bytes"
	"fmt"
	"io"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Commands may write any amount. The output that is passed on is limited, for each run and, by
// [terminal.Limit], for all runs together. Bytes that are left out are counted.
const (
	// maxOutput is how many bytes of one run's output are passed on at once. Of later output only
	// the last maxOutputEnd bytes are, which mostly contain the reason of a failure.
	maxOutput    = 64 << 10
	maxOutputEnd = 4 << 10
	// maxOutputLine is how long a line may be: a longer one is passed on in pieces.
	maxOutputLine = 8 << 10
)

// outputs passes on, within the limit, what several runs write to stdout or to stderr.
type outputs struct {
	to    io.Writer // gets a line by each Write
	name  string    // of the output
	limit *terminal.Limit
}

func newOutputs(to io.Writer, name string) *outputs {
	return &outputs{to, name, terminal.NewLimit(func(omitted int64) {
		fmt.Fprintf(to, "reprise: %d bytes of the commands' %s are left out: together they may write %d KiB a second\n", omitted, name, terminal.LimitRate>>10)
	})}
}

// pass writes a line if there is room for it.
func (o *outputs) pass(line []byte) {
	if o.limit.Permit(len(line)) {
		_, _ = o.to.Write(line) // an attempt does not fail because its output cannot be written
	}
}

// output is the output of one run.
type output struct {
	all    *outputs
	passed int    // bytes
	line   []byte // not complete yet
	end    []byte // the last bytes written after maxOutput bytes
	behind int64  // bytes after maxOutput
}

func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	for o.behind == 0 && len(p) > 0 {
		room := maxOutputLine - len(o.line)
		piece := p[:min(room, len(p))]
		if i := bytes.IndexByte(piece, '\n'); i >= 0 {
			piece = piece[:i+1]
		}
		o.line, p = append(o.line, piece...), p[len(piece):]
		if o.line[len(o.line)-1] == '\n' || len(o.line) == maxOutputLine {
			o.flush()
		}
	}
	o.keep(p)
	return n, nil
}

// flush passes on the line, or from maxOutput bytes on keeps it as the end.
func (o *output) flush() {
	if o.passed+len(o.line) > maxOutput {
		o.keep(o.line)
	} else {
		o.passed += len(o.line)
		o.all.pass(o.line)
	}
	o.line = o.line[:0]
}

func (o *output) keep(p []byte) {
	o.behind += int64(len(p))
	p = p[max(0, len(p)-maxOutputEnd):]
	o.end = append(o.end, p...)
	if excess := len(o.end) - maxOutputEnd; excess > 0 {
		o.end = append(o.end[:0], o.end[excess:]...)
	}
}

// close passes on the rest when the run has ended, with a line end.
func (o *output) close() {
	if len(o.line) > 0 {
		o.line = append(o.line, '\n')
		o.flush()
	}
	if o.behind == 0 {
		return
	}
	end := o.end
	if o.behind > int64(len(end)) {
		if _, whole, found := bytes.Cut(end, []byte("\n")); found && len(whole) > 0 {
			end = whole
		}
		o.all.pass(fmt.Appendf(nil, "reprise: %d bytes of a command's %s are left out here: it has written more than %d KiB\n", o.behind-int64(len(end)), o.all.name, maxOutput>>10))
	}
	for line := range bytes.Lines(end) {
		if line[len(line)-1] != '\n' {
			line = append(bytes.Clone(line), '\n')
		}
		o.all.pass(line)
	}
}
