package reprise

import (
	"context"
	"errors"
	"sync"
	"time"
)

// attemptContext is the context of one attempt. Most handlers of small messages
// never look at theirs, and a standard cancellable context costs as much as the
// rest of a message's way through the consumer: so it is made when it is first
// looked at. From then on it is an ordinary context of package context, to which
// this one only points.
type attemptContext struct {
	parent context.Context
	batch  *batchContext // of which this is one message's; nil: of none
	msg    *Message      // as the handler has it; nil: that of a batch

	mu    sync.Mutex
	live  *liveContext // nil until looked at
	ended error        // the cause, if it ended before it was looked at
}

// liveContext is a standard context with the means to end it.
type liveContext struct {
	context.Context
	cancel context.CancelCauseFunc
	free   context.CancelFunc // of the timer; nil without a timeout
}

// start makes c the context of an attempt that begins now.
func (c *attemptContext) start(parent context.Context, timeout time.Duration) {
	c.parent = parent
	if timeout > 0 {
		timed, free := context.WithTimeout(parent, timeout) // its timer must run whether or not the handler looks
		c.make(timed, free)
	}
}

// make builds the standard context. The caller holds c.mu, or nobody else has c.
func (c *attemptContext) make(parent context.Context, free context.CancelFunc) {
	c.live = &liveContext{free: free}
	c.live.Context, c.live.cancel = context.WithCancelCause(parent)
	if c.ended != nil {
		c.live.cancel(c.ended)
	}
}

// look returns the standard context.
func (c *attemptContext) look() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.make(c.parent, nil)
	}
	return c.live
}

// end cancels the context with cause. Later ends change nothing.
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

// cause is context.Cause of the context, without making it.
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

// Value also finds the message, without making the context.
func (c *attemptContext) Value(key any) any {
	if key == (messageKey{}) && c.msg != nil {
		return c.msg
	}
	return c.look().Value(key)
}
