// Package interrupt stops a program gracefully at the first signal, and at once at the
// second.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Error is the cause of a context that a second signal ended.
type Error struct{ Signal syscall.Signal }

func (e Error) Error() string { return "stopped by a second " + e.Signal.String() }

// ExitCode returns the exit code of the program: 128 plus the signal's number.
func (e Error) ExitCode() int { return 128 + int(e.Signal) }

// Text is printed at the first signal: it describes what the program does now, and the
// effect of a second signal.
const Text = "stopping gracefully; press Ctrl-C again to stop now"

const (
	// sayWithin is how long the stop waits until Text is printed: nobody may be reading what
	// the program prints.
	sayWithin = time.Second
	// endWithin is how long the program may take to end after the second signal: to kill the
	// commands that it runs, and to say that it was stopped. A read or write that no context
	// ends would keep it for ever.
	endWithin = 3 * time.Second
	// exitWithin is how long Config.Last may take.
	exitWithin = time.Second
)

// Requested reports whether drain is closed: that of [Notify], or of work that is stopped like a program.
func Requested(drain <-chan struct{}) bool {
	select {
	case <-drain:
		return true
	default:
		return false
	}
}

// Config is what a program does at the signals.
type Config struct {
	// Say prints [Text] at the first signal. Required.
	Say func()
	// Last is called before a program is ended that has not ended by itself, 3 s after the
	// second signal or at the third: it cleans up what would outlive the process. It has one
	// second. Default: nothing is done.
	Last func()
}

// Notify listens for SIGINT and SIGTERM. The first closes drain. The second ends ctx, with an
// [Error] as its cause; the program should call release and exit with its code. If it does not
// call release within 3 s, or at a third signal, Notify exits with that code: what hangs cannot
// keep a program from its end.
func Notify(parent context.Context, cfg Config) (ctx context.Context, drain <-chan struct{}, release func()) {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, drain, end := watch(parent, cfg, signals, os.Exit)
	return ctx, drain, func() {
		signal.Stop(signals)
		end()
	}
}

// watch is Notify for the signals of a channel; exit ends the program.
func watch(parent context.Context, cfg Config, signals <-chan os.Signal, exit func(code int)) (ctx context.Context, drain <-chan struct{}, end func()) {
	ctx, cancel := context.WithCancelCause(parent)
	draining, ended := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-ended:
			return
		}
		var second os.Signal
		select {
		case <-doing(cfg.Say):
		case <-time.After(sayWithin):
		case second = <-signals:
		}
		close(draining)
		if second == nil {
			select {
			case second = <-signals:
			case <-ended:
				return
			}
		}
		number, _ := second.(syscall.Signal)
		reason := Error{number}
		cancel(reason)
		select {
		case <-ended:
			return
		case <-signals:
		case <-time.After(endWithin):
		}
		if cfg.Last != nil {
			select {
			case <-doing(cfg.Last):
			case <-time.After(exitWithin):
			}
		}
		exit(reason.ExitCode())
	}()
	return ctx, draining, func() {
		cancel(nil)
		close(ended)
	}
}

// doing calls f and returns a channel that is closed when f has returned.
func doing(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}
