// Package idempotency makes the effect of a message happen once, however often the message, or
// another that asks for the same work, is delivered.
//
// A [Store] keeps a record for each key. The middleware that [New] makes claims a
// message's key before the handler runs, keeps the claim while it runs, and records its success,
// with a result if the handler has set one. A message with the same key that comes meanwhile is
// given back until the claim's lease ends; one that comes later is deleted without a run.
//
//	once, err := idempotency.New(store, idempotency.Config{})
//	if err != nil {
//		return err
//	}
//	consumer, err := reprise.New(client, queueURL, once(handler), reprise.Config{})
//
// No store can close one window: if a process is killed after the effect and before its record, the
// claim looks unfinished, and the work is done again after the lease has ended. The window is
// closed if the effect and the record are one transaction, as with
// [github.com/reprise-sqs/reprise/idempotency/sqlstore]'s CompleteTx, or if the service that
// carries out the effect refuses duplicates by the key or the token of [ClaimFrom].
package idempotency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
)

var (
	// ErrInProgress is the reason of a release: another run has the message's key.
	ErrInProgress = errors.New("idempotency: another run of the same work is in progress")

	// ErrLost is the [context.Cause] of a handler's context when its claim has been
	// overtaken by another run, or could not be kept: further work of the handler may be done
	// twice. The message comes back, and the record of the other run decides.
	ErrLost = errors.New("idempotency: the claim on the key was lost")

	// ErrMismatch is the reason of a dead letter: the message's key was completed with another
	// payload.
	ErrMismatch = errors.New("idempotency: the key was completed with another payload")

	// ErrUnrecorded is the reason for which a message comes back although its work is done: the
	// store failed until [Config].Patience ended.
	ErrUnrecorded = errors.New("idempotency: the work is done, and recording it failed")
)

// New returns middleware that runs its handler once per key, within the limits of store and cfg.
// One middleware may wrap several handlers, which then share one space of keys.
//
// The handler's result settles the message as usual; a failure, including a panic, frees the key
// for the retry. In addition:
//
//   - if the work is done, the handler does not run; the message is deleted, or see
//     [Config].Duplicate;
//   - if the work is in progress elsewhere, the message is released until the other claim's lease
//     ends, without counting an attempt;
//   - another payload under a completed key dead-letters the message;
//   - while the store fails, messages are retried by policy with an error that
//     [reprise.IsUnavailable] recognises, or see [Config].RunWithoutStore;
//   - if the claim is lost, the handler's context is cancelled with the cause [ErrLost], and the
//     message is released.
//
// A success that cannot be recorded within [Config].Patience is remembered in this
// process, which records it, instead of running the handler, when the message comes to it again.
// The work is done twice if the message comes to another process first, or if 10,000 later
// successes, or 64 MiB of their results, have replaced this one in memory.
func New(store Store, cfg Config) (func(reprise.Handler) reprise.Handler, error) {
	g, err := newGuard(store, cfg)
	if err != nil {
		return nil, err
	}
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			return g.handle(ctx, m, next)
		})
	}, nil
}

func newGuard(store Store, cfg Config) (*guard, error) {
	cfg = cfg.withDefaults()
	problem := cfg.validate()
	if store == nil {
		problem = errors.Join(errors.New("the store is nil: pass NewMemory(MemoryConfig{}), or a store that processes share"), problem)
	}
	if problem != nil {
		return nil, fmt.Errorf("making an idempotency middleware: %w", problem)
	}
	g := &guard{
		cfg:    cfg,
		keeper: keeper{lease: cfg.Lease, timeout: cfg.Timeout, extend: store.Extend},
		acquires: coalescer[Request, Answer]{
			call: store.Acquire, timeout: cfg.Timeout, key: func(r Request) string { return r.Key },
		},
		completes: coalescer[Completion, bool]{
			call: store.Complete, timeout: cfg.Timeout, key: func(c Completion) string { return c.Key },
		},
		releases: coalescer[Claim, bool]{
			call: store.Release, timeout: cfg.Timeout, key: func(c Claim) string { return c.Key },
		},
		said: make(map[Kind]time.Time),
	}
	if m, ok := store.(*Memory); ok {
		g.acquires.atOnce, g.completes.atOnce, g.releases.atOnce = atOnce(m, m.acquire), atOnce(m, m.complete), atOnce(m, m.release)
	}
	g.acquires.orphan = func(r Request, a Answer) {
		if a.State == Acquired { // the caller has left
			g.release(context.Background(), Claim{r.Key, a.Token})
		}
	}
	g.keeper.problem = func(err error) {
		g.warn(KindLost, "extending claims failed; trying again while they last", "error", err)
	}
	return g, nil
}

