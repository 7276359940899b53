package middleware

import (
	"context"
	"log/slog"

	"github.com/reprise-sqs/reprise"
)

// Logging logs each run of the handler when it has ended, in one line: its verdict, duration and
// error, and in the group "message" which message it was. Bodies and the values of attributes are
// not logged; the text of the handler's error is.
//
// A run that succeeded, or released its message, is logged at [slog.LevelInfo]; one
// that failed at [slog.LevelWarn]; one that asked for a dead letter, or did not
// return, at [slog.LevelError]. To log less for some queue, use a slog handler that filters by
// level. The consumer's own log lines, about panics and problems with the queue, are not affected.
//
// A nil logger means [slog.Default].
func Logging(logger *slog.Logger) Middleware {
	return Metrics(func(ctx context.Context, m *reprise.Message, r Run) {
		l := logger
		if l == nil {
			l = slog.Default() // may be set after this middleware is made
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
