package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/plural"
)

// NewBatch is [New] for handlers of batches: each message has a key, a claim and a verdict of its
// own, and is handled as New describes. The handler gets the messages whose keys it has claimed,
// and is not called if there are none. A batch takes one trip to the store to claim its keys, up to
// 256 of them, one to record the successes, and one to free the keys of failed messages, if there
// are any.
//
//	once, err := idempotency.NewBatch(store, idempotency.Config{})
//	if err != nil {
//		return err
//	}
//	consumer, err := reprise.NewBatchConsumer(client, queueURL, once(handler), reprise.BatchConfig{})
//
// [SetResult] and [ClaimFrom] need the context that [MessageContext] returns: the batch's own
// context belongs to no single message, and ends with the cause [ErrLost] only when all of its
// claims are lost.
//
// In a message group of a FIFO queue no message runs behind one that does not run, for example
// because its key is in progress; and no success is recorded behind a message that fails: those
// messages run again.
//
// If two messages of a batch have the same key, the later one finds it in progress, and comes back
// at once.
func NewBatch(store Store, cfg Config) (func(reprise.BatchHandler) reprise.BatchHandler, error) {
	g, err := newGuard(store, cfg)
	if err != nil {
		return nil, err
	}
	return func(next reprise.BatchHandler) reprise.BatchHandler {
		return reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			return g.handleBatch(ctx, ms, next)
		})
	}, nil
}

// MessageContext returns the context of m, one of the messages of the batch whose
// handler was given ctx, or a context made from it, by [NewBatch]'s middleware. It ends
// as [reprise.MessageContext] says, and with the cause [ErrLost] when the claim on m's
// key is lost. [SetResult] and [ClaimFrom] accept it. For any other message it returns the result
// of reprise.MessageContext.
func MessageContext(ctx context.Context, m *reprise.Message) context.Context {
	if b, ok := ctx.Value(batchKey{}).(*batch); ok {
		if p := b.places[m]; p != nil && p.run != nil {
			return context.WithValue(p.run.ctx, runKey{}, p.run)
		}
	}
	return reprise.MessageContext(ctx, m)
}

// batchKey is the key of a *batch in a batch handler's context.
type batchKey struct{}

// batch is one call of a batch handler.
type batch struct {
	guard  *guard
	all    []place // by position
	places map[*reprise.Message]*place
}

// place is the state of one message of a batch.
type place struct {
	ctx     context.Context // the message's
	m       *reprise.Message
	request Request
	run     *run  // nil: it does not run
	err     error // the verdict
	settled bool  // err is final
}

// errBehind is the verdict on messages behind a failed one of their group. The consumer ignores it.
var errBehind = errors.New("idempotency: a message before it in its group is to come first")

// handleBatch runs next for the messages of ms whose work is neither done nor in
// progress.
func (g *guard) handleBatch(ctx context.Context, ms []*reprise.Message, next reprise.BatchHandler) []error {
	b := &batch{guard: g, all: make([]place, len(ms)), places: make(map[*reprise.Message]*place, len(ms))}
	defer b.end(ctx)
	for i, m := range ms {
		p := &b.all[i]
		b.places[m] = p
		p.m, p.ctx = m, reprise.MessageContext(ctx, m)
		p.request, p.err = g.requestFor(m)
		p.settled = p.err != nil
	}
	b.recordLate(ctx)
	b.acquire(ctx)
	b.keepBehind()
	b.handle(ctx, next)
	b.settle(ctx)
	verdicts := make([]error, len(ms))
	for i := range b.all {
		verdicts[i] = b.all[i].err
	}
	return verdicts
}

// open returns the places of messages without a verdict so far.
func (b *batch) open() (open []*place) {
	for i := range b.all {
		if !b.all[i].settled {
			open = append(open, &b.all[i])
		}
	}
	return open
}

// recordLate records work that this process did earlier and could not record.
func (b *batch) recordLate(ctx context.Context) {
	var late []*place
	var completions []Completion
	for _, p := range b.open() {
		if c, ok := b.guard.unrecorded.get(p.request.Key); ok {
			late, completions = append(late, p), append(completions, c)
		}
	}
	_, errs := b.guard.completes.doAll(ctx, completions)
	for i, p := range late {
		p.err = b.guard.recordedLate(p.ctx, p.m, p.request.Key, errs[i])
		p.settled = p.err != nil
	}
}

// acquire claims the keys.
func (b *batch) acquire(ctx context.Context) {
	open := b.open()
	requests := make([]Request, len(open))
	for i, p := range open {
		requests[i] = p.request
	}
	asked := time.Now()
	answers, errs := b.guard.acquires.doAll(ctx, requests)
	claimed := make(map[string]bool)
	for i, p := range open { // first, because the user's code may panic
		if errs[i] == nil && answers[i].State == Acquired {
			p.run, _ = b.guard.answered(p.ctx, p.m, p.request.Key, answers[i], nil)
			b.guard.begin(p.ctx, p.run, asked)
			claimed[p.request.Key] = true
		}
	}
	for i, p := range open {
		if p.run != nil {
			continue
		}
		if claimed[p.request.Key] {
			answers[i].Wait = 0 // that claim ends with this batch
		}
		p.run, p.err = b.guard.answered(p.ctx, p.m, p.request.Key, answers[i], errs[i])
		if p.settled = p.run == nil; !p.settled { // decided without the store
			b.guard.begin(p.ctx, p.run, asked)
		}
	}
}

