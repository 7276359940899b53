package reprise

import (
	"context"
	"sync"
	"time"
)

// deadline gives calls a context with a time limit, so that a connection that has died
// silently does not keep its messages for ever. Calls that begin together share a context: a
// context with a timer for each request was a tenth of the cost of a message.
type deadline struct {
	limit time.Duration

	mu      sync.Mutex
	current context.Context
	release context.CancelFunc // never called: the timer releases the context; go vet wants it kept
	ends    time.Time
}

// limitSlack is how long calls share a context, and so how much later than its limit a call
// may end.
const limitSlack = 2 * time.Second

// context returns a context that ends after the limit, at most limitSlack later, or with
// parent. Every call must pass the same parent.
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
