package reprise

import (
	"context"
	"runtime/debug"
)

// afterwork is what Config.AfterDelete is yet to be run for. Part of the core.
type afterwork struct {
	waiting []*Message
	running int
}

// left is how many have not ended.
func (a *afterwork) left() int { return len(a.waiting) + a.running }

// deleted runs Config.AfterDelete for d, whose delete SQS has confirmed, as soon as
// fewer than Config.Concurrency of them run.
func (c *core) deleted(d *delivery) {
	if c.cfg.AfterDelete == nil {
		return
	}
	m := *d.msg // the handler had a copy of its own, and may have kept it
	c.after.waiting = append(c.after.waiting, &m)
	if c.after.running < c.dials.concurrency && !c.closed {
		c.after.running++
		c.want(effect{kind: effectAfterDelete})
	}
}

// afterDelete runs hooks until none waits.
func (c *Consumer) afterDelete() {
	returned := false
	defer func() {
		core := c.enter()
		defer c.leave()
		core.after.running--
		if !returned && len(core.after.waiting) > 0 && !core.closed { // by runtime.Goexit
			core.after.running++
			core.want(effect{kind: effectAfterDelete})
		}
	}()
	for m := c.nextAfterDelete(); m != nil; m = c.nextAfterDelete() {
		c.runAfterDelete(m)
	}
	returned = true
}

func (c *Consumer) nextAfterDelete() *Message {
	core := c.enter()
	defer c.leave()
	if len(core.after.waiting) == 0 || core.closed {
		return nil
	}
	m := core.after.waiting[0]
	core.after.waiting = core.after.waiting[1:]
	return m
}

func (c *Consumer) runAfterDelete(m *Message) {
	ctx, cancel := context.WithCancel(c.settleCtx) // until the stop budget ends
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			c.complain("after delete", "Config.AfterDelete panicked", "message", m, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	c.cfg.AfterDelete(ctx, m)
}
