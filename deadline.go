package reprise

import (
	"context"
	"sync"
	"time"
)

// deadline gives calls a context that ends when a call should have, so that a
// connection that has died silently does not keep its messages for ever. Calls
// that begin together share one: a context with a timer for every request was a
// tenth of the cost of a message.
type deadline struct {
	limit time.Duration

	mu      sync.Mutex
	current context.Context
	release context.CancelFunc // called by the timer in any case: kept for the sake of form
	ends    time.Time
}

// limitSlack is for how long calls share a context, and so how much later than
// its limit a call may end.
const limitSlack = 2 * time.Second

// context returns a context that ends no earlier than the limit from now, at most
// limitSlack later, or with parent, which is always the same one.
func (d *deadline) context(parent context.Context) context.Context {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ends.Sub(now) < d.limit {
		d.ends = now.Add(d.limit + limitSlack)
		d.current, d.release = context.WithDeadline(parent, d.ends)
	}
	return d.current
}
