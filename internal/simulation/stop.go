package simulation

import (
	"context"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Left is how a stop has ended.
type Left struct {
	Abandoned []string // ids of messages whose handlers have not returned
	Unsettled []string // ids of messages that were not settled in time
}

// Stop has the consumer drain: it receives no more and, within Settings.StopBudget, lets handlers end and
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
		c.receiveEnds(r)
		c.enter().ReceiveFailed(r.poller, r.n, Failure(context.Canceled))
		c.leave()
	}
	for _, r := range c.running {
		c.cut(r, consumer.CutStopping)
	}
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
	m := c.enter()
	m.Close()
	c.leave()
	var left Left
	left.Abandoned, left.Unsettled = c.enter().Left()
	told(left)
}
