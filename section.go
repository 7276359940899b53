package reprise

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Every input of a consumer's machine is given in a section, by enter or look: the end of a
// handler, a reply, a timer, a call of an operator. At the end of the section the machine decides
// what goes on, and the shell starts the effects.
//
// A panic in a section is a bug of ours: it leaves the machine between two states, so that its
// next decision could lose messages. No section runs after it. The lock is given back, requests
// and handlers are cancelled, and Run returns an error: see stopBroken. What the consumer held
// becomes visible again when its leases end.

// machineLock is the lock of a machine, or of all machines of a pool.
type machineLock struct {
	sync.Mutex
	failure error         // by itself: that of the section that a panic has interrupted
	stack   []byte        // by itself: of that panic
	broken  chan struct{} // closed when failure is set
}

func newMachineLock() *machineLock { return &machineLock{broken: make(chan struct{})} }

// section runs f under the lock. It reports whether f has run to its end: not if a panic has
// interrupted it, or an earlier section.
func (l *machineLock) section(f func()) (done bool) {
	l.Lock()
	defer l.Unlock()
	if l.failure != nil {
		return false
	}
	defer l.interrupted(&done)
	f()
	return true
}

// interrupted is deferred by section: if f has not returned, it recovers the panic.
func (l *machineLock) interrupted(done *bool) {
	if *done {
		return
	}
	v := recover()
	if v == nil {
		v = "runtime.Goexit was called"
	}
	l.failure = fmt.Errorf("reprise: a bug in this package has broken the consumer, which has stopped (%v): restart the process, and report the bug with the stack in the log", v)
	l.stack = debug.Stack()
	close(l.broken)
}

// broke returns the stack of the panic that has interrupted a section, and the section's error; nil
// if none was.
func (l *machineLock) broke() (stack []byte, failure error) {
	l.Lock()
	defer l.Unlock()
	return l.stack, l.failure
}

// enter runs f in a section that may change what workers and pollers wait for. It reports whether
// the machine has taken that in: not after a bug has broken it.
func (c *Consumer) enter(f func(m *consumer.Machine)) bool {
	return c.mu.section(func() {
		f(c.begin())
		c.guarded.End()
		now := c.guarded.Now()
		if c.pool == nil {
			c.arm(now)
		} else {
			c.pool.finishSection(now)
		}
		c.startEffects() // also if it has just left its pool
	})
}

// look runs f in a section that changes nothing that workers or pollers wait for: to read the state,
// or to take the next report. It reports what enter reports.
func (c *Consumer) look(f func(m *consumer.Machine)) bool {
	return c.mu.section(func() {
		f(c.begin())
		c.startEffects()
	})
}

// begin begins a section. The caller holds the lock.
func (c *Consumer) begin() *consumer.Machine {
	c.guarded.Begin(c.platform.now(), c.clock.lead())
	return c.guarded
}

// startEffects starts the effects of the section. The caller holds the lock.
func (c *Consumer) startEffects() { c.guarded.Effects(c.platform.startEffect) }

// finishSection arms the timers and starts the effects of all of p's consumers, since a change of
// one can concern the others. The caller holds the lock.
func (p *Pool) finishSection(now time.Time) {
	for m := range p.machine.Each {
		shell := p.shells[m]
		shell.arm(now)
		shell.startEffects()
	}
}

// arm sets the timer to the next alarm of the machine. The caller holds the lock. A timer that
// fires earlier is not changed, but set again when it fires: most alarms are stopped or
// postponed before they ring.
func (c *Consumer) arm(now time.Time) {
	next := c.guarded.Next()
	if next.IsZero() || !c.ringsAt.IsZero() && !next.Before(c.ringsAt) {
		return
	}
	c.ringsAt = next
	c.platform.ring(next.Sub(now))
}

// platform is what a consumer runs on: the system. It is an interface so that sections, which
// every file has, know nothing of the effects that come of them. Its methods are called with the
// consumer's lock held.
type platform interface {
	now() time.Time
	ring(in time.Duration)       // calls Consumer.ring once after this time; replaces the call before
	startEffect(consumer.Effect) // starts the effect and does not wait for it
}
