package reprise

import (
	"context"

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
		its, trail := f(parent, message(d.Subject()))
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
