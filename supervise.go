package reprise

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"
)

// task runs f in a goroutine of its own that drain waits for. It is called with the lock
// held.
func (c *Consumer) task(name string, f func()) {
	c.tasks.Add(1)
	c.crew.run(c.mu, func() {
		defer c.tasks.Done()
		c.survive(name, f)
	})
}

// survive runs f and reports whether it returned rather than panicked.
func (c *Consumer) survive(name string, f func()) (returned bool) {
	defer func() {
		if returned {
			return
		}
		v, stack := recover(), debug.Stack()
		if v == nil {
			v = "runtime.Goexit was called"
		}
		core := c.lock()
		core.health.degrade(fmt.Sprintf("the %s panicked and was restarted: %v", name, v))
		c.unlock()
		// The logger may be what panicked.
		defer func() { _ = recover() }()
		c.log.Error("a part of the consumer panicked; restarting it", "part", name, "panic", v, "stack", string(stack))
	}()
	f()
	return true
}

// tell calls an observer. A panic of it, which is the user's code, is logged and
// harms nothing.
func (c *Consumer) tell(f func()) {
	defer func() {
		if v := recover(); v != nil {
			c.complain("observer", "the observer panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// tellSettled tells the observer of the messages released since the last call.
func (c *Consumer) tellSettled() {
	f := c.cfg.Observer.Settled
	if f == nil {
		return
	}
	core := c.lock()
	events := core.untold
	core.untold = nil
	c.unlock()
	for _, e := range events {
		c.tell(func() { f(c.runCtx, e) })
	}
}

// complaintEvery is how often one kind of complaint is logged.
const complaintEvery = 30 * time.Second

// complain logs a problem, but each kind only so often: a queue of two million
// failing messages must not become two million lines. The caller does not hold
// c.mu, for a logger may block.
func (c *Consumer) complain(kind, text string, args ...any) {
	core := c.lock()
	due := core.mayComplain(kind)
	c.unlock()
	if due {
		c.log.Error(text, args...)
	}
}

// complainLater has complain called without the lock.
func (c *core) complainLater(kind, text string, args ...any) {
	if c.mayComplain(kind) {
		c.inOrder(func(*Consumer) { c.log.Error(text, args...) })
	}
}

func (c *core) mayComplain(kind string) bool {
	if last, ok := c.said[kind]; ok && c.now.Sub(last) < complaintEvery {
		return false
	}
	c.said[kind] = c.now
	return true
}

// healthState is what Status says of the consumer's health. Part of the core.
type healthState struct {
	state       Health
	problem     string
	lastReceive time.Time
	lastSettle  time.Time
}

func (h *healthState) set(state Health, problem string) {
	h.state, h.problem = state, problem
}

// degrade notes a problem that does not keep the consumer from working.
func (h *healthState) degrade(problem string) {
	if h.state == HealthOK || h.state == HealthDegraded {
		h.set(HealthDegraded, problem)
	}
}

// failing notes that receives fail.
func (h *healthState) failing(problem string) {
	if h.state < HealthStopping {
		h.set(HealthFailing, problem)
	}
}

// received notes a receive that succeeded: whatever kept receives from it is over.
func (h *healthState) received(now time.Time) {
	h.lastReceive = now
	if h.state == HealthFailing {
		h.set(HealthOK, "")
	}
}

// settled notes an acknowledged settlement.
func (h *healthState) settled(now time.Time) { h.lastSettle = now }

// mended notes that what degraded the consumer works again.
func (h *healthState) mended() {
	if h.state == HealthDegraded {
		h.set(HealthOK, "")
	}
}

// hostname is the default of Config.Name.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// safeLog is a slog.Handler whose panics, which are the user's code, harm nothing.
type safeLog struct{ slog.Handler }

func (s safeLog) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the logger panicked: %v", v)
		}
	}()
	return s.Handler.Handle(ctx, r)
}
