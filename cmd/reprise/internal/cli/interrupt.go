package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
)

// stopping says what the first signal has begun, and what a second will do.
func (a *app) stopping() {
	if a.json.Load() == nil {
		fmt.Fprintln(a.stderr) // behind the ^C that the terminal shows
	}
	a.say(slog.LevelInfo, interrupt.Text)
}

// interruptible is a context that a first Ctrl-C ends, for commands in which there
// is nothing to stop gently.
func (a *app) interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(a.ctx)
	go func() {
		select {
		case <-a.drain:
			cancel(errors.New("interrupted"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
