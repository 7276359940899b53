package middleware

import (
	"context"
	"log/slog"

	"github.com/reprise-sqs/reprise"
)

// Logging logs each run of the handler when it has ended, in one line: what it
// asked for, how long it took, its error, and in the group "message" which message
// it was. Bodies, and what attributes hold, are not logged; an error's text is, and
// is the handler's own.
//
// A run that succeeded, or released its message, is logged at [slog.LevelInfo]; one
// that failed at [slog.LevelWarn]; one that asked for a dead letter, or did not
// return, at [slog.LevelError]. A handler of the logger that wants less for some
// queue filters by level. What the consumer logs by itself, a panic or trouble with
// the queue, it logs all the same.
//
// A nil logger stands for [slog.Default].
func Logging(logger *slog.Logger) Middleware {
	return Metrics(func(ctx context.Context, m *reprise.Message, r Run) {
		l := logger
		if l == nil {
			l = slog.Default() // which may be set later than this middleware is made
		}
		level := levelOf(r)
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := []slog.Attr{
			slog.String("asked", r.Asked.String()),
			slog.Duration("duration", r.Duration),
			slog.Any("message", m),
		}
		if r.Err != nil {
			attrs = append(attrs, slog.Any("error", r.Err))
		}
		if cause := context.Cause(ctx); r.Err != nil && cause != nil {
			attrs = append(attrs, slog.Any("cause", cause))
		}
		l.LogAttrs(ctx, level, "message handled", attrs...)
	})
}

func levelOf(r Run) slog.Level {
	switch {
	case r.Err == nil || r.Asked == reprise.OutcomeRelease:
		return slog.LevelInfo
	case r.Asked == reprise.OutcomeDeadLetter || r.Err == ErrNoReturn: //nolint:errorlint // Metrics' own value, which nobody wraps
		return slog.LevelError
	}
	return slog.LevelWarn
}
