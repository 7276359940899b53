package reprise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
)

// batch is one call of a BatchHandler.
type batch struct {
	seats          []seat     // in the order in which the messages became ready
	shown          []*Message // to the handler, which may reorder it
	ctx            *batchContext
	started, ended time.Time
	panicked       bool
}

// seat is a message's place in a batch: one attempt of it.
type seat struct {
	d       *delivery
	msg     *Message // of this attempt: d has another if it is run again
	run     *run     // likewise
	err     error    // what the handler returned for it
	judged  bool     // err is known
	opinion opinion
	weighed bool // opinion is known
	verdict verdict
}

// errUnnamed is the error of messages whose places the handler has overwritten.
var errUnnamed = errors.New("HandleBatch changed its messages: ms may be reordered, but must keep each of them once")

// workBatches is work for a BatchHandler.
func (c *Consumer) workBatches() {
	var current *batch // its handler is running
	defer func() {
		defer c.workerEnded()
		if current != nil {
			current.ended = time.Now()
			current.fail(errGoexit)
			c.endBatch(current)
		}
	}()
	for b := c.takeBatch(); b != nil; b = c.takeBatch() {
		current = b
		each(len(b.seats), func(i int) {
			r := b.seats[i].run
			r.ctx.start(c.starting(b.seats[i].d, b.ctx), 0)
		})
		c.handleBatch(b)
		current = nil
		c.endBatch(b)
	}
}

// takeBatch takes the next batch to run, if one is due, and starts another worker
// for the one behind it.
func (c *Consumer) takeBatch() *batch {
	core := c.enter()
	defer c.leave()
	core.summoned = false // if that is another, one more may be started: no harm
	first := core.startable()
	if first == nil {
		return nil
	}
	b := &batch{ctx: new(batchContext), started: time.Now()}
	if first == core.floor.next {
		core.seat(b, first)
	} else {
		core.fill(b, first)
	}
	core.batches.running++
	core.counts.Batches++
	b.shown = make([]*Message, len(b.seats))
	for i := range b.seats {
		s := &b.seats[i]
		s.run.shown = *s.msg
		s.run.ctx.batch, s.run.ctx.msg = b.ctx, &s.run.shown
		b.shown[i] = &s.run.shown
	}
	b.ctx.seats = b.seats
	b.ctx.start(c.workCtx, c.cfg.HandlerTimeout)
	core.charge()
	return b
}

// fill fills b with what is ready, from first on, as far as it fits. What one gate has
// let through has a batch of its own.
func (c *core) fill(b *batch, first *delivery) {
	most := c.batches.ready.messages + c.groups.Counts().Along
	b.seats = make([]seat, 0, min(c.batches.Size, max(1, most)))
	bytes := 0
	fits := func(d *delivery) bool {
		bytes += d.size
		return len(b.seats) == 0 || len(b.seats) < c.batches.Size && bytes <= c.batches.Bytes
	}
	gate := first.gate
	for d := first; d != nil && d.gate == gate && fits(d); d = c.ready.first {
		c.seat(b, d)
		if gate == nil && c.queue.fifo && !c.fillWithGroup(b, d, fits) {
			return
		}
	}
}

// seat takes d, which may start, into b.
func (c *core) seat(b *batch, d *delivery) {
	c.setOff(d)
	b.seats = append(b.seats, seat{d: d, msg: d.msg, run: d.run})
}

// handleBatch runs the handler. A panic of it, and only of it, is caught here.
func (c *Consumer) handleBatch(b *batch) {
	defer func() {
		b.ended = time.Now()
		if v := recover(); v != nil {
			p := &PanicError{Value: v, Stack: debug.Stack()}
			b.panicked = true
			c.log.Error("batch handler panicked", "messages", len(b.seats), "panic", p.Value, "stack", string(p.Stack))
			b.fail(p)
		}
	}()
	errs := c.batchHandler.HandleBatch(b.ctx, b.shown)
	if err := b.sort(errs); err != nil {
		c.log.Error("batch handler returned what cannot be understood; all messages of the batch are retried", "messages", len(b.seats), "error", err)
		b.fail(err)
	}
}

// sort gives each message its verdict.
func (b *batch) sort(errs []error) error {
	switch {
	case errs == nil:
		return nil
	case len(errs) != len(b.seats):
		return fmt.Errorf("HandleBatch returned %s on %s: return nil if all succeeded, or one error for each, nil for those that did", plural.Of(len(errs), "verdict"), plural.Of(len(b.seats), "message"))
	}
	for i, err := range errs {
		s := b.ctx.find(i, b.shown[i])
		if s == nil || s.judged {
			return errUnnamed
		}
		s.err, s.judged = err, true
	}
	return nil
}