// guard is the middleware.
type guard struct {
	cfg        Config
	acquires   coalescer[Request, Answer]
	completes  coalescer[Completion, bool]
	releases   coalescer[Claim, bool]
	keeper     keeper
	unrecorded ledger

	mu   sync.Mutex
	said map[Kind]time.Time // when each kind of problem was last logged
}

// handle runs next for m unless its work is done or in progress.
func (g *guard) handle(ctx context.Context, m *reprise.Message, next reprise.Handler) error {
	request, err := g.requestFor(m)
	if err != nil {
		return err
	}
	if done, ok := g.unrecorded.get(request.Key); ok {
		_, err := g.completes.do(ctx, done)
		if err := g.recordedLate(ctx, m, request.Key, err); err != nil {
			return err
		}
	}
	asked := time.Now()
	answer, err := g.acquires.do(ctx, request)
	r, err := g.answered(ctx, m, request.Key, answer, err)
	if r == nil {
		return err
	}
	return g.run(ctx, m, next, r, asked)
}

// requestFor returns the request for m's key.
func (g *guard) requestFor(m *reprise.Message) (Request, error) {
	key, err := g.keyOf(m)
	if err != nil {
		return Request{}, reprise.Permanent(err)
	}
	return Request{Key: key, Digest: g.digestOf(m), Lease: g.cfg.Lease, Retention: g.cfg.Retention}, nil
}

// answered returns the run that the store's answer permits, or else the verdict on m.
func (g *guard) answered(ctx context.Context, m *reprise.Message, key string, answer Answer, err error) (*run, error) {
	if err != nil {
		return g.unavailable(ctx, m, key, err)
	}
	switch answer.State {
	case Acquired:
		return &run{claim: Claim{key, answer.Token}, retention: g.cfg.Retention}, nil
	case Completed:
		g.observe(ctx, Event{Kind: KindDuplicate, Message: m, Key: key})
		if g.cfg.Duplicate != nil {
			return nil, g.cfg.Duplicate(ctx, m, answer.Result)
		}
		return nil, nil
	case InProgress:
		wait := pause(answer.Wait, m)
		g.observe(ctx, Event{Kind: KindInProgress, Message: m, Key: key, Wait: wait})
		return nil, reprise.Release(wait, fmt.Errorf("%w (key %q)", ErrInProgress, key))
	case Mismatched:
		err := fmt.Errorf("%w (key %q): give different work different keys, see Config.Key", ErrMismatch, key)
		g.observe(ctx, Event{Kind: KindMismatch, Message: m, Key: key, Err: err})
		return nil, reprise.Permanent(err)
	}
	return g.unavailable(ctx, m, key, fmt.Errorf("the store returned the invalid state %v", answer.State))
}

// unavailable returns the run or the verdict of m while the store fails: a run without a claim, if
// Config.RunWithoutStore is set.
func (g *guard) unavailable(ctx context.Context, m *reprise.Message, key string, err error) (*run, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err() // the message's time has ended, whatever the cause
	}
	err = fmt.Errorf("idempotency: acquiring key %q: %w", key, err)
	if !g.cfg.RunWithoutStore {
		g.warn(KindUnavailable, "the idempotency store fails; messages are retried later", "error", err)
		g.observe(ctx, Event{Kind: KindUnavailable, Message: m, Key: key, Err: err})
		return nil, reprise.Unavailable(err)
	}
	g.warn(KindUnprotected, "the idempotency store fails; handlers run unprotected", "error", err)
	g.observe(ctx, Event{Kind: KindUnprotected, Message: m, Key: key, Err: err})
	return new(run), nil
}

const (
	minPause = time.Second
	maxPause = 15 * time.Minute
)

// pause returns how long to give back a message that waits for a lease with the given remaining
// time. It is never 0, or the message would come back in a tight loop, and it is bounded, in case a
// store's clock is badly wrong. The jitter, a tenth, depends on the message: duplicates come back
// at different times.
func pause(left time.Duration, m *reprise.Message) time.Duration {
	wait := min(max(left, minPause), maxPause)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cmp.Or(m.ID, m.OriginID))) // it cannot fail
	return wait + time.Duration(hash.Sum64()%uint64(wait/10))
}

// observe calls Config.Observe.
func (g *guard) observe(ctx context.Context, e Event) {
	if g.cfg.Observe != nil {
		g.cfg.Observe(ctx, e)
	}
}

// warnEvery is how often one kind of problem is logged.
const warnEvery = 30 * time.Second

func (g *guard) warn(kind Kind, text string, args ...any) {
	g.mu.Lock()
	now := time.Now()
	last, ok := g.said[kind]
	due := !ok || now.Sub(last) >= warnEvery
	if due {
		g.said[kind] = now
	}
	g.mu.Unlock()
	if due {
		// Goroutines of ours call this, where a panic of the user's log would end the process.
		defer func() { _ = recover() }()
		g.cfg.Logger.Warn(text, args...)
	}
}
