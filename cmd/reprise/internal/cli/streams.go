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

// stream is an output of the program. Text that is written to it is escaped, see
// [terminal.Escape], even if it is not a terminal: a log file is shown on one in the end.
// Only the standard output of --exec's commands goes to the file unchanged, if that is not a
// terminal.
type stream struct {
	io.Writer
	file *os.File
}

func newStream(f *os.File) stream { return stream{terminal.Writer(f), f} }

// commands returns the writer for the standard output of --exec's commands.
func (s stream) commands() io.Writer {
	if terminal.Is(s.file) {
		return s.Writer
	}
	return s.file
}

// say prints a message about the program itself, in the format of its log.
func (a *app) say(level slog.Level, text string) {
	if log := a.json.Load(); log != nil {
		_ = log.Handler().Handle(context.Background(), slog.NewRecord(time.Now(), level, text, 0)) // whatever the log level
		return
	}
	fmt.Fprintf(a.stderr, "reprise: %s\n", text)
}

// commandErrors returns the writer for the standard error of --exec's commands, which is that of the log, too: records
// of it, if that is JSON, else marked lines.
func (a *app) commandErrors() io.Writer {
	if log := a.json.Load(); log != nil {
		return jsonLines{log.Handler()}
	}
	return markedLines{a.stderr}
}

// markedLines writes each line that a command writes behind a mark, so that it is not taken for one of the log. A piece of a
// line that is too long becomes a line of its own.
type markedLines struct{ to io.Writer }

const commandMark = "command | "

func (l markedLines) Write(p []byte) (int, error) {
	_, err := io.WriteString(l.to, commandMark+strings.TrimRight(string(p), "\r\n")+"\n")
	return len(p), err
}

// jsonLines logs each line that a command writes, whatever the log level.
type jsonLines struct{ to slog.Handler }

func (l jsonLines) Write(p []byte) (int, error) {
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "a command wrote to its standard error", 0)
	r.AddAttrs(slog.String("text", strings.TrimRight(string(p), "\r\n")))
	return len(p), l.to.Handle(context.Background(), r)
}

const (
	// maxLogged bounds how many bytes of one text are logged: the reply of a service, or
	// a message, can have any length.
	maxLogged = 16 << 10
	// maxAPIText bounds how many bytes of a service's error message are shown.
	maxAPIText = 1000
)

// bounded shortens long texts of the log.
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

// apiText returns a service's text on one line, shortened.
func apiText(text string) string { return terminal.Line(text, maxAPIText) }
