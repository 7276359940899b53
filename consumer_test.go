package reprise_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

var errUnavailable = errors.New("the warehouse is closed")

// journal records what a handler saw. It is safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	runs []run
}

// run is one run of a handler.
type run struct {
	body     string
	attempt  int
	started  time.Time
	receives int
}

func (j *journal) add(m *reprise.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs = append(j.runs, run{m.Body, m.Attempt, time.Now(), m.Receives})
}

func (j *journal) all() []run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.runs)
}

// of returns the runs for one body.
func (j *journal) of(body string) []run {
	return slices.DeleteFunc(j.all(), func(r run) bool { return r.body != body })
}

// handler records each run and lets f decide.
func (j *journal) handler(f func(ctx context.Context, m *reprise.Message) error) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		j.add(m)
		return f(ctx, m)
	})
}

// succeed is a handler's work that cannot fail.
func succeed(context.Context, *reprise.Message) error { return nil }

// TestScheduleOfSixteenDoublings runs 1, 2, 4 ... 32768 seconds of backoff, 18
// hours in all, and holds every attempt against the policy: never early, late by
// less than a second and the call.
func TestScheduleOfSixteenDoublings(t *testing.T) {
	for _, jitter := range []retry.Jitter{retry.None, retry.Full} {
		t.Run(jitter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				policy := retry.Policy{Backoff: retry.Exponential{Base: time.Second}, Jitter: jitter, MaxAttempts: 20, MaxAge: 24 * time.Hour}
				var j journal
				q.ConsumeWith(q.Client(), j.handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt <= 16 {
						return errUnavailable
					}
					return nil
				}), reprise.Config{Retry: policy})
				id := q.Send("order")[0]
				q.WaitEmpty(25 * time.Hour)

				runs := j.all()
				if len(runs) != 17 {
					t.Fatalf("%d attempts, want 17", len(runs))
				}
				for n := 1; n < len(runs); n++ {
					if runs[n].attempt != n+1 {
						t.Errorf("run %d was called attempt %d", n+1, runs[n].attempt)
					}
					want := policy.Wait(id, n)
					if jitter == retry.None && want != time.Second<<(n-1) {
						t.Fatalf("the policy's wait %d is %v", n, want)
					}
					waited := runs[n].started.Sub(runs[n-1].started)
					if waited < want {
						t.Errorf("attempt %d came %v early: after %v instead of %v", n+1, want-waited, waited, want)
					}
					if late := waited - want; late >= time.Second+300*time.Millisecond {
						t.Errorf("attempt %d came %v late: after %v instead of %v", n+1, late, waited, want)
					}
				}
			})
		})
	}
}

// TestTwelveHourRule: the 12 hours that SQS hides a message count from its
// receive. A handler that ran 40 minutes before it failed leaves 11 h 20 min,
// and a request beyond that would be refused and leave the lease's minute.
func TestTwelveHourRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j journal
		c := q.Consume(j.handler(func(context.Context, *reprise.Message) error {
			time.Sleep(40 * time.Minute)
			if len(j.all()) == 1 {
				return errUnavailable
			}
			return nil
		}), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(12 * time.Hour), Jitter: retry.None},
		})
		q.Send("order")
		q.WaitEmpty(26 * time.Hour)

		runs := j.all()
		if len(runs) != 2 {
			t.Fatalf("%d attempts, want 2", len(runs))
		}
		// The wait is parked over two receives, since 40 minutes are more than may be cut.
		failed := runs[0].started.Add(40 * time.Minute)
		if got := runs[1].started.Sub(failed); got < 12*time.Hour || got > 12*time.Hour+2*time.Second {
			t.Errorf("the second attempt came %v after the first failed, want 12h", got)
		}
		if n := c.Status().Counts.Lost; n != 0 {
			t.Errorf("SQS refused %d settlements", n)
		}
	})
}

// TestLeaseKeptThroughFiveHours: while a handler runs, its message stays ours,
// with fewer and fewer calls.
func TestLeaseKeptThroughFiveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j journal
		c := q.Consume(j.handler(func(ctx context.Context, _ *reprise.Message) error {
			select {
			case <-time.After(5 * time.Hour):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}), reprise.Config{})
		q.Send("order")
		synctest.Wait()
		q.Consume(j.handler(succeed), reprise.Config{}) // would take it if it could
		q.WaitEmpty(6 * time.Hour)
		if n := len(j.all()); n != 1 {
			t.Errorf("%d runs, want 1: the lease was lost", n)
		}
		if beats := c.Status().Calls.Heartbeats; beats < 5*60/10 || beats > 80 {
			t.Errorf("%d heartbeats in 5 hours: want enough to keep the lease, and renewals that lengthen", beats)
		}
	})
}
