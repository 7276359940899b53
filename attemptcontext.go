package reprise

import (
	"context"
	"sync"
	"time"
)

// attemptContext is the context of one attempt. Most handlers of small messages
// never look at theirs, and a standard cancellable context costs as much as the
// rest of a message's way through the consumer: so it is made when it is first
// looked at. From then on it is an ordinary context of package context, to which
// this one only points.
type attemptContext struct {
	parent  context.Context
	timeout time.Duration
	started time.Time

	mu     sync.Mutex
	made   context.Context // nil until looked at
	cancel context.CancelCauseFunc
	free   context.CancelFunc // of the timer; nil without a timeout
	ended  error              // the cause, if it ended before it was looked at
}

// start makes c the context of an attempt that begins now.
func (c *attemptContext) start(parent context.Context, timeout time.Duration) {
	c.parent, c.timeout = parent, timeout
	if timeout > 0 {
		c.started = time.Now()
		c.look() // its timer must run whether or not the handler looks
	}
}

// make builds the standard context. The caller holds c.mu.
func (c *attemptContext) make() {
	parent := c.parent
	if c.timeout > 0 {
		parent, c.free = context.WithDeadline(parent, c.started.Add(c.timeout))
	}
	c.made, c.cancel = context.WithCancelCause(parent)
	if c.ended != nil {
		c.cancel(c.ended)
	}
}

// look returns the standard context.
func (c *attemptContext) look() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.make()
	}
	return c.made
}

// end cancels the context with cause. Later ends change nothing.
func (c *attemptContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = cause
	}
	if c.made != nil {
		c.cancel(cause)
	}
	if c.free != nil {
		c.free()
	}
}

// cause is context.Cause of the context, without making it.
func (c *attemptContext) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return context.Cause(c.made)
	case c.ended != nil:
		return c.ended
	}
	return context.Cause(c.parent)
}

func (c *attemptContext) Deadline() (time.Time, bool) { return c.look().Deadline() }
func (c *attemptContext) Done() <-chan struct{}       { return c.look().Done() }
func (c *attemptContext) Err() error                  { return c.look().Err() }
func (c *attemptContext) Value(key any) any           { return c.look().Value(key) }
