package settling

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestRetryAfter: the handler's wait replaces the policy's.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return fmt.Errorf("shipping: %w", reprise.RetryAfter(90*time.Second, kit.ErrUnavailable))
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Hour)}})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		runs := j.All()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if waited := runs[1].Started.Sub(runs[0].Started); waited < 90*time.Second || waited > 92*time.Second {
			t.Errorf("waited %v, want 90s", waited)
		}
	})
}

// TestReleaseCountsNoAttempt: a release counts as no attempt, and each release in a row waits
// longer, since SQS counts the receives.
func TestReleaseCountsNoAttempt(t *testing.T) {
	for _, via := range []reprise.Via{reprise.ViaAuto, reprise.ViaVisibility} {
		t.Run(via.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { releaseTwelveTimes(t, via) })
		})
	}
}

func releaseTwelveTimes(t *testing.T, via reprise.Via) {
	q := reprisetest.NewQueue(t, nil)
	var j kit.Journal
	q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
		if len(j.All()) <= 12 {
			return reprise.Release(0, kit.ErrUnavailable)
		}
		return nil
	}), reprise.Config{Via: via, Retry: retry.Policy{MaxAttempts: 3}})
	q.Send("order")
	q.WaitEmpty(2 * time.Hour)
	runs := j.All()
	if len(runs) != 13 {
		t.Fatalf("%d runs, want 13", len(runs))
	}
	for i, r := range runs {
		if r.Attempt != 1 {
			t.Errorf("run %d was called attempt %d: a release counts none", i+1, r.Attempt)
		}
		if i == 0 {
			continue
		}
		least := min(5*time.Minute, time.Second<<(i-1))
		if waited := r.Started.Sub(runs[i-1].Started); waited < least || waited > least+2*time.Second {
			t.Errorf("release %d waited %v, want %v", i, waited, least)
		}
	}
}

// TestHandlerTimeoutIsAnAttempt: a handler that its timeout ends has used up an attempt.
func TestHandlerTimeoutIsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		q.Consume(j.Handler(func(ctx context.Context, m *reprise.Message) error {
			if m.Attempt == 3 {
				return nil
			}
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 7*time.Second {
				t.Errorf("the context's deadline is in %v", time.Until(deadline))
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return ctx.Err()
		}), reprise.Config{HandlerTimeout: 7 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None}})
		q.Send("order")
		q.WaitEmpty(time.Minute)
		if runs := j.All(); len(runs) != 3 || runs[2].Attempt != 3 {
			t.Errorf("runs %+v, want three attempts", runs)
		}
	})
}

// TestThousandMessagesThroughEightConsumers: 30 % of attempts fail; every message
// ends handled or in the dead-letter queue with its story.
func TestThousandMessagesThroughEightConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(1000)
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(1, 2))
		done := make(map[string]int)
		h := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			fails := rng.Float64() < 0.3
			mu.Unlock()
			time.Sleep(time.Duration(len(m.Body)) * 10 * time.Millisecond)
			if fails {
				return kit.ErrUnavailable
			}
			mu.Lock()
			defer mu.Unlock()
			done[m.ID]++
			return nil
		})
		policy := retry.Policy{Backoff: retry.Exponential{Base: time.Second}, MaxAttempts: 3}
		var consumers []*reprisetest.Consumer
		for range 8 {
			consumers = append(consumers, q.Consume(h, reprise.Config{Retry: policy}))
		}
		ids := q.Send(kit.Numbered(1000)...)
		q.WaitEmpty(time.Hour)
		for _, c := range consumers {
			if r := c.Stop(); !r.Drained() || c.Err() != nil {
				t.Errorf("a consumer did not drain: %v, %v", r, c.Err())
			}
		}

		letters := make(map[string]bool)
		for _, m := range dead.Messages() {
			s := kit.StoryOf(t, m)
			letters[s.Message] = true
			if s.Reason != "attempts" || s.Attempts != 3 {
				t.Errorf("story %+v, want 3 attempts", s)
			}
		}
		for _, id := range ids {
			if handled := done[id] > 0; handled == letters[id] {
				t.Errorf("message %s: handled %v, dead-lettered %v; want exactly one", id, handled, letters[id])
			}
		}
		if len(letters) == 0 || len(done) < 900 {
			t.Errorf("%d handled, %d dead-lettered: the failures did not happen", len(done), len(letters))
		}
	})
}
