package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestPanicInAnySection: a bug of ours interrupts the n-th change of the machine, for every n of a run
// with all that a consumer does. Run returns an error and leaves no goroutine behind, which the
// bubble checks; Status and the methods of operators do not block, neither before nor after; no message
// is lost.
func TestPanicInAnySection(t *testing.T) {
	for name, kind := range map[string]struct{ batches, lane bool }{"one at a time": {}, "in batches": {batches: true}, "with a retry lane": {lane: true}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %v", name, late), func(t *testing.T) {
				sections := 0
				step := race.Fewer(1, 17)
				for n := 1; ; n += step {
					interrupted := false
					synctest.Test(t, func(t *testing.T) { interrupted = breaksIn(t, n, late, kind.batches, kind.lane) })
					if !interrupted || t.Failed() {
						break
					}
					sections = n
				}
				if sections < 200 {
					t.Errorf("the run had %d sections, too few for all that is to be interrupted", sections)
				}
			})
		}
	}
}

// breaksIn runs a consumer whose n-th section panics, and reports whether it had so many.
func breaksIn(t *testing.T, n int, late, batches, lane bool) (interrupted bool) {
	q := reprisetest.NewQueue(t, nil)
	queues := []*reprisetest.Queue{q, q.NewQueue(nil)}
	q.Send(kit.Numbered(30)...)
	var mu sync.Mutex
	done := make(map[string]bool) // by body
	handler := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(3 * time.Second):
		}
		switch {
		case strings.HasSuffix(m.Body, "3"):
			return reprise.Permanent(errors.New("no use"))
		case strings.HasSuffix(m.Body, "5") && m.Attempt < 3:
			return errors.New("not yet")
		case strings.HasSuffix(m.Body, "7") && m.Attempt < 2:
			return errors.New("not now")
		}
		mu.Lock()
		defer mu.Unlock()
		done[m.Body] = true
		return nil
	})
	stopped := 0
	cfg := reprise.Config{
		Concurrency: 2, Lease: 10 * time.Second, DeadLetterURL: queues[1].URL(), Logger: slog.New(slog.DiscardHandler),
		Retry:       retry.Policy{Backoff: retry.Constant(20 * time.Second), MaxAttempts: 5},
		AfterDelete: func(context.Context, *reprise.Message) {},
		Observer: reprise.Observer{
			Settled: func(context.Context, reprise.Settled) {},
			Stopped: func(reprise.Report) { mu.Lock(); defer mu.Unlock(); stopped++ },
		},
	}
	runs := 1
	if lane {
		queues = append(queues, q.NewQueue(nil))
		cfg.RetryLane.URL = queues[2].URL()
		runs = 2
	}
	var c *reprise.Consumer
	var err error
	if batches {
		c, err = reprise.NewBatchConsumer(q.Direct(), q.URL(), kit.Together(handler), reprise.BatchConfig{Size: 3, Config: cfg})
	} else {
		c, err = reprise.New(q.Direct(), q.URL(), handler, cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	reprise.PanicIn(c, n, late)
	ctx, stop := context.WithTimeout(t.Context(), 70*time.Second)
	defer stop()
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	var failed error
	for running := true; running; {
		select {
		case failed = <-ended:
			running = false
		case <-time.After(7 * time.Second):
			c.Status()
			c.Wake()
			c.Standing("nobody")
		}
	}
	interrupted = failed != nil && strings.Contains(failed.Error(), "a mistake of ours")
	if failed != nil && !interrupted {
		t.Errorf("section %d: %v", n, failed)
	}
	if s := c.Status(); interrupted && (s.Health != reprise.HealthStopped || !strings.Contains(s.Problem, "a mistake of ours")) {
		t.Errorf("section %d: after the end the health is %v, %q", n, s.Health, s.Problem)
	}
	if err := c.SetRate(5); interrupted && err == nil {
		t.Errorf("section %d: SetRate did not fail", n)
	}
	if stopped != runs {
		t.Errorf("section %d: Observer.Stopped was called %d times, want %d", n, stopped, runs)
	}
	for _, q := range queues {
		for _, m := range q.Messages() {
			done[m.Body] = true
		}
	}
	for _, body := range kit.Numbered(30) {
		if !done[body] {
			t.Errorf("section %d: message %s was lost", n, body)
		}
	}
	return interrupted
}

// TestBrokenConsumerEndsAtOnce: after a bug Run ends by itself, when the handlers have returned, whose
// contexts have ended; one that ignores its context is left behind after the last part of the budget.
func TestBrokenConsumerEndsAtOnce(t *testing.T) {
	for name, tt := range map[string]struct{ returns, want time.Duration }{
		"handlers that return":      {returns: 2 * time.Second, want: 2 * time.Second},
		"a handler that stays long": {returns: time.Minute, want: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send("a", "b")
				causes := make(chan error, 1)
				c, err := reprise.New(q.Direct(), q.URL(), reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
					<-ctx.Done()
					if m.Body == "a" {
						causes <- context.Cause(ctx)
						time.Sleep(tt.returns)
					}
					return ctx.Err()
				}), reprise.Config{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() { ended <- c.Run(t.Context()) }()
				time.Sleep(10 * time.Second)
				reprise.PanicIn(c, 1, false)
				broke := time.Now()
				if s := c.Status(); s.Health != reprise.HealthFailing || s.Processing != 2 || s.Counts.Received != 2 {
					t.Errorf("status of a broken consumer: %+v", s)
				}
				err = <-ended
				if took := time.Since(broke); err == nil || took != tt.want {
					t.Errorf("Run ended %v after the bug, with %v: want %v", took, err, tt.want)
				}
				if cause := <-causes; !errors.Is(cause, reprise.ErrStopping) {
					t.Errorf("the handler's context ended by %v, want ErrStopping", cause)
				}
				if r := c.Report(); len(r.Unsettled) != 2 || r.Drained() {
					t.Errorf("report %v, want both messages not settled", r)
				}
				time.Sleep(time.Minute) // the handler returns at last
			})
		})
	}
}

// TestBrokenPool: consumers of a pool share its state, so a bug in one ends all.
func TestBrokenPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := kit.PoolOf(t, 4)
		q := reprisetest.NewQueue(t, nil)
		other := q.NewQueue(nil)
		var all []*reprise.Consumer
		for _, q := range []*reprisetest.Queue{q, other} {
			c, err := pool.Add(q.Direct(), q.URL(), reprise.HandlerFunc(kit.Succeed), reprise.Share{}, reprise.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		ended := make(chan error)
		go func() { ended <- pool.Run(t.Context()) }()
		time.Sleep(time.Second)
		reprise.PanicIn(all[0], 1, false)
		all[0].Resume()
		if err := <-ended; err == nil || strings.Count(err.Error(), "a mistake of ours") != 2 {
			t.Errorf("Run returned %v, want the error of both consumers", err)
		}
		if s := pool.Status(); len(s.Queues) != 2 || s.Queues[1].Status.Health != reprise.HealthStopped {
			t.Errorf("status %+v, want both queues, stopped", s)
		}
		if err := pool.SetConcurrency(3); err == nil {
			t.Error("SetConcurrency of a broken pool did not fail")
		}
		if err := pool.Run(t.Context()); err == nil {
			t.Error("Run of a broken pool did not fail")
		}
		if _, err := pool.Add(q.Direct(), q.NewQueue(nil).URL(), reprise.HandlerFunc(kit.Succeed), reprise.Share{}, reprise.Config{}); err == nil {
			t.Error("a broken pool has taken a consumer")
		}
	})
}
