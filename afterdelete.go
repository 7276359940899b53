package reprise

import (
	"context"
	"runtime/debug"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// afterDelete runs Config.AfterDelete for the deleted messages that wait for it, until none
// is left.
func (c *Consumer) afterDelete() {
	defer func() { // even if the user's code ends this goroutine
		c.enter(func(m *consumer.Machine) { m.AfterDeleteEnded() })
	}()
	for m := c.nextDeleted(); m != nil; m = c.nextDeleted() {
		c.runAfterDelete(m)
	}
}

// nextDeleted returns a copy of the next message: the observer may have kept the one that it
// was given.
func (c *Consumer) nextDeleted() *Message {
	var deleted consumer.Subject
	var ok bool
	c.enter(func(m *consumer.Machine) { deleted, ok = m.NextDeleted() })
	if !ok {
		return nil
	}
	m := *message(deleted)
	return &m
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
