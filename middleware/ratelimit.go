package middleware

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
)

// ErrRateLimited is why a message was released: its key has had as many runs as it
// may have for now.
var ErrRateLimited = errors.New("middleware: the rate limit is reached")

// RateLimitConfig says what [RateLimit] permits.
type RateLimitConfig struct {
	// Rate is how many runs of the handler may start per second, for each key, from
	// 0.001 to 1,000,000. Required.
	Rate float64

	// Burst is how many may start at once, after a quiet time, up to 1,000,000.
	// Default: what Rate allows in a second, and at least 1.
	Burst int

	// Key returns whose limit a message counts against: a tenant or a host, say. It
	// may be called concurrently. Default: nil; one limit for all messages.
	Key func(*reprise.Message) string

	// Patience is how long a message may wait in its handler's place for its turn,
	// instead of being given back. Negative: not at all. Default: 1 s, the shortest
	// time for which a message can be given back.
	Patience time.Duration

	// MaxKeys is how many keys are remembered. Beyond it the one that has been quiet
	// for longest is forgotten, and starts with a whole burst when it comes again.
	// Default: 10,000.
	MaxKeys int
}

const (
	minRate         = 0.001
	maxRate         = 1_000_000
	maxBurst        = 1_000_000
	defaultPatience = time.Second
	defaultMaxKeys  = 10_000

	// longestLine is the most that a message is given back for. It is longer than
	// the interval of the lowest rate.
	longestLine = time.Hour
)

// RateLimit starts the handler at most so often per key, in this process: a fleet
// of ten may start ten times as many.
//
// A message whose turn comes within the Patience waits for it. Another is released
// until its turn, behind those of its key that were released before, so that they
// come back one by one; it costs no attempt. It does cost a receive, which counts
// against the queue's maxReceiveCount: where one key brings more than its rate for
// long, give its messages a queue of their own, whose consumer is limited by
// [reprise.Config].Rate, which receives no more than can run. On FIFO queues a
// released message holds up its group.
func RateLimit(cfg RateLimitConfig) (Middleware, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("making a rate limit: %w", err)
	}
	l := newLimiter(cfg)
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			key := ""
			if cfg.Key != nil {
				key = cfg.Key(m)
			}
			wait, turn := l.take(key, time.Now())
			if !turn {
				return reprise.Release(wait, fmt.Errorf("%w (key %q)", ErrRateLimited, key))
			}
			if err := pause(ctx, wait); err != nil {
				// The work has not started: that is no attempt, whoever ended the context.
				return reprise.Release(wait, fmt.Errorf("%w (key %q): %w", ErrRateLimited, key, err))
			}
			return next.Handle(ctx, m)
		})
	}, nil
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c RateLimitConfig) withDefaults() RateLimitConfig {
	if c.Burst == 0 {
		c.Burst = 1
		if c.Rate > 1 {
			c.Burst = int(math.Ceil(min(c.Rate, maxBurst)))
		}
	}
	switch {
	case c.Patience == 0:
		c.Patience = defaultPatience
	case c.Patience < 0:
		c.Patience = 0
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = defaultMaxKeys
	}
	return c
}

// validate returns every problem of a config whose defaults are filled in.
func (c RateLimitConfig) validate() error {
	var problems []error
	if !(c.Rate >= minRate && c.Rate <= maxRate) { // NaN too
		problems = append(problems, fmt.Errorf("RateLimitConfig.Rate is %v: set %v to %v runs per second", c.Rate, minRate, maxRate))
	}
	if c.Burst < 1 || c.Burst > maxBurst {
		problems = append(problems, fmt.Errorf("RateLimitConfig.Burst is %d: set 1 to %d runs, or 0 for what the rate allows in a second", c.Burst, maxBurst))
	}
	if c.MaxKeys < 1 {
		problems = append(problems, fmt.Errorf("RateLimitConfig.MaxKeys is %d: set a positive number, or 0 for %d", c.MaxKeys, defaultMaxKeys))
	}
	return errors.Join(problems...)
}

// limiter has a bucket for each key.
type limiter struct {
	interval time.Duration // between two turns
	slack    time.Duration // by which a burst may be ahead of them
	patience time.Duration
	maxKeys  int

	mu      sync.Mutex
	buckets map[string]*list.Element // of *bucket
	recent  *list.List               // the key used last in front
}

// bucket is a token bucket, kept as the time at which it will be full again: the
// generic cell rate algorithm.
type bucket struct {
	key  string
	full time.Time
	line time.Time // the turn behind those of the messages that were given back
}

func newLimiter(cfg RateLimitConfig) *limiter {
	interval := time.Duration(float64(time.Second) / cfg.Rate)
	return &limiter{
		interval: interval,
		slack:    time.Duration(cfg.Burst-1) * interval,
		patience: cfg.Patience,
		maxKeys:  cfg.MaxKeys,
		buckets:  make(map[string]*list.Element),
		recent:   list.New(),
	}
}

// take returns how long to wait for a turn, which is then taken and lost if the
// wait is broken off; or for how long to give the message back, if none is.
func (l *limiter) take(key string, now time.Time) (wait time.Duration, turn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(key)
	full := later(b.full, now)
	next := later(full.Add(-l.slack), now)
	if wait = next.Sub(now); wait <= l.patience {
		b.full = full.Add(l.interval)
		return wait, true
	}
	next = later(b.line, next)
	b.line = next.Add(l.interval)
	return min(next.Sub(now), longestLine), false
}

// bucket returns the key's bucket. The caller holds l.mu.
func (l *limiter) bucket(key string) *bucket {
	if e, ok := l.buckets[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*bucket)
	}
	if len(l.buckets) >= l.maxKeys {
		oldest := l.recent.Back()
		delete(l.buckets, l.recent.Remove(oldest).(*bucket).key)
	}
	b := &bucket{key: key}
	l.buckets[key] = l.recent.PushFront(b)
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
