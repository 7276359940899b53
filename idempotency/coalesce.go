package idempotency

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// maxTrip is the most members of one trip.
const maxTrip = 256

// coalescer lets concurrent callers of one of a store's methods share trips, as a database's group
// commit does: no caller waits for others, and calls that come during a trip go with the next one.
// So a lone caller waits for one trip, and ten at once for two.
type coalescer[In, Out any] struct {
	call    func(context.Context, []In) ([]Out, error)
	key     func(In) string
	orphan  func(In, Out) // gets the result of a caller that has left; may be nil
	timeout time.Duration
	atOnce  func(In) (Out, error) // in place of trips, for a store in this process; may be nil

	mu      sync.Mutex
	waiting []*caller[In, Out]
	running bool // a goroutine makes trips until no caller waits
}

// caller waits for the answer to one member of a trip. The coalescer's mutex guards it until
// answered is closed.
type caller[In, Out any] struct {
	in       In
	out      Out
	err      error
	over     bool          // out and err are set
	left     bool          // the caller does not wait any more
	answered chan struct{} // closed when over
}

// do makes one call. If ctx ends first the caller leaves, and the trip goes on
// without it.
func (c *coalescer[In, Out]) do(ctx context.Context, in In) (Out, error) {
	if c.atOnce != nil {
		return c.atOnce(in)
	}
	p := &caller[In, Out]{in: in, answered: make(chan struct{})}
	c.queue(p)
	return c.await(ctx, p)
}

// doAll makes a call for each of in. They go together, up to maxTrip at a time, except those with
// equal keys.
func (c *coalescer[In, Out]) doAll(ctx context.Context, in []In) ([]Out, []error) {
	out, errs := make([]Out, len(in)), make([]error, len(in))
	if c.atOnce != nil {
		for i := range in {
			out[i], errs[i] = c.atOnce(in[i])
		}
		return out, errs
	}
	all := make([]*caller[In, Out], len(in))
	for i := range in {
		all[i] = &caller[In, Out]{in: in[i], answered: make(chan struct{})}
	}
	c.queue(all...)
	for i, p := range all {
		out[i], errs[i] = c.await(ctx, p)
	}
	return out, errs
}

// queue adds callers that wait for a trip.
func (c *coalescer[In, Out]) queue(p ...*caller[In, Out]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, p...)
	if !c.running && len(c.waiting) > 0 {
		c.running = true
		go c.run()
	}
}

// await returns the result of p's trip.
func (c *coalescer[In, Out]) await(ctx context.Context, p *caller[In, Out]) (Out, error) {
	select {
	case <-p.answered:
		return p.out, p.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.over {
		return p.out, p.err // both at once: a claim must not get lost
	}
	p.left = true
	return p.out, ctx.Err()
}

// run makes trips until no caller waits.
func (c *coalescer[In, Out]) run() {
	var batch []*caller[In, Out]
	defer func() {
		if batch != nil { // the store ended this goroutine, as t.FailNow does
			c.answer(batch, nil, errGoexit)
			go c.run()
		}
	}()
	for {
		// Let other goroutines run first, so that callers which are ready join this trip: callers
		// that the last trip has answered, or a burst of messages, would otherwise have to wait for
		// the next one.
		runtime.Gosched()
		c.mu.Lock()
		batch = c.nextBatch()
		c.running = batch != nil
		c.mu.Unlock()
		if batch == nil {
			return
		}
		in := make([]In, len(batch))
		for i, p := range batch {
			in[i] = p.in
		}
		out, err := trip(c.timeout, c.call, in)
		c.answer(batch, out, err)
	}
}

// nextBatch takes the callers of the next trip. A caller whose key is already in it waits for the
// trip after it. The caller holds c.mu.
func (c *coalescer[In, Out]) nextBatch() (batch []*caller[In, Out]) {
	if len(c.waiting) == 1 && !c.waiting[0].left { // the usual case
		batch, c.waiting = c.waiting, nil
		return batch
	}
	taken := make(map[string]bool, len(c.waiting))
	staying := c.waiting[:0]
	for _, p := range c.waiting {
		key := c.key(p.in)
		switch {
		case p.left:
		case taken[key] || len(batch) == maxTrip:
			staying = append(staying, p)
		default:
			taken[key] = true
			batch = append(batch, p)
		}
	}
	clear(c.waiting[len(staying):])
	c.waiting = staying
	return batch
}

// answer hands out the results of a trip.
func (c *coalescer[In, Out]) answer(batch []*caller[In, Out], out []Out, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range batch {
		p.over, p.err = true, err
		if err == nil {
			p.out = out[i]
		}
		if p.left && err == nil && c.orphan != nil {
			go c.orphan(p.in, p.out)
		}
		close(p.answered)
	}
}

var errGoexit = errors.New("the store called runtime.Goexit")

// trip calls a store, on a context that belongs to no caller. A panic of the store becomes an error
// of the trip: it happens on a goroutine of ours, where it would end the process.
func trip[In, Out any](timeout time.Duration, call func(context.Context, []In) ([]Out, error), in []In) (out []Out, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the store panicked: %v\n%s", v, debug.Stack())
		}
	}()
	out, err = call(ctx, in)
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("the store gave %d answers to a batch of %d", len(out), len(in))
	}
	return out, err
}
