package reprise

import (
	"context"
	"errors"
	"sync"
	"time"
)

// attemptContext is the context of one attempt. A standard cancellable context costs as much
// as the rest of the consumer's work for a small message, and most handlers never use it: so
// it is made at its first use. From then on attemptContext only points to it.
type attemptContext struct {
	parent context.Context
	batch  *batchContext // of the batch that the message is part of; nil: of none
	msg    *Message      // the handler's; nil: this is the context of a batch

	mu    sync.Mutex
	live  *liveContext // nil until the first use
	ended error        // the cause, if it ended before the first use
}

// liveContext is a standard context with the means to end it.
type liveContext struct {
	context.Context
	cancel context.CancelCauseFunc
	free   context.CancelFunc // of the timer; nil without a timeout
}

// start makes c the context of an attempt that begins now. The machine may end it meanwhile.
func (c *attemptContext) start(parent context.Context, timeout time.Duration) {
	c.parent = parent
	if timeout > 0 {
		timed, free := context.WithTimeout(parent, timeout) // the timer must run even if the handler never uses the context
		c.mu.Lock()
		defer c.mu.Unlock()
		c.make(timed, free)
	}
}

// make makes the standard context. The caller holds c.mu.
func (c *attemptContext) make(parent context.Context, free context.CancelFunc) {
	c.live = &liveContext{free: free}
	c.live.Context, c.live.cancel = context.WithCancelCause(parent)
	if c.ended != nil {
		c.live.cancel(c.ended)
	}
}

// look returns the standard context, and makes it at its first use.
func (c *attemptContext) look() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.make(c.parent, nil)
	}
	return c.live
}

// end cancels the context with cause. Only the first call has an effect.
func (c *attemptContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = cause
		if c.batch != nil && errors.Is(cause, ErrLeaseLost) {
			c.batch.leaseLost()
		}
	}
	if c.live == nil {
		return
	}
	c.live.cancel(cause)
	if c.live.free != nil {
		c.live.free()
	}
}

// cause returns what context.Cause would, without making the standard context.
func (c *attemptContext) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.live != nil:
		return context.Cause(c.live)
	case c.ended != nil:
		return c.ended
	}
	return context.Cause(c.parent)
}

func (c *attemptContext) Deadline() (time.Time, bool) { return c.look().Deadline() }
func (c *attemptContext) Done() <-chan struct{}       { return c.look().Done() }
func (c *attemptContext) Err() error                  { return c.look().Err() }

// Value also finds the message, without making the standard context.
func (c *attemptContext) Value(key any) any {
	if key == (messageKey{}) && c.msg != nil {
		return c.msg
	}
	return c.look().Value(key)
}

// leaseLost notes that the lease of one more message is lost.
func (c *batchContext) leaseLost() {
	c.mu.Lock()
	c.lost++
	all := c.lost == len(c.ends)
	c.mu.Unlock()
	if all {
		c.end(ErrLeaseLost)
	}
}
