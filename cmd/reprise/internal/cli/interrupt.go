package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// signalError is the cause of the end of a context that a second signal ended.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "stopped by a second " + e.signal.String() }

// interrupts listens for SIGINT and SIGTERM. The first closes drain, and says on w
// what a second will do: it ends ctx, with a signalError as its cause.
func interrupts(parent context.Context, w io.Writer) (ctx context.Context, drain <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	draining := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		fmt.Fprintln(w, "\nreprise: stopping; once more to stop at once")
		close(draining)
		select {
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			cancel(signalError{number})
		case <-ctx.Done():
		}
	}()
	return ctx, draining, func() {
		signal.Stop(signals)
		cancel(nil)
	}
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
