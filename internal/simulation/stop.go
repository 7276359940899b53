package simulation

import (
	"context"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Left is what a stop has left behind.
type Left struct {
	Abandoned    []string // ids of messages whose handlers have not returned
	Unsettled    []string // ids of messages that were not settled in time
	AfterDeletes int      // calls of Spec.Deleted that are left
	Counts       consumer.Counts
}

// Drained reports whether nothing is left.
func (l Left) Drained() bool { return len(l.Abandoned)+len(l.Unsettled)+l.AfterDeletes == 0 }

// Stop makes the consumer drain: it receives nothing more and, within Settings.StopBudget, lets handlers end and
// settles their messages. stopped is called once at the end. Further calls do nothing.
func (c *Consumer) Stop(stopped func(Left)) {
	if c.onStopped != nil || c.machine.Closed() {
		return
	}
	c.onStopped = stopped
	c.enter().Stop()
	c.leave()
	c.Process.After(c.Settings.SoftBudget, func() {
		if c.onStopped != nil {
			c.stopHandlers()
		}
	})
	c.Process.After(c.Settings.StopBudget, c.stopped)
	c.emptied()
}

// stopHandlers ends the contexts of receives and handlers.
func (c *Consumer) stopHandlers() {
	c.enter().StopHandlers()
	c.leave()
	for len(c.receiving) > 0 {
		r := c.receiving[0]
		r.over = true
		c.receiveEnds(r)
		c.enter().ReceiveFailed(r.poller, r.n, Failure(context.Canceled))
		c.leave()
	}
	for _, s := range c.running {
		if s.cut == consumer.CutNone {
			c.cut(s, consumer.CutStopping)
		}
	}
	c.interrupt()
}

// emptied ends a stop if nothing is left.
func (c *Consumer) emptied() {
	if c.enter().Empty() {
		c.stopped()
	}
}

// stopped ends a stop.
func (c *Consumer) stopped() {
	told := c.onStopped
	if told == nil {
		return
	}
	c.onStopped = nil
	c.enter().Close()
	c.leave()
	c.tellSettled()
	m := c.enter()
	c.closed()
	left := Left{AfterDeletes: m.AfterDeletesLeft(), Counts: m.Status(m.Now()).Counts}
	left.Abandoned, left.Unsettled = m.Left()
	c.leave()
	told(left)
}
