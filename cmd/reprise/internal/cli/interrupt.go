package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
)

// stopping prints that the program is stopping gracefully, and what a second signal does.
func (a *app) stopping() {
	if a.json.Load() == nil {
		fmt.Fprintln(a.stderr) // after the ^C that the terminal shows
	}
	a.say(slog.LevelInfo, interrupt.Text)
}

// lastAct is called before the program is ended because it did not end by itself after a second
// signal: nothing else kills the commands that it runs, and gives a terminal back.
func (a *app) lastAct() {
	children.KillAll()
	if screen := a.screen.Load(); screen != nil {
		_ = screen.Close() // the program ends anyway
	}
	a.say(slog.LevelError, "stopped at once; something that it waited for did not end")
}

// interruptible returns a context that the first Ctrl-C ends, for commands that have
// nothing to stop gracefully.
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
