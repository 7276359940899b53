// Package adaptive finds out how many handlers may run at once: as many as their dependency can
// bear. A [Limiter] measures how long handlers take, and lowers a consumer's concurrency when they
// get slower as more of them run, which shows that the dependency queues requests. Otherwise it
// raises it.
//
//	limiter, err := adaptive.New(adaptive.Config{Most: 200})
//	...
//	consumer, err := reprise.New(client, queueURL, limiter.Wrap(handler), reprise.Config{
//		Concurrency: limiter.Concurrency(),
//	})
//	...
//	if err := limiter.Drive(consumer); err != nil {
//		return err
//	}
//	err = consumer.Run(ctx)
//
// The algorithm is that of [failsafe-go]'s adaptive limiter, after TCP Vegas: recent
// durations are compared with a moving average of earlier ones, and concurrency with
// throughput. It does not handle outages: a dependency that refuses requests is fast, and the
// consumer's breaker handles that.
//
// [failsafe-go]: https://failsafe-go.dev/adaptive-limiter/
package adaptive

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/reprise-sqs/reprise"
)

// Config are the bounds of a [Limiter]. The zero Config is good for handlers that take less than
// some seconds.
type Config struct {
	// Least and Most are the bounds of the concurrency, up to 100,000, as many as a consumer
	// permits. Defaults: 1 and 200.
	Least, Most int

	// Start is the concurrency to begin with. Default: 10, within the bounds.
	Start int

	// Window is how long durations are collected, at least, before the concurrency
	// may change by a step, up to an hour; there must also be 20 of them. Default: 1 s.
	Window time.Duration
}

// Limiter finds the concurrency of one consumer. Its methods may be called from any
// goroutine.
type Limiter struct {
	limiter adaptivelimiter.AdaptiveLimiter[any]

	mu       sync.Mutex
	consumer Consumer
	told     int // the concurrency that was last set in the consumer; zero: none
}

// Consumer is the part of a [reprise.Consumer] that a [Limiter] drives.
type Consumer interface {
	SetConcurrency(n int) error
}

var _ Consumer = (*reprise.Consumer)(nil)

const (
	defaultMost   = 200
	defaultStart  = 10
	defaultWindow = time.Second
	maxWindow     = 30 * time.Second
	mostWindow    = time.Hour
	mostOfAll     = 100_000 // of reprise.Consumer
	minRuns       = 20
)

// New returns a Limiter that drives nothing yet. It fails if cfg contradicts itself.
func New(cfg Config) (*Limiter, error) {
	least, most := cmp.Or(cfg.Least, 1), cmp.Or(cfg.Most, max(cfg.Least, defaultMost))
	start := cmp.Or(cfg.Start, min(max(least, defaultStart), most))
	window := cmp.Or(cfg.Window, defaultWindow)
	switch {
	case least < 0 || most < least:
		return nil, fmt.Errorf("adaptive: Least is %d and Most is %d: set Least to 1 or more, and Most to Least or more", least, most)
	case most > mostOfAll:
		return nil, fmt.Errorf("adaptive: Most is %d: set at most %d, as many handlers as a consumer runs at once", most, mostOfAll)
	case start < least || start > most:
		return nil, fmt.Errorf("adaptive: Start is %d: set it to between Least, %d, and Most, %d", start, least, most)
	case window < 0 || window > mostWindow:
		return nil, fmt.Errorf("adaptive: Window is %v: set how long durations are collected, up to %v, or 0 for %v", window, mostWindow, defaultWindow)
	}
	return &Limiter{limiter: adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(start)).
		WithRecentWindow(window, max(window, maxWindow), minRuns).
		Build()}, nil
}

// Concurrency returns the current concurrency. At first it is [Config].Start; use it in the
// consumer's [reprise.Config].
func (l *Limiter) Concurrency() int { return l.limiter.Limit() }

// Drive sets the consumer whose handlers are wrapped, so that it gets each change. Call it before
// the consumer runs; without it, too many messages are received, and wait inside [Limiter.Wrap].
// Drive fails if c refuses the current concurrency. If it refuses a later one, as a consumer that
// permits fewer handlers than [Config].Most, its last one stays, and it is asked again after the next
// run.
func (l *Limiter) Drive(c Consumer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.consumer, l.told = c, 0
	return l.tell()
}

// Wrap returns h with measurement. It limits the runs: those that were started before the
// concurrency was lowered go on, and others wait for their turn, or for the end of their context,
// whose cause they return. The durations of failed runs do not count, because they say nothing
// about the load that the dependency can bear.
func (l *Limiter) Wrap(h reprise.Handler) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		permit, err := l.limiter.AcquirePermit(ctx)
		if err != nil {
			return reprise.Release(0, cmp.Or(context.Cause(ctx), err))
		}
		succeeded := false
		defer func() { // also when h panics, or ends its goroutine
			if succeeded {
				permit.Record()
			} else {
				permit.Drop()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			_ = l.tell() // see Drive
		}()
		if err := h.Handle(ctx, m); err != nil {
			return err
		}
		succeeded = true
		return nil
	})
}

// tell sets the current concurrency in the consumer, if it has changed. The caller holds l.mu.
func (l *Limiter) tell() error {
	n := l.limiter.Limit()
	if l.consumer == nil || n == l.told {
		return nil
	}
	if err := l.consumer.SetConcurrency(n); err != nil {
		return fmt.Errorf("adaptive: setting the concurrency: %w", err)
	}
	l.told = n
	return nil
}
