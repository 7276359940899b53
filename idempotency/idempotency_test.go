package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestDuplicateIsNotRun: a copy of a message, and what asks for the same under
// another id, is deleted without running the handler, and told the result.
func TestDuplicateIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var told []string
		once, seen := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{
			Key:    idempotency.ByBody,
			Prefix: "orders/",
			Duplicate: func(_ context.Context, m *reprise.Message, result []byte) error {
				told = append(told, m.Body+": "+string(result))
				return nil
			},
		})
		runs := 0
		q.Consume(once(handler(func(ctx context.Context, m *reprise.Message) error {
			runs++
			return idempotency.SetResult(ctx, []byte("shipped"))
		})), reprise.Config{Concurrency: 1})
		q.Send("order 1", "order 1", "order 1")
		q.WaitEmpty(time.Hour)
		if runs != 1 {
			t.Errorf("the handler ran %d times, want once", runs)
		}
		if diff := cmp.Diff([]string{"order 1: shipped", "order 1: shipped"}, told); diff != "" {
			t.Errorf("duplicates were told (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]idempotency.Kind{idempotency.KindDone, idempotency.KindDuplicate, idempotency.KindDuplicate}, seen()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestInProgressElsewhereCostsNoAttempt: a message whose work another process has
// claimed comes back when that claim has ended, as its first attempt, and does the
// work that the other, killed, has not.
func TestInProgressElsewhereCostsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := idempotency.NewMemory(idempotency.MemoryConfig{})
		once, _ := guard(t, store, idempotency.Config{Lease: 10 * time.Minute})
		id := q.Send("order")[0]
		if _, err := store.Acquire(t.Context(), []idempotency.Request{{Key: id, Lease: 3 * time.Minute, Retention: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var after time.Duration
		attempt := 0
		q.Consume(once(handler(func(_ context.Context, m *reprise.Message) error {
			after, attempt = time.Since(began), m.Attempt
			return nil
		})), reprise.Config{Retry: retry.Policy{MaxAttempts: 1}})
		q.WaitEmpty(time.Hour)
		if attempt != 1 {
			t.Errorf("it ran as attempt %d, want 1", attempt)
		}
		if after < 3*time.Minute || after > 4*time.Minute {
			t.Errorf("it ran after %v, want soon after the other's lease of 3m", after)
		}
	})
}

// TestWaitForAnotherRun is never 0, never absurd, and not the same for duplicates of
// one another.
func TestWaitForAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := idempotency.NewMemory(idempotency.MemoryConfig{})
		for _, c := range []struct{ lease, least, most time.Duration }{
			{time.Millisecond, time.Second, 1100 * time.Millisecond},
			{time.Minute, time.Minute, 66 * time.Second},
			{100 * time.Hour, 15 * time.Minute, 16*time.Minute + 30*time.Second},
		} {
			_, err := store.Acquire(t.Context(), []idempotency.Request{{Key: c.lease.String(), Lease: c.lease, Retention: time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			once, _ := guard(t, store, idempotency.Config{})
			waits := make(map[time.Duration]bool)
			for n := range 10 {
				m := &reprise.Message{ID: fmt.Sprint(n), OriginID: c.lease.String()}
				err := once(handler(nil)).Handle(t.Context(), m)
				action, wait := decision(err)
				if action != retry.ActionRelease || !errors.Is(err, idempotency.ErrInProgress) || wait < c.least || wait > c.most {
					t.Errorf("with %v of a lease left: %v after %v, %v; want a release for %v to %v", c.lease, action, wait, err, c.least, c.most)
				}
				waits[wait] = true
			}
			if len(waits) < 8 {
				t.Errorf("ten duplicates wait for %v", waits)
			}
		}
	})
}

// TestFailureFreesTheKey, however the handler fails, so that the retry runs.
func TestFailureFreesTheKey(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":     func() error { return errors.New("busy") },
		"permanent": func() error { return reprise.Permanent(errors.New("bad")) },
		"release":   func() error { return reprise.Release(time.Minute, errors.New("later")) },
		"panic":     func() error { panic("index out of range") },
		"Goexit":    func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				once, seen := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{})
				var first error
				var attempt sync.WaitGroup
				attempt.Go(func() {
					defer func() { _ = recover() }()
					first = once(handler(func(context.Context, *reprise.Message) error { return fail() })).Handle(t.Context(), message("m"))
				})
				attempt.Wait()
				if strings.Contains("error permanent release", name) && !errors.Is(first, errors.Unwrap(fail())) && first.Error() != fail().Error() {
					t.Errorf("the handler's error became %v", first)
				}
				ran := false
				err := once(handler(func(context.Context, *reprise.Message) error { ran = true; return nil })).Handle(t.Context(), message("m"))
				if err != nil || !ran {
					t.Errorf("the retry: ran %v, %v", ran, err)
				}
				if diff := cmp.Diff([]idempotency.Kind{idempotency.KindFailed, idempotency.KindDone}, seen()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestMismatchedPayloadIsDeadLettered instead of being taken for done.
func TestMismatchedPayloadIsDeadLettered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		once, _ := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{
			Key:    idempotency.ByJSON("/id"),
			Digest: idempotency.BodyDigest,
		})
		runs := 0
		q.Consume(once(handler(func(context.Context, *reprise.Message) error { runs++; return nil })), reprise.Config{Concurrency: 1})
		q.Send(`{"id": 1, "amount": 10}`, `{"id": 1, "amount": 10}`, `{"id": 1, "amount": 99}`, `{"no": "id"}`)
		q.WaitEmpty(time.Hour)
		var bodies []string
		for _, m := range dead.Messages() {
			bodies = append(bodies, m.Body)
		}
		if diff := cmp.Diff([]string{`{"id": 1, "amount": 99}`, `{"no": "id"}`}, bodies); diff != "" || runs != 1 {
			t.Errorf("%d runs, want 1; dead letters (-want +got):\n%s", runs, diff)
		}
	})
}

// TestNewSaysEverythingThatIsWrong at once, with a remedy.
func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	_, err := idempotency.New(nil, idempotency.Config{Prefix: "a\x00", Lease: time.Millisecond, Retention: time.Microsecond, Timeout: -1})
	for _, part := range []string{"store is nil", "Prefix", "Lease", "Retention", "Timeout", "or 0 for 1m0s"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: want it to mention %q", err, part)
		}
	}
}
