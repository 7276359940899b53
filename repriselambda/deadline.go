package repriselambda

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise"
)

// limit is the end of the time of an invocation's handlers. Their contexts end with it: an attempt
// that took too long has failed, and there is time left to report it. A run that would not end in
// time, judged by the longest successful run of this invocation, is not started: its message is
// released. Nil is no limit.
type limit struct {
	end     time.Time
	longest atomic.Int64 // in nanoseconds

	mu      sync.Mutex
	batches map[context.Context]limited // running batches, by the consumer's contexts
}

// limited is a context that ends with a limit.
type limited struct {
	context.Context
	cancel context.CancelFunc
}

var errNoTime = errors.New("the function's time is nearly over")

func newLimit(end time.Time) *limit {
	return &limit{end: end, batches: make(map[context.Context]limited)}
}

// handler is h within l.
func (l *limit) handler(h reprise.Handler) reprise.Handler {
	if l == nil {
		return h
	}
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		began := time.Now()
		if !l.allows(began) {
			return reprise.Release(0, errNoTime)
		}
		ctx, cancel := context.WithDeadline(ctx, l.end)
		defer cancel()
		err := h.Handle(ctx, m)
		if err == nil {
			l.succeeded(time.Since(began))
		}
		return err
	})
}

// batchHandler is h within l. A batch has succeeded if any of its messages has.
func (l *limit) batchHandler(h reprise.BatchHandler) reprise.BatchHandler {
	if l == nil {
		return h
	}
	return reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		defer l.leave(ctx)
		began := time.Now()
		if !l.allows(began) {
			return slices.Repeat([]error{reprise.Release(0, errNoTime)}, len(ms))
		}
		errs := h.HandleBatch(l.enter(ctx), ms)
		if errs == nil || slices.Contains(errs, nil) {
			l.succeeded(time.Since(began))
		}
		return errs
	})
}

// observer makes the contexts of a batch's messages end with l, too. They are not derived from the
// context that the handler gets.
func (l *limit) observer() reprise.Observer {
	if l == nil {
		return reprise.Observer{}
	}
	return reprise.Observer{Starting: func(ctx context.Context, _ *reprise.Message) (context.Context, string) {
		return l.enter(ctx), ""
	}}
}

// enter returns the context, made from ctx, of a batch and its messages: one for all of
// them, with one timer.
func (l *limit) enter(ctx context.Context) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.batches[ctx]
	if !ok {
		b.Context, b.cancel = context.WithDeadline(ctx, l.end)
		l.batches[ctx] = b
	}
	return b.Context
}

// leave ends the context that enter returned.
func (l *limit) leave(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.batches[ctx]; ok {
		b.cancel()
		delete(l.batches, ctx)
	}
}

// allows reports whether a run that began at then can be expected to end in time.
func (l *limit) allows(began time.Time) bool {
	return l.end.Sub(began) > time.Duration(l.longest.Load())
}

// succeeded notes the duration of a successful run.
func (l *limit) succeeded(took time.Duration) {
	for known := l.longest.Load(); int64(took) > known && !l.longest.CompareAndSwap(known, int64(took)); {
		known = l.longest.Load()
	}
}
