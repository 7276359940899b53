package reprise

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
)

// starting tells the observer that d's handler is about to run, and returns the
// context that its run is to have, which is parent or derives from it. c.mu is not
// held.
func (c *Consumer) starting(d *delivery, parent context.Context) context.Context {
	f := c.cfg.Observer.Starting
	if f == nil {
		return parent
	}
	d.run.ctx.parent = parent // for whoever judges, should f end the goroutine
	ctx := parent
	c.tell(func() {
		its, trail := f(parent, d.msg)
		if its != nil {
			ctx = its
		}
		if history.PlausibleTrail(trail) {
			d.run.trail = trail
		}
	})
	return ctx
}

// afterwards is the context of what is told of a run after its end.
func (c *Consumer) afterwards(r *run) context.Context {
	if c.cfg.Observer.Starting == nil {
		return c.runCtx
	}
	return context.WithoutCancel(r.ctx.parent)
}

// leaveTrail notes in d's message what is left of the run that has ended. Whoever
// was told of the message before has the old one.
func (d *delivery) leaveTrail() {
	if d.run.trail == "" {
		return
	}
	left := *d.msg
	left.Trail = d.run.trail
	d.msg = &left
}

// pickUpTrail gives d, just received, what the last attempt left, if it was made here.
func (c *core) pickUpTrail(d *delivery, now time.Time) {
	if trail := c.memory.Recall(d.msg.ID, now).Trail; trail != "" {
		d.msg.Trail = trail
	}
}
