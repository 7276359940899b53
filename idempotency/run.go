package idempotency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
)

// maxResult is the longest result. DynamoDB's items end at 400 KB.
const maxResult = 256 << 10

// run is one run of a handler under a claim, or without a claim if the store failed.
type run struct {
	claim     Claim
	retention time.Duration
	ctx       context.Context
	cancel    context.CancelCauseFunc

	// Guarded by keeper.mu:
	expires, renewAt time.Time
	trip             <-chan struct{} // under way, which extends the claim; closed at its end

	mu     sync.Mutex
	result []byte
}

// runKey is the key of a *run in a handler's context.
type runKey struct{}

// SetResult stores result for the duplicates of the message whose handler runs with ctx: they get
// it in [Config].Duplicate. The last call counts, and none if the handler fails. It returns an
// error if ctx does not belong to such a handler, or if result is longer than 256 KiB.
func SetResult(ctx context.Context, result []byte) error {
	r, ok := ctx.Value(runKey{}).(*run)
	switch {
	case !ok:
		return errors.New("idempotency: the context is not that of a handler under this package's middleware: pass on the one that Handle was given, or that MessageContext returns in a batch")
	case len(result) > maxResult:
		return fmt.Errorf("idempotency: the result has %d bytes, and at most %d are kept: leave a reference to it", len(result), maxResult)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = slices.Clone(result)
	return nil
}

// ClaimFrom returns the claim of the handler whose context is ctx, and the retention for its
// completion; ok is false without a claim, as with [Config].RunWithoutStore while the store fails.
// A handler can pass the token to the service that it changes, which can then refuse a token
// smaller than the largest it has seen for the key; or it completes the claim itself, in the
// transaction of its effect.
func ClaimFrom(ctx context.Context) (claim Claim, retention time.Duration, ok bool) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok || r.claim.Token == 0 {
		return Claim{}, 0, false
	}
	return r.claim, r.retention, true
}

// protected reports whether r has a claim.
func (r *run) protected() bool { return r.claim.Token != 0 }

// begin makes r's context from that of its message, and keeps its claim, which was requested at
// then.
func (g *guard) begin(ctx context.Context, r *run, asked time.Time) {
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if r.protected() {
		g.keeper.add(r, asked)
	}
}

// end undoes begin.
func (g *guard) end(r *run) {
	if r.protected() {
		g.keeper.remove(r)
	}
	r.cancel(nil)
}

// run runs next as r, whose claim was requested at then.
func (g *guard) run(ctx context.Context, m *reprise.Message, next reprise.Handler, r *run, asked time.Time) error {
	g.begin(ctx, r, asked)
	returned := false
	defer func() {
		g.end(r)
		if !returned && r.protected() { // it panicked, or ended its goroutine
			g.keeper.letGo(r)
			g.release(ctx, r.claim)
			g.observe(ctx, Event{Kind: KindFailed, Message: m, Key: r.claim.Key})
		}
	}()
	err := next.Handle(context.WithValue(r.ctx, runKey{}, r), m)
	returned = true
	switch {
	case !r.protected():
		return err
	case err != nil:
		g.keeper.letGo(r)
		return g.released(ctx, m, r, err, g.release(ctx, r.claim))
	}
	completion := r.completion()
	held, err := g.record(ctx, completion)
	return g.recorded(ctx, m, completion, held, err)
}

// completion is the record of r, whose work is done.
func (r *run) completion() Completion {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Completion{Claim: r.claim, Result: r.result, Retention: r.retention}
}

// released returns the verdict on m after its run r has failed with err and its key has been freed,
// or was lost.
func (g *guard) released(ctx context.Context, m *reprise.Message, r *run, err error, held bool) error {
	if !held || r.lost() {
		return g.lost(ctx, m, r.claim, err)
	}
	g.observe(ctx, Event{Kind: KindFailed, Message: m, Key: r.claim.Key, Err: err})
	return err
}

// lost reports whether the handler was told that r's claim is lost.
func (r *run) lost() bool { return errors.Is(context.Cause(r.ctx), ErrLost) }

// recorded returns the verdict on m, whose work is done: it has been recorded, the claim was lost,
// or recording failed.
func (g *guard) recorded(ctx context.Context, m *reprise.Message, c Completion, held bool, err error) error {
	switch {
	case err != nil:
		g.unrecorded.put(c)
		return g.notRecorded(ctx, m, c.Key, err)
	case !held:
		return g.lost(ctx, m, c.Claim, nil)
	}
	g.observe(ctx, Event{Kind: KindDone, Message: m, Key: c.Key})
	return nil
}

const (
	minRecordBackoff = 100 * time.Millisecond
	maxRecordBackoff = 2 * time.Second
)

// record completes a claim, with retries until Config.Patience ends. It continues after the end of
// the message's context, because the effect has happened.
func (g *guard) record(ctx context.Context, c Completion) (held bool, err error) {
	ctx = context.WithoutCancel(ctx)
	end := time.Now().Add(g.cfg.Patience)
	for wait := minRecordBackoff; ; wait = min(2*wait, maxRecordBackoff) {
		held, err = g.completes.do(ctx, c)
		if err == nil || time.Now().Add(wait).After(end) {
			return held, err
		}
		time.Sleep(wait)
	}
}

// notRecorded gives back a message whose work is done, so that it does not disappear without a
// record.
func (g *guard) notRecorded(ctx context.Context, m *reprise.Message, key string, err error) error {
	err = fmt.Errorf("%w (key %q): %w", ErrUnrecorded, key, err)
	g.warn(KindUnrecorded, "work is done and could not be recorded; it may be done again by another process", "key", key, "error", err)
	g.observe(ctx, Event{Kind: KindUnrecorded, Message: m, Key: key, Err: err})
	return reprise.Unavailable(err)
}

// recordedLate is called after a late attempt to record work that this process did earlier; err is
// why it failed. If the key was acquired since, the result of that run counts.
func (g *guard) recordedLate(ctx context.Context, m *reprise.Message, key string, err error) error {
	if err != nil {
		return g.notRecorded(ctx, m, key, err)
	}
	g.unrecorded.drop(key)
	return nil
}

// release frees a claim's key for the next attempt. If the store fails the key
// becomes free when its lease ends. It returns false only if the store did: the claim was
// overtaken, or completed in a transaction whose end the handler did not learn.
func (g *guard) release(ctx context.Context, claim Claim) bool {
	held, err := g.releases.do(context.WithoutCancel(ctx), claim)
	return g.freed(claim, held, err)
}

// freed is the result of release for the store's answer.
func (g *guard) freed(claim Claim, held bool, err error) bool {
	if err != nil {
		g.warn(KindFailed, "releasing a key failed; it becomes free when its lease ends", "key", claim.Key, "error", err)
	}
	return held || err != nil
}

// lost gives back a message whose claim was lost while its handler ran, because the result of the
// other run decides. The result of this run does not count.
func (g *guard) lost(ctx context.Context, m *reprise.Message, claim Claim, err error) error {
	reason := fmt.Errorf("%w (key %q)", ErrLost, claim.Key)
	if err != nil {
		reason = fmt.Errorf("%w: %w", reason, err)
	}
	wait := pause(0, m)
	g.warn(KindLost, "a run was overtaken by another, or could not keep its claim", "key", claim.Key, "error", err)
	g.observe(ctx, Event{Kind: KindLost, Message: m, Key: claim.Key, Wait: wait, Err: reason})
	return reprise.Release(wait, reason)
}
