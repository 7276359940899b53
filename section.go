package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Every input of a consumer's machine stands between enter and leave: the end of a handler,
// a reply, a timer, a call of an operator. At the end of the section the machine decides what
// goes on, and the shell starts the effects.
//
// lock and unlock are enough for a section that changes nothing that workers or pollers wait
// for: to read the state, or to take the next report.

// enter begins a section that may change what workers and pollers wait for. It takes
// the lock, which leave gives back.
func (c *Consumer) enter() *consumer.Machine { return c.lock() }

// leave ends a section that enter began.
func (c *Consumer) leave() {
	c.guarded.End()
	now := c.guarded.Now()
	if c.pool == nil {
		c.arm(now)
	} else {
		c.pool.finishSection(now)
	}
	c.unlock()
}

// lock takes the lock and begins a section that changes nothing that workers or pollers wait
// for. unlock ends it.
func (c *Consumer) lock() *consumer.Machine {
	c.mu.Lock()
	c.guarded.Begin(c.platform.now(), c.clock.lead())
	return c.guarded
}

// unlock ends a section that lock began.
func (c *Consumer) unlock() {
	c.startEffects()
	c.mu.Unlock()
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