// keepBehind settles the messages behind those that do not run although their work is not done:
// running them would break the order of their group.
func (b *batch) keepBehind() {
	stopped := make(map[string]bool)
	for i := range b.all {
		p := &b.all[i]
		switch {
		case !ordered(p.m):
		case stopped[p.m.GroupID]:
			b.putBack(p)
		case p.settled && p.err != nil:
			stopped[p.m.GroupID] = true
		}
	}
}

// putBack makes the consumer run p again, after the messages before it.
func (b *batch) putBack(p *place) {
	p.err, p.settled = reprise.Release(minPause, errBehind), true
}

// ordered reports whether m is from a FIFO queue: groups of standard queues have no order.
func ordered(m *reprise.Message) bool { return m.GroupID != "" && m.DeduplicationID != "" }

// handle runs next for the messages that are to run.
func (b *batch) handle(ctx context.Context, next reprise.BatchHandler) {
	open := b.open()
	if len(open) == 0 {
		return
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, batchKey{}, b))
	defer cancel(nil)
	var alive atomic.Int64
	alive.Store(int64(len(open)))
	ms := make([]*reprise.Message, len(open))
	for i, p := range open {
		ms[i] = p.m
		defer context.AfterFunc(p.run.ctx, func() {
			if alive.Add(-1) == 0 {
				cancel(context.Cause(p.run.ctx))
			}
		})()
	}
	errs := next.HandleBatch(ctx, ms)
	if err := b.setVerdicts(ms, errs); err != nil {
		for _, p := range open {
			p.err = err
		}
	}
}

// setVerdicts assigns the verdicts to the messages, in whichever order the handler has left them.
func (b *batch) setVerdicts(ms []*reprise.Message, errs []error) error {
	switch {
	case errs == nil:
		return nil
	case len(errs) != len(ms):
		return fmt.Errorf("HandleBatch returned %s on %s: return nil if all succeeded, or one error for each, nil for those that did", plural.Of(len(errs), "verdict"), plural.Of(len(ms), "message"))
	}
	judged := make(map[*place]bool, len(ms))
	for i, m := range ms {
		p := b.places[m]
		if p == nil || p.settled || judged[p] {
			return errors.New("HandleBatch changed its messages: ms may be reordered, but must keep each of them once")
		}
		judged[p] = true
		p.err = errs[i]
	}
	return nil
}

// settle records the successes, and frees the keys of the other messages.
func (b *batch) settle(ctx context.Context) {
	var done, failed []*place
	stopped := make(map[string]bool)
	for _, p := range b.open() {
		behind := ordered(p.m) && stopped[p.m.GroupID]
		switch {
		case behind:
			b.putBack(p)
		case p.err != nil || p.run.lost():
			stopped[p.m.GroupID] = true
		}
		switch {
		case !p.run.protected():
			p.settled = true
		case behind:
		case p.err == nil:
			done = append(done, p)
		default:
			failed = append(failed, p)
		}
	}
	b.record(ctx, done)
	b.free(ctx, failed, func(p *place, held bool) {
		p.err = b.guard.released(p.ctx, p.m, p.run, p.err, held)
	})
}

// record completes the claims of places, as guard.record does for one.
func (b *batch) record(ctx context.Context, places []*place) {
	ctx = context.WithoutCancel(ctx)
	end := time.Now().Add(b.guard.cfg.Patience)
	for wait := minRecordBackoff; len(places) > 0; wait = min(2*wait, maxRecordBackoff) {
		completions := make([]Completion, len(places))
		for i, p := range places {
			completions[i] = p.run.completion()
		}
		held, errs := b.guard.completes.doAll(ctx, completions)
		over := time.Now().Add(wait).After(end)
		var again []*place
		for i, p := range places {
			if errs[i] != nil && !over {
				again = append(again, p)
				continue
			}
			p.err = b.guard.recorded(p.ctx, p.m, completions[i], held[i], errs[i])
			p.settled = true
		}
		if places = again; len(places) > 0 {
			time.Sleep(wait)
		}
	}
}

// free frees the keys of places, and calls then for each.
func (b *batch) free(ctx context.Context, places []*place, then func(p *place, held bool)) {
	claims := make([]Claim, len(places))
	for i, p := range places {
		b.guard.keeper.letGo(p.run)
		claims[i] = p.run.claim
		p.settled = true
	}
	held, errs := b.guard.releases.doAll(context.WithoutCancel(ctx), claims)
	for i, p := range places {
		then(p, b.guard.freed(p.run.claim, held[i], errs[i]))
	}
}

// end ends the runs, and frees the keys of those that were put back or have no verdict: then the
// handler, or other code of the user, has panicked or ended its goroutine.
func (b *batch) end(ctx context.Context) {
	var left []*place
	for i := range b.all {
		p := &b.all[i]
		if p.run == nil {
			continue
		}
		b.guard.end(p.run)
		if p.run.protected() && (!p.settled || errors.Is(p.err, errBehind)) {
			left = append(left, p)
		}
	}
	b.free(ctx, left, func(p *place, _ bool) {
		if !errors.Is(p.err, errBehind) {
			b.guard.observe(p.ctx, Event{Kind: KindFailed, Message: p.m, Key: p.request.Key})
		}
	})
}