// fail gives every message the same verdict.
func (b *batch) fail(err error) {
	for i := range b.seats {
		b.seats[i].err = err
	}
}

// endBatch judges the attempts of b, settles its messages and tells of them. Each
// step is done whatever becomes of this goroutine, which the user's code may end, in
// the one before.
func (c *Consumer) endBatch(b *batch) {
	defer c.tellBatch(b)
	defer c.settleBatch(b)
	each(len(b.seats), func(i int) {
		s := &b.seats[i]
		s.opinion = c.weigh(s.d, s.err, b.ended)
		s.weighed = true
	})
}

// settleBatch begins the settlement of b's messages.
func (c *Consumer) settleBatch(b *batch) {
	now, took := time.Now(), b.ended.Sub(b.started)
	core := c.enter()
	core.batches.running--
	for i := range b.seats {
		if s := &b.seats[i]; !s.weighed { // by code that ends the goroutine each time
			s.opinion.err = errGoexit
			s.d.loseLease()
		}
	}
	for i := 0; i < len(b.seats); {
		if c.queue.fifo {
			i += core.settleGroup(b.seats[i:], took, now)
			continue
		}
		core.settleSeat(&b.seats[i], took, now)
		i++
	}
	c.leave()
	b.ctx.end(context.Canceled) // after judging by its cause
	b.ctx.forget()
}

// settleSeat ends one message's attempt.
func (c *core) settleSeat(s *seat, took time.Duration, now time.Time) {
	s.verdict = c.throughBreaker(s.d, c.judge(s.d, s.opinion, now), s.opinion, took, now)
	s.leaveTrail()
	c.finish(s.d, s.verdict, took, now)
}

// leaveTrail is delivery.leaveTrail, of which is told.
func (s *seat) leaveTrail() {
	s.d.leaveTrail()
	s.msg = s.d.msg
}

// tellBatch reports the attempts of b.
func (c *Consumer) tellBatch(b *batch) {
	core := c.lock()
	if b.panicked {
		core.counts.Panics++
	}
	c.unlock()
	each(len(b.seats), func(i int) {
		s := &b.seats[i]
		c.tellAttempt(s.run, s.msg, s.verdict, s.opinion.err, b.started, b.ended)
	})
	c.tellSettled()
}

// each calls f for 0 to n-1: for all of them, even if one call ends the goroutine.
func each(n int, f func(i int)) { eachFrom(0, n, f) }

func eachFrom(i, n int, f func(i int)) {
	defer func() {
		if i < n {
			eachFrom(i+1, n, f)
		}
	}()
	for ; i < n; i++ {
		f(i)
	}
}

// batchContext is the context of a batch. It ends with its messages' leases when
// all of them are lost.
type batchContext struct {
	attemptContext

	mu     sync.Mutex
	seats  []seat // nil when it has ended
	lost   int
	places map[*Message]*seat // where the handler has reordered, or asked
}

type batchKey struct{}

// Value also finds the batch.
func (c *batchContext) Value(key any) any {
	if key == (batchKey{}) {
		return c
	}
	return c.attemptContext.Value(key)
}

// leaseLost notes that one message's lease is lost.
func (c *batchContext) leaseLost() {
	c.mu.Lock()
	c.lost++
	all := c.lost == len(c.seats)
	c.mu.Unlock()
	if all {
		c.end(ErrLeaseLost)
	}
}

// forget lets go of the messages: of those that run again, each leads here.
func (c *batchContext) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seats, c.places = nil, nil
}

// find returns the place of m, probably the i-th; nil if it has none.
func (c *batchContext) find(i int, m *Message) *seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < len(c.seats) && m == &c.seats[i].run.shown {
		return &c.seats[i]
	}
	if c.places == nil {
		c.places = make(map[*Message]*seat, len(c.seats))
		for i := range c.seats {
			c.places[&c.seats[i].run.shown] = &c.seats[i]
		}
	}
	return c.places[m]
}

// MessageContext returns the context of m, one of the messages of the batch whose
// [BatchHandler] was given ctx, or a context made from it. It ends with that of the
// batch and, with the [context.Cause] [ErrLeaseLost], when the lease on m is lost:
// another consumer may hold m then, and to work on it would be in vain. It has the
// values of the batch's context. Of any other message it returns ctx, which is right
// where a [Handler] was given it.
func MessageContext(ctx context.Context, m *Message) context.Context {
	if b, ok := ctx.Value(batchKey{}).(*batchContext); ok {
		if s := b.find(0, m); s != nil {
			return &s.run.ctx
		}
	}
	return ctx
}
