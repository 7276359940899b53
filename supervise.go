package reprise

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// survive runs f, recovers its panic, and reports whether f returned.
func (c *Consumer) survive(name string, f func()) (returned bool) {
	defer func() {
		if returned {
			return
		}
		v, stack := recover(), debug.Stack()
		if v == nil {
			v = "runtime.Goexit was called"
		}
		c.look(func(m *consumer.Machine) { m.Degrade(fmt.Sprintf("the %s panicked and was restarted: %v", name, v)) })
		// The panic may have come from the logger.
		defer func() { _ = recover() }()
		c.log.Error("a part of the consumer panicked; restarting it", "part", name, "panic", v, "stack", string(stack))
	}()
	f()
	return true
}

// tell calls an observer, which is user code, and logs its panic.
func (c *Consumer) tell(f func()) {
	defer func() {
		if v := recover(); v != nil {
			c.complain("observer", "the observer panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// complain logs a problem, but each kind at most once per [consumer.ComplaintEvery]: a queue
// of two million failing messages must not become two million lines. The caller does not hold
// c.mu, because a logger may block.
func (c *Consumer) complain(kind, text string, args ...any) {
	if c.mayComplain(kind) {
		c.log.Error(text, args...)
	}
}

// mayComplain reports whether a problem of that kind may be logged now. All are logged after a bug has
// broken the machine, which counts them: there will not be many.
func (c *Consumer) mayComplain(kind string) (due bool) {
	return !c.look(func(m *consumer.Machine) { due = m.MayComplain(kind) }) || due
}

// logPanic logs that a handler panicked, with its stack if none was logged within
// [consumer.ComplaintEvery]: stacks of two million messages would fill the disk.
func (c *Consumer) logPanic(p *PanicError, text string, args ...any) {
	args = append(args, "panic", p.Value)
	if c.mayComplain("stack of a panic") {
		args = append(args, "stack", string(p.Stack))
	}
	c.log.Error(text, args...)
}

// hostname returns the default of Config.Name.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// safeLog is a slog.Handler that turns panics of the user's handler into errors.
type safeLog struct{ slog.Handler }

func (s safeLog) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the logger panicked: %v", v)
		}
	}()
	return s.Handler.Handle(ctx, r)
}
