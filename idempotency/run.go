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

// run is one run of a handler under a claim; without one if the store failed.
type run struct {
	claim     Claim
	retention time.Duration
	ctx       context.Context
	cancel    context.CancelCauseFunc

	expires, renewAt time.Time // guarded by keeper.mu

	mu     sync.Mutex
	result []byte
}

// runKey is the key of a *run in a handler's context.
type runKey struct{}

// SetResult leaves result for the duplicates of the message whose handler runs with
// ctx: they get it in [Config].Duplicate. The last one counts, and none if the
// handler fails. It is an error if ctx is not of such a handler, or result is
// longer than 256 KiB.
func SetResult(ctx context.Context, result []byte) error {
	r, ok := ctx.Value(runKey{}).(*run)
	switch {
	case !ok:
		return errors.New("idempotency: the context is not that of a handler under this package's middleware: pass on the one that Handle was given")
	case len(result) > maxResult:
		return fmt.Errorf("idempotency: the result has %d bytes, and at most %d are kept: leave a reference to it", len(result), maxResult)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = slices.Clone(result)
	return nil
}

// ClaimFrom returns the claim under which the handler runs whose context is ctx,
// and the retention that its completion is to have; not ok where there is none, as
// with [Config].RunWithoutStore while the store fails. A handler passes the token
// on to whatever it changes, which can then refuse a smaller one than it has seen
// for the key; or it completes the claim itself, in the transaction of its effect.
func ClaimFrom(ctx context.Context) (claim Claim, retention time.Duration, ok bool) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok || r.claim.Token == 0 {
		return Claim{}, 0, false
	}
	return r.claim, r.retention, true
}

// run runs next under a claim that was asked for then.
func (g *guard) run(ctx context.Context, m *reprise.Message, next reprise.Handler, claim Claim, asked time.Time) error {
	r := &run{claim: claim, retention: g.cfg.Retention}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	g.keeper.add(r, asked)
	returned := false
	defer func() {
		g.keeper.remove(r)
		r.cancel(nil)
		if !returned { // it panicked, or ended its goroutine
			g.release(ctx, claim)
			g.observe(ctx, Event{Kind: KindFailed, Message: m, Key: claim.Key})
		}
	}()
	err := next.Handle(context.WithValue(r.ctx, runKey{}, r), m)
	returned = true
	if err == nil {
		return g.complete(ctx, m, r)
	}
	lost := errors.Is(context.Cause(r.ctx), ErrLost)
	if g.release(ctx, claim) && !lost {
		g.observe(ctx, Event{Kind: KindFailed, Message: m, Key: claim.Key, Err: err})
		return err
	}
	return g.lost(ctx, m, claim, err)
}

// complete records that r's work is done.
func (g *guard) complete(ctx context.Context, m *reprise.Message, r *run) error {
	r.mu.Lock()
	completion := Completion{Claim: r.claim, Result: r.result, Retention: r.retention}
	r.mu.Unlock()
	held, err := g.record(ctx, completion)
	switch {
	case err != nil:
		g.unrecorded.put(completion)
		return g.notRecorded(ctx, m, r.claim.Key, err)
	case !held:
		return g.lost(ctx, m, r.claim, nil)
	}
	g.observe(ctx, Event{Kind: KindDone, Message: m, Key: r.claim.Key})
	return nil
}

const (
	minRecordBackoff = 100 * time.Millisecond
	maxRecordBackoff = 2 * time.Second
)

// record completes a claim, again and again until Config.Patience ends. The end of
// the message's own time does not stop it: the effect has happened.
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

// notRecorded gives back a message whose work is done, so that it does not vanish
// without a record.
func (g *guard) notRecorded(ctx context.Context, m *reprise.Message, key string, err error) error {
	err = fmt.Errorf("%w (key %q): %w", ErrUnrecorded, key, err)
	g.warn(KindUnrecorded, "work is done and could not be recorded; it may be done again by another process", "key", key, "error", err)
	g.observe(ctx, Event{Kind: KindUnrecorded, Message: m, Key: key, Err: err})
	return reprise.Unavailable(err)
}

// recordLate records the work of a key that was done here and could not be
// recorded then. If the key was acquired since, what that run made of it counts.
func (g *guard) recordLate(ctx context.Context, m *reprise.Message, key string) error {
	completion, ok := g.unrecorded.get(key)
	if !ok {
		return nil
	}
	if _, err := g.completes.do(ctx, completion); err != nil {
		return g.notRecorded(ctx, m, key, err)
	}
	g.unrecorded.drop(key)
	return nil
}

// release frees a claim's key for the next attempt. If the store fails the key
// becomes free when its lease ends. It says no only if the store did: the claim
// was overtaken, or completed in a transaction whose end the handler did not learn.
func (g *guard) release(ctx context.Context, claim Claim) bool {
	held, err := g.releases.do(context.WithoutCancel(ctx), claim)
	if err != nil {
		g.warn(KindFailed, "releasing a key failed; it becomes free when its lease ends", "key", claim.Key, "error", err)
	}
	return held || err != nil
}

// lost gives back a message whose claim was lost while its handler ran, to find out
// later what the other run has made of it. What this one returned does not count.
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
