// Package interrupt stops a program gracefully at the first signal, and at once at the
// second.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Error is the cause of a context that a second signal ended.
type Error struct{ Signal syscall.Signal }

func (e Error) Error() string { return "stopped by a second " + e.Signal.String() }

// ExitCode returns the exit code of the program: 128 plus the signal's number.
func (e Error) ExitCode() int { return 128 + int(e.Signal) }

// Text is printed at the first signal: it describes what the program does now, and the
// effect of a second signal.
const Text = "stopping gracefully; press Ctrl-C again to stop now"

// Requested reports whether drain is closed: that of [Notify], or of work that is stopped like a program.
func Requested(drain <-chan struct{}) bool {
	select {
	case <-drain:
		return true
	default:
		return false
	}
}

// Notify listens for SIGINT and SIGTERM. The first calls say, which should print [Text],
// and closes drain. The second ends ctx, with an [Error] as its cause.
func Notify(parent context.Context, say func()) (ctx context.Context, drain <-chan struct{}, release func()) {
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
		say()
		close(draining)
		select {
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			cancel(Error{number})
		case <-ctx.Done():
		}
	}()
	return ctx, draining, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
