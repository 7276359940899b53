package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// stream is an output of the program. What is written to it is escaped, see
// [terminal.Escape], also where it is no terminal: the program's own text is looked at on
// one in the end. Only what commands of --exec write goes to the file as it is, where
// that is no terminal.
type stream struct {
	io.Writer
	file *os.File
}

func newStream(f *os.File) stream { return stream{terminal.Writer(f), f} }

// commands is where commands of --exec write to.
func (s stream) commands() io.Writer {
	if terminal.Is(s.file) {
		return s.Writer
	}
	return s.file
}

// say prints what happens to the program itself, between the lines of its log and in
// their form.
func (a *app) say(level slog.Level, text string) {
	if log := a.json.Load(); log != nil {
		_ = log.Handler().Handle(context.Background(), slog.NewRecord(time.Now(), level, text, 0)) // whatever the least level
		return
	}
	fmt.Fprintf(a.stderr, "reprise: %s\n", text)
}

// commandErrors is where commands of --exec write their standard error to: lines of the
// log, if that is JSON.
func (a *app) commandErrors() io.Writer {
	if log := a.json.Load(); log != nil {
		return jsonLines{log.Handler()}
	}
	return a.stderr.commands()
}

// jsonLines makes a record of each line that a command writes, whatever the least level.
type jsonLines struct{ to slog.Handler }

func (l jsonLines) Write(p []byte) (int, error) {
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "a command wrote to its standard error", 0)
	r.AddAttrs(slog.String("text", strings.TrimRight(string(p), "\r\n")))
	return len(p), l.to.Handle(context.Background(), r)
}

const (
	// maxLogged is how many bytes of one text are logged: a reply of a service, or a
	// message, can be as long as it likes.
	maxLogged = 16 << 10
	// maxAPIText is how many bytes of a service's error message are shown.
	maxAPIText = 1000
)

// bounded shortens long texts of a log.
func bounded(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		if len(v) > maxLogged {
			a.Value = slog.StringValue(terminal.Shorten(v, maxLogged))
		}
	case error:
		if text := v.Error(); len(text) > maxLogged {
			a.Value = slog.StringValue(terminal.Shorten(text, maxLogged))
		}
	}
	return a
}

// boundedWithUnits is bounded for JSON, in which slog writes durations as nanoseconds: they
// read as in the text form, such as 25s.
func boundedWithUnits(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return bounded(groups, a)
}

// apiText is what a service says, on one line.
func apiText(text string) string { return terminal.Line(text, maxAPIText) }
