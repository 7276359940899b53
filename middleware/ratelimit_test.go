package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// starts notes when a handler was run.
type starts struct {
	mu    sync.Mutex
	begun time.Time
	at    []time.Duration
}

func (s *starts) Handle(context.Context, *reprise.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Since(s.begun))
	return nil
}

func (s *starts) all() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// impatient is a limit that gives back what does not start at once.
func impatient(rate float64, burst int) middleware.RateLimitConfig {
	return middleware.RateLimitConfig{Rate: rate, Burst: burst, Patience: -1}
}

// released returns for how long err releases a message, 0 if it does not.
func released(err error) time.Duration {
	if err == nil {
		return 0
	}
	now := time.Unix(1_000_000, 0)
	d := retry.Policy{}.Decide(retry.Failure{N: 1, Err: err, Ended: now})
	if d.Action != retry.ActionRelease {
		return 0
	}
	return d.At.Sub(now)
}

// TestRateLimitReleases: what is over the limit is given back until its turn, each
// behind the one before, never for nothing; then turns come at the rate.
func TestRateLimitReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starts{begun: time.Now()}
		h := middleware.Must(middleware.RateLimit(impatient(0.5, 2)))(s)
		for i, want := range []time.Duration{0, 0, 2 * time.Second, 4 * time.Second, 6 * time.Second} {
			err := h.Handle(t.Context(), message())
			if got := released(err); got != want || errors.Is(err, middleware.ErrRateLimited) != (want > 0) {
				t.Errorf("message %d: released for %v, %v, want %v", i, got, err, want)
			}
		}
		time.Sleep(2 * time.Second) // one turn
		if err := h.Handle(t.Context(), message()); err != nil {
			t.Errorf("in its turn: %v", err)
		}
		if got := released(h.Handle(t.Context(), message())); got != 6*time.Second {
			t.Errorf("another is released for %v, want 6s: three are before it", got)
		}
		time.Sleep(time.Hour) // the burst is whole again, and no larger
		for i := range 3 {
			if got := released(h.Handle(t.Context(), message())); (got > 0) != (i == 2) {
				t.Errorf("after an hour, message %d: released for %v", i, got)
			}
		}
		if n := len(s.all()); n != 5 {
			t.Errorf("%d runs, want 5", n)
		}
	})
}

// TestRateLimitWaits for a turn that is near, in the handler's place.
func TestRateLimitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starts{begun: time.Now()}
		h := middleware.Must(middleware.RateLimit(middleware.RateLimitConfig{Rate: 4, Burst: 1}))(s)
		var releases []time.Duration
		for range 7 {
			go func() { // a second holds four intervals
				if wait := released(h.Handle(t.Context(), message())); wait > 0 {
					s.mu.Lock()
					defer s.mu.Unlock()
					releases = append(releases, wait)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond, time.Second}
		if got := s.all(); !slices.Equal(got, want) {
			t.Errorf("started at %v, want %v", got, want)
		}
		if want := []time.Duration{1250 * time.Millisecond, 1500 * time.Millisecond}; !slices.Equal(releases, want) {
			t.Errorf("released for %v, want %v", releases, want)
		}
	})
}

// TestRateLimitByKey: each key has its own limit; the empty one is a key.
func TestRateLimitByKey(t *testing.T) {
	s := &starts{}
	cfg := impatient(0.01, 1)
	cfg.Key = func(m *reprise.Message) string { return m.GroupID }
	h := middleware.Must(middleware.RateLimit(cfg))(s)
	for _, key := range []string{"acme", "", "initech"} {
		m := message()
		m.GroupID = key
		if err := h.Handle(t.Context(), m); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
		if err := h.Handle(t.Context(), m); released(err) == 0 || !strings.Contains(err.Error(), fmt.Sprintf("key %q", key)) {
			t.Errorf("key %q again: %v", key, err)
		}
	}
}

