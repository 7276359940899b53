package idempotency_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/retry"
)

// gate is a memory store that can be slow, or fail before or after it has done
// what it was asked.
type gate struct {
	*idempotency.Memory

	mu      sync.Mutex
	latency time.Duration    // of a request
	reply   time.Duration    // of its answer
	down    map[string]error // by method: nothing is done
	deaf    map[string]error // by method: it is done, and the reply is lost
	trips   map[string][]int // by method: how many members each trip had
}

func newGate() *gate {
	return &gate{
		Memory: idempotency.NewMemory(idempotency.MemoryConfig{}),
		down:   make(map[string]error), deaf: make(map[string]error), trips: make(map[string][]int),
	}
}

// fail sets what goes wrong with a method.
func (g *gate) fail(method string, down, deaf error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down[method], g.deaf[method] = down, deaf
}

func through[In, Out any](g *gate, ctx context.Context, method string, batch []In, call func(context.Context, []In) ([]Out, error)) ([]Out, error) {
	g.mu.Lock()
	g.trips[method] = append(g.trips[method], len(batch))
	latency, reply, down, deaf := g.latency, g.reply, g.down[method], g.deaf[method]
	g.mu.Unlock()
	select {
	case <-time.After(latency):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if down != nil {
		return nil, down
	}
	out, err := call(ctx, batch)
	time.Sleep(reply)
	if deaf != nil {
		return nil, deaf
	}
	return out, err
}

func (g *gate) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	return through(g, ctx, "acquire", batch, g.Memory.Acquire)
}

func (g *gate) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	return through(g, ctx, "complete", batch, g.Memory.Complete)
}

func (g *gate) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	return through(g, ctx, "release", batch, g.Memory.Release)
}

func (g *gate) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	return through(g, ctx, "extend", batch, g.Memory.Extend)
}

// told waits until a handler is told to stop, and returns why.
func told(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(24 * time.Hour):
		return errors.New("the handler was not told to stop for a day")
	}
}

var errDown = errors.New("connection refused")

// guard makes middleware that must be valid, and notes what becomes of messages.
func guard(t *testing.T, store idempotency.Store, cfg idempotency.Config) (once func(reprise.Handler) reprise.Handler, seen func() []idempotency.Kind) {
	t.Helper()
	var mu sync.Mutex
	var kinds []idempotency.Kind
	cfg.Observe = func(_ context.Context, e idempotency.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, e.Kind)
	}
	if cfg.Key == nil {
		cfg.Key = byID
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	once, err := idempotency.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return once, func() []idempotency.Kind {
		mu.Lock()
		defer mu.Unlock()
		return append([]idempotency.Kind(nil), kinds...)
	}
}

func handler(f func(ctx context.Context, m *reprise.Message) error) reprise.Handler {
	return reprise.HandlerFunc(f)
}

// byID is a key that tests know by heart.
func byID(m *reprise.Message) (string, error) { return cmp.Or(m.OriginID, m.ID), nil }

func message(id string) *reprise.Message {
	return &reprise.Message{ID: id, OriginID: id, Body: "body of " + id}
}

// decision is what a consumer would do about err: release, retry or dead-letter, and
// after how long.
func decision(err error) (retry.Action, time.Duration) {
	now := time.Now()
	d := retry.Policy{Backoff: retry.Constant(7 * time.Hour), Jitter: retry.None}.Decide(retry.Failure{N: 1, Seed: "s", Sent: now, First: now, Ended: now, Err: err})
	return d.Action, d.At.Sub(now)
}
