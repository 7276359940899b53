package reprise

import (
	"context"

	"github.com/reprise-sqs/reprise/internal/history"
)

// starting tells the observer that d's handler is about to run, and returns the context for
// that run: parent, or a context derived from it. The caller does not hold c.mu.
func (c *Consumer) starting(d *delivery, parent context.Context) context.Context {
	f := c.cfg.Observer.Starting
	if f == nil {
		return parent
	}
	d.run.ctx.parent = parent // needed to judge the attempt if f ends this goroutine
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

// afterwards returns the context for the observer after the end of a run.
func (c *Consumer) afterwards(r *run) context.Context {
	if c.cfg.Observer.Starting == nil {
		return c.runCtx
	}
	return context.WithoutCancel(r.ctx.parent)
}
