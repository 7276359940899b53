package cli

import (
	"context"
	"errors"
)

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