// TestRateLimitForgetsTheQuietest: of more keys than are remembered the one that was
// used longest ago begins anew, the others stay limited.
func TestRateLimitForgetsTheQuietest(t *testing.T) {
	cfg := impatient(0.01, 1)
	cfg.Key = func(m *reprise.Message) string { return m.GroupID }
	cfg.MaxKeys = 3
	h := middleware.Must(middleware.RateLimit(cfg))(returns(nil))
	runs := func(key string) bool {
		m := message()
		m.GroupID = key
		return h.Handle(t.Context(), m) == nil
	}
	for _, step := range []struct {
		key  string
		runs bool
	}{
		{"a", true}, {"b", true}, {"c", true}, {"a", false}, // b is the quietest
		{"d", true}, {"a", false}, {"c", false}, {"d", false},
		{"b", true}, // for a
		{"c", false}, {"a", true},
	} {
		if got := runs(step.key); got != step.runs {
			t.Fatalf("key %s ran: %v, want %v", step.key, got, step.runs)
		}
	}
}

// TestRateLimitGivesBackWhoMayNotWait: a wait whose context ends is no attempt.
func TestRateLimitGivesBackWhoMayNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starts{begun: time.Now()}
		h := middleware.Must(middleware.RateLimit(middleware.RateLimitConfig{Rate: 1, Burst: 1}))(s)
		if err := h.Handle(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
		outer := middleware.Must(middleware.Timeout(100 * time.Millisecond))
		err := outer(h).Handle(t.Context(), message())
		if released(err) == 0 || !errors.Is(err, middleware.ErrRateLimited) || !errors.Is(err, context.DeadlineExceeded) || len(s.all()) != 1 {
			t.Errorf("error %v", err)
		}
	})
}

// TestRateLimitByAConsumer: everything is handled, at the rate, no message costs an
// attempt, and few come back more than once.
func TestRateLimitByAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		s := &starts{begun: time.Now()}
		var mu sync.Mutex
		attempts, receives := 0, 0
		h := middleware.Must(middleware.RateLimit(middleware.RateLimitConfig{Rate: 2, Burst: 4}))(
			reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				mu.Lock()
				attempts, receives = max(attempts, m.Attempt), receives+m.Receives
				mu.Unlock()
				return s.Handle(ctx, m)
			}))
		q.Consume(h, reprise.Config{Concurrency: 50})
		const messages = 60
		for i := range messages {
			q.Send("order " + strconv.Itoa(i))
		}
		q.WaitEmpty(5 * time.Minute)
		at := s.all()
		if len(at) != messages {
			t.Fatalf("%d runs, want %d", len(at), messages)
		}
		for i, started := range at { // no more than the burst ahead of the rate
			if earliest := time.Duration(i-3) * time.Second / 2; started < earliest {
				t.Errorf("run %d at %v, want not before %v", i, started, earliest)
			}
		}
		if last, ideal := at[messages-1], (messages-4)*time.Second/2; last > 2*ideal {
			t.Errorf("the last run was at %v, where %v is possible", last, ideal)
		}
		mu.Lock()
		defer mu.Unlock()
		if attempts != 1 || receives > 3*messages {
			t.Errorf("at most %d attempts and in all %d receives, want 1 and at most %d", attempts, receives, 3*messages)
		}
	})
}

// TestRateLimitDefaults: a burst of what a second allows, and one rate for all.
func TestRateLimitDefaults(t *testing.T) {
	for rate, burst := range map[float64]int{0.1: 1, 1: 1, 2.5: 3, 100: 100} {
		h := middleware.Must(middleware.RateLimit(middleware.RateLimitConfig{Rate: rate, Patience: -1}))(returns(nil))
		synctest.Test(t, func(t *testing.T) {
			n := 0
			for h.Handle(t.Context(), message()) == nil {
				n++
			}
			if n != burst {
				t.Errorf("rate %v: %d at once, want %d", rate, n, burst)
			}
		})
	}
}

// TestRateLimitFarAway: however many wait, none is given back for more than an hour.
func TestRateLimitFarAway(t *testing.T) {
	h := middleware.Must(middleware.RateLimit(impatient(0.001, 1)))(returns(nil))
	for i := range 100 {
		if wait := released(h.Handle(t.Context(), message())); i > 0 && (wait < 900*time.Second || wait > time.Hour) {
			t.Fatalf("message %d is released for %v", i, wait)
		}
	}
}
