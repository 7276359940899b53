package idempotencytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
)

// process is one of the processes of a game: a handler under middleware of its own, and at the same
// time the connection between the middleware and the store.
type process struct {
	game    *game
	index   int
	name    string
	handler reprise.Handler
	rate    float64 // of its clock, beside the store's
	alive   context.Context
	kill    context.CancelFunc

	mu      sync.Mutex
	stalled time.Time // until then
}

var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset by peer")
)

// run lets the process handle m, and returns when the message comes back: sometimes before the
// handler ends, because the lease on the message is lost.
func (p *process) run(m *reprise.Message) error {
	ctx, cancel := context.WithCancelCause(p.alive)
	ended := make(chan error, 1)
	p.game.runs.Go(func() {
		defer cancel(nil)
		err := errors.New("the handler panicked")
		defer func() {
			if v := recover(); v != nil && v != any(errHandler) {
				panic(v)
			}
			ended <- err
		}()
		err = p.handler.Handle(ctx, m)
	})
	var lost <-chan time.Time
	if p.game.trouble(m.ID) < 0.1 {
		lost = time.After(p.game.between(m.ID, 0, gameLease))
	}
	select {
	case err := <-ended:
		return err
	case <-lost:
		cancel(reprise.ErrLeaseLost)
		return reprise.ErrLeaseLost
	case <-p.alive.Done():
		return p.alive.Err()
	}
}

// stall stalls the connection.
func (p *process) stall(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.stalled) {
		p.stalled = until
	}
}

// travel is one direction of a trip: it takes time, and may not arrive.
func (p *process) travel(ctx context.Context, who string, err error) error {
	wait := p.game.between(who, time.Millisecond, gameLease/50)
	if p.game.trouble(who) < 0.06 { // it may take longer than the trip
		wait = p.game.between(who, 0, gameLease)
	}
	p.mu.Lock()
	wait += max(0, time.Until(p.stalled))
	p.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-p.alive.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.alive.Err() != nil || p.game.trouble(who) < 0.1 {
		return err
	}
	return nil
}

// call is a trip of the process to the store and back.
func call[In, Out any](p *process, ctx context.Context, name string, batch []In, method func(context.Context, []In) ([]Out, error)) ([]Out, error) {
	who := p.name + " " + name
	if err := p.travel(ctx, who, errRefused); err != nil {
		return nil, err
	}
	// A request that has arrived is carried out, even if its caller has hung up.
	out, err := method(context.WithoutCancel(ctx), batch)
	if err != nil {
		p.game.t.Errorf("the store failed by itself: %v", err)
		return nil, err
	}
	if err := p.travel(ctx, who, errReset); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *process) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	seen := make(map[string]bool)
	batch = append([]idempotency.Request(nil), batch...)
	for i := range batch {
		if seen[batch[i].Key] {
			return nil, fmt.Errorf("key %q is twice in a batch", batch[i].Key)
		}
		seen[batch[i].Key] = true
		batch[i].Lease = p.skewed(batch[i].Lease)
	}
	return call(p, ctx, "acquire", batch, p.game.oracle.Acquire)
}

func (p *process) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	return call(p, ctx, "complete", batch, p.game.oracle.Complete)
}

func (p *process) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	return call(p, ctx, "release", batch, p.game.oracle.Release)
}

func (p *process) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	batch = append([]idempotency.Extension(nil), batch...)
	for i := range batch {
		batch[i].Lease = p.skewed(batch[i].Lease)
	}
	return call(p, ctx, "extend", batch, p.game.oracle.Extend)
}

// skewed is a lease by the store's clock, which runs faster or slower than the
// process's.
func (p *process) skewed(d time.Duration) time.Duration {
	return time.Duration(float64(d) * p.rate)
}
