// Package idempotencytest tests stores for package idempotency: what
// testing/fstest is to file systems. Every store of the project passes [Run], and
// one of your own should:
//
//	func TestStore(t *testing.T) {
//		idempotencytest.Run(t, idempotencytest.Config{
//			Open: func(t *testing.T) idempotency.Store { return open(t) },
//		})
//	}
package idempotencytest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/idempotency"
)

// Config is how a store is tested.
type Config struct {
	// Open returns a store without records, which is closed when t ends. It is
	// called once for each test, by several at once unless Virtual.
	Open func(t *testing.T) idempotency.Store

	// Virtual reports that the store uses only package time for time, and no network: the tests
	// then run in testing/synctest bubbles, in which leases end at once, and the adversary plays
	// more games. Otherwise they take about ten seconds.
	Virtual bool

	// Games is how many seeded games the adversary plays. Default: 50 if Virtual,
	// otherwise 5.
	Games int
}

// Run runs every test of the contract of [idempotency.Store] as a subtest, and then plays the
// adversary's games against the store under the middleware.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.Games == 0 {
		cfg.Games = 5
		if cfg.Virtual {
			cfg.Games = 50
		}
	}
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) { cfg.in(t, c.test) })
	}
	t.Run("Adversary", func(t *testing.T) { cfg.adversary(t) })
}

// in runs a test on a new store, in a bubble if the store permits it.
func (cfg Config) in(t *testing.T, test func(*testing.T, *subject)) {
	if cfg.Virtual {
		synctest.Test(t, func(t *testing.T) { test(t, &subject{cfg.Open(t)}) })
		return
	}
	t.Parallel()
	test(t, &subject{cfg.Open(t)})
}

// subject is the store under test, with methods for batches of one.
type subject struct{ idempotency.Store }

const (
	// long outlasts every test.
	long = time.Hour
	// short is a lease, or a retention, whose end a test waits for.
	short = time.Second
)

// wait waits until leases and retentions of short that began before it have ended, also for a store
// that counts in seconds.
func wait() { time.Sleep(short + 1200*time.Millisecond) }

func (s *subject) acquire(t *testing.T, key string, lease time.Duration) idempotency.Answer {
	t.Helper()
	return s.ask(t, idempotency.Request{Key: key, Lease: lease, Retention: long})
}

func (s *subject) ask(t *testing.T, r idempotency.Request) idempotency.Answer {
	t.Helper()
	answers, err := s.Acquire(t.Context(), []idempotency.Request{r})
	return one(t, "Acquire", r.Key, answers, err)
}

// claim acquires a key that has to be free.
func (s *subject) claim(t *testing.T, key string, lease time.Duration) idempotency.Claim {
	t.Helper()
	a := s.acquire(t, key, lease)
	if a.State != idempotency.Acquired || a.Token <= 0 {
		t.Fatalf("Acquire of the free key %q: %v, token %d; want it acquired, with a positive token", key, a.State, a.Token)
	}
	return idempotency.Claim{Key: key, Token: a.Token}
}

func (s *subject) complete(t *testing.T, c idempotency.Claim, result string) bool {
	t.Helper()
	held, err := s.Complete(t.Context(), []idempotency.Completion{{Claim: c, Result: []byte(result), Retention: long}})
	return one(t, "Complete", c.Key, held, err)
}

func (s *subject) release(t *testing.T, c idempotency.Claim) bool {
	t.Helper()
	held, err := s.Release(t.Context(), []idempotency.Claim{c})
	return one(t, "Release", c.Key, held, err)
}

func (s *subject) extend(t *testing.T, c idempotency.Claim, lease time.Duration) bool {
	t.Helper()
	held, err := s.Extend(t.Context(), []idempotency.Extension{{Claim: c, Lease: lease}})
	return one(t, "Extend", c.Key, held, err)
}

// one is the only answer of a batch.
func one[T any](t *testing.T, method, key string, answers []T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("%s of key %q: %v", method, key, err)
	}
	if len(answers) != 1 {
		t.Fatalf("%s of a batch of one gave %d answers", method, len(answers))
	}
	return answers[0]
}

// want fails the test unless the store gave this answer.
func want(t *testing.T, got, want bool, rule string) {
	t.Helper()
	if got != want {
		t.Errorf("the store said %v, want %v: %s", got, want, rule)
	}
}

// wantAll fails the test unless the store gave this answer for each claim.
func wantAll(t *testing.T, method string, claims []idempotency.Claim, got, want []bool, err error) {
	t.Helper()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s of %v: %v, %v; want %v", method, claims, got, err, want)
	}
}

// wantCompleted fails the test unless the answer is that the key was completed with
// that result.
func wantCompleted(t *testing.T, a idempotency.Answer, result string) {
	t.Helper()
	if a.State != idempotency.Completed || string(a.Result) != result {
		t.Errorf("Acquire of a completed key: %v, result %q; want %v with %q, which its completion left", a.State, a.Result, idempotency.Completed, result)
	}
}

// wantInProgress fails the test unless the answer is that a claim holds for as long
// as lease at most, and a millisecond more: stores that count in milliseconds round up, so that no
// lease is shorter than requested.
func wantInProgress(t *testing.T, a idempotency.Answer, lease time.Duration) {
	t.Helper()
	if a.State != idempotency.InProgress {
		t.Errorf("Acquire of a claimed key: %v, want %v: its lease holds", a.State, idempotency.InProgress)
	} else if a.Wait < 0 || a.Wait > lease+time.Millisecond {
		t.Errorf("a claim with a lease of %v holds for another %v", lease, a.Wait)
	}
}

// distinct returns the first claim of each key.
func distinct(claims []idempotency.Claim, held []bool) (c []idempotency.Claim, h []bool) {
	seen := make(map[string]bool)
	for i := range claims {
		if !seen[claims[i].Key] {
			seen[claims[i].Key] = true
			c, h = append(c, claims[i]), append(h, held[i])
		}
	}
	return c, h
}

// cancelled is a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
