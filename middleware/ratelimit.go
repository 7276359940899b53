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
	"github.com/reprise-sqs/reprise/internal/shortkey"
)

// ErrRateLimited is the reason of a release: the key of the message has used up its runs for now.
var ErrRateLimited = errors.New("middleware: the rate limit is reached")

// RateLimitConfig are the settings of [RateLimit].
type RateLimitConfig struct {
	// Rate is how many runs of the handler may start per second, for each key, from
	// 0.001 to 1,000,000. Required.
	Rate float64

	// Burst is how many may start at once, after a quiet time, up to 1,000,000.
	// Default: as many as Rate allows in a second, and at least 1.
	Burst int

	// Key returns the key whose limit a message counts against: for example a tenant or a host. Of
	// a key of more than 256 bytes only the beginning and a digest of all of it are kept. It may be
	// called concurrently. Default: nil; one limit for all messages.
	Key func(*reprise.Message) string

	// Patience is how long a message may wait in its handler's place for its turn, instead of being
	// given back. Negative: no wait. Default: 1 s, the shortest time for which a message can be
	// given back.
	Patience time.Duration

	// MaxKeys is how many keys are remembered. Beyond that the key that has been quiet for longest
	// is forgotten; when it comes again it starts with a full burst. Default: 10,000.
	MaxKeys int
}

const (
	minRate         = 0.001
	maxRate         = 1_000_000
	maxBurst        = 1_000_000
	defaultPatience = time.Second
	defaultMaxKeys  = 10_000

	// longestLine is the longest time for which a message is given back. It is longer than the
	// interval of the lowest rate.
	longestLine = time.Hour
)

// RateLimit limits how often the handler starts per key, in this process: ten processes may start
// it ten times as often.
//
// A message whose turn comes within the Patience waits for it. Other messages are released until
// their turn, behind earlier released ones of their key, so that they come back one by one. That
// costs no attempt, but it costs a receive, which counts against the queue's maxReceiveCount: if
// one key exceeds its rate for long, give its messages a queue of their own and limit that consumer
// by [reprise.Config].Rate, which receives no more than can run. On FIFO queues a released message
// blocks its group.
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
				key = shortkey.Of(cfg.Key(m))
			}
			wait, turn := l.take(key, time.Now())
			if !turn {
				return reprise.Release(wait, fmt.Errorf("%w (key %q)", ErrRateLimited, key))
			}
			if err := pause(ctx, wait); err != nil {
				// The work has not started: this is not an attempt, whatever ended the context.
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
	line time.Time // the turn after those of the messages that were given back
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

// take takes a turn and returns how long to wait for it; the turn is lost if the wait is
// interrupted. If no turn comes within the patience, it takes none and returns how long to give the
// message back.
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
