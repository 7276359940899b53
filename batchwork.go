package reprise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/plural"
)

// batch is one call of a BatchHandler.
type batch struct {
	ends           []consumer.End // in the order in which the messages became ready; their cargo is a *run
	shown          []*Message     // to the handler, which may reorder it
	ctx            *batchContext
	started, ended time.Time
	panicked       bool
}

// run returns the run of the i-th message.
func (b *batch) run(i int) *run { return b.ends[i].Cargo.(*run) }

// errMessagesChanged is the verdict on all messages if the handler has replaced messages in ms.
var errMessagesChanged = errors.New("HandleBatch changed its messages: ms may be reordered, but must keep each of them once")

// workBatches is work, for a BatchHandler.
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
		each(len(b.ends), func(i int) {
			d := ofMachine(b.ends[i].Delivery)
			d.run.ctx.start(c.starting(d, b.ctx), 0)
		})
		c.handleBatch(b)
		current = nil
		c.endBatch(b)
	}
}

// takeBatch takes the next batch to run; nil if none is due. It starts another worker for the
// batch behind it.
func (c *Consumer) takeBatch() (b *batch) {
	c.enter(func(m *consumer.Machine) {
		if ends := m.TakeBatch(); ends != nil {
			b = c.batchOf(ends)
		}
	})
	return b
}

// batchOf makes the batch of the messages that the machine has given out. The caller holds the lock.
func (c *Consumer) batchOf(ends []consumer.End) *batch {
	b := &batch{ends: ends, shown: make([]*Message, len(ends)), ctx: new(batchContext), started: time.Now()}
	for i := range ends {
		d := taken(ends[i].Delivery)
		d.show()
		d.run.ctx.batch = b.ctx
		b.shown[i] = &d.run.shown
		ends[i].Cargo, ends[i].Escaped = d.run, true // until it is judged
	}
	b.ctx.ends = ends
	b.ctx.start(c.workCtx, c.cfg.HandlerTimeout)
	return b
}

// handleBatch runs the handler, and recovers a panic of the handler only.
func (c *Consumer) handleBatch(b *batch) {
	defer func() {
		b.ended = time.Now()
		if v := recover(); v != nil {
			p := &PanicError{Value: v, Stack: debug.Stack()}
			b.panicked = true
			c.logPanic(p, "batch handler panicked", "messages", len(b.ends))
			b.fail(p)
		}
	}()
	errs := c.batchHandler.HandleBatch(b.ctx, b.shown)
	if err := b.setVerdicts(errs); err != nil {
		c.log.Error("batch handler returned an invalid result; all messages of the batch are retried", "messages", len(b.ends), "error", err)
		b.fail(err)
	}
}

// setVerdicts gives each message its verdict.
func (b *batch) setVerdicts(errs []error) error {
	switch {
	case errs == nil:
		return nil
	case len(errs) != len(b.ends):
		return fmt.Errorf("HandleBatch returned %s on %s: return nil if all succeeded, or one error for each, nil for those that did", plural.Of(len(errs), "verdict"), plural.Of(len(b.ends), "message"))
	}
	for i, err := range errs {
		r := b.ctx.find(i, b.shown[i])
		if r == nil || r.judged {
			return errMessagesChanged
		}
		r.err, r.judged = err, true
	}
	return nil
}

// fail gives every message the same verdict.
func (b *batch) fail(err error) {
	for i := range b.ends {
		b.run(i).err = err
	}
}

// endBatch judges the attempts of b, settles its messages and reports the attempts. Each
// step is done even if the user's code ends this goroutine in the step before.
func (c *Consumer) endBatch(b *batch) {
	defer func() {
		if c.settleBatch(b) {
			c.tellBatch(b)
		}
	}()
	each(len(b.ends), func(i int) {
		e := &b.ends[i]
		e.Opinion = c.opinionOf(ofMachine(e.Delivery), b.run(i).err, b.ended)
		e.Escaped = false
	})
}

// settleBatch begins the settlement of b's messages. It reports whether the machine has decided it.
func (c *Consumer) settleBatch(b *batch) (decided bool) {
	for i := range b.ends {
		e := &b.ends[i]
		if e.Trail = b.run(i).trail; e.Escaped { // the user's code has ended each goroutine that judged it
			e.Opinion.Err = errGoexit
		}
	}
	decided = c.enter(func(m *consumer.Machine) { m.EndedBatch(b.ends, b.ended.Sub(b.started), time.Now()) })
	b.ctx.end(context.Canceled) // after judging by its cause
	b.ctx.forget()
	return decided
}

// tellBatch reports the attempts of b.
func (c *Consumer) tellBatch(b *batch) {
	if b.panicked {
		c.look(func(m *consumer.Machine) { m.Panicked() })
	}
	each(len(b.ends), func(i int) {
		e := &b.ends[i]
		c.tellAttempt(b.run(i), e.Subject, e.Verdict, e.Opinion.Err, b.started, b.ended)
	})
	c.tellSettled()
}

// each calls f for 0 to n-1, for all of them even if a call ends the goroutine.
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

// batchContext is the context of a batch. It ends when the leases of all its messages are
// lost.
type batchContext struct {
	attemptContext

	mu   sync.Mutex
	ends []consumer.End // nil when it has ended
	lost int
	runs map[*Message]*run // made when the handler has reordered ms or calls MessageContext
}

type batchKey struct{}

// Value also finds the batch.
func (c *batchContext) Value(key any) any {
	if key == (batchKey{}) {
		return c
	}
	return c.attemptContext.Value(key)
}

// forget drops the references to the messages: messages that run again keep a reference to
// this context, and would keep all others in memory.
func (c *batchContext) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends, c.runs = nil, nil
}

// find returns the run of m, probably the i-th; nil if m is not of the batch.
func (c *batchContext) find(i int, m *Message) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < len(c.ends) {
		if r := c.ends[i].Cargo.(*run); m == &r.shown {
			return r
		}
	}
	if c.runs == nil {
		c.runs = make(map[*Message]*run, len(c.ends))
		for i := range c.ends {
			r := c.ends[i].Cargo.(*run)
			c.runs[&r.shown] = r
		}
	}
	return c.runs[m]
}

// MessageContext returns the context of m, one of the messages of the batch whose
// [BatchHandler] was given ctx, or a context made from it. It ends with that of the
// batch and, with the [context.Cause] [ErrLeaseLost], when the lease on m is lost:
// another consumer may hold m then, and work on it would be in vain. It has the values of the
// batch's context. For any other message it returns ctx, as a [Handler] needs it.
func MessageContext(ctx context.Context, m *Message) context.Context {
	if b, ok := ctx.Value(batchKey{}).(*batchContext); ok {
		if r := b.find(0, m); r != nil {
			return &r.ctx
		}
	}
	return ctx
}
