package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestStoreDownAtAcquire: the message is retried later, as unavailable; or runs, if
// that was chosen. Neither is silent.
func TestStoreDownAtAcquire(t *testing.T) {
	for _, run := range []bool{false, true} {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) {
			store := newGate()
			store.fail("acquire", errDown, nil)
			var log strings.Builder
			once, seen := guard(t, store, idempotency.Config{RunWithoutStore: run, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			ran := false
			err := once(handler(func(ctx context.Context, _ *reprise.Message) error {
				ran = true
				if claim, _, ok := idempotency.ClaimFrom(ctx); ok {
					t.Errorf("an unprotected run has the claim %v", claim)
				}
				return idempotency.SetResult(ctx, []byte("result"))
			})).Handle(t.Context(), message("m"))
			want := []idempotency.Kind{idempotency.KindUnavailable}
			if run {
				want = []idempotency.Kind{idempotency.KindUnprotected}
			}
			if ran != run || (err == nil) != run || !run && !(reprise.IsUnavailable(err) && errors.Is(err, errDown)) {
				t.Errorf("ran %v, %v", ran, err)
			}
			if diff := cmp.Diff(want, seen()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if !strings.Contains(log.String(), "store fails") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

// TestStoreOutageBurnsNothing: while the store is down the consumer's breaker holds
// messages, and when it is back each runs once.
func TestStoreOutageBurnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		store := newGate()
		store.fail("acquire", errDown, nil)
		once, _ := guard(t, store, idempotency.Config{})
		var runs atomic.Int32
		c := q.Consume(once(handler(func(context.Context, *reprise.Message) error { runs.Add(1); return nil })), reprise.Config{})
		for n := range 100 {
			q.Send(fmt.Sprint(n))
		}
		time.Sleep(10 * time.Minute)
		if len(c.Status().Breakers) == 0 {
			t.Error("the breaker is closed after ten minutes without the store")
		}
		time.Sleep(6 * time.Hour)
		store.fail("acquire", nil, nil)
		q.WaitEmpty(12 * time.Hour)
		if n := runs.Load(); n != 100 || len(dead.Messages()) != 0 {
			t.Errorf("%d runs and %d dead letters, want 100 and none", n, len(dead.Messages()))
		}
	})
}

// TestSuccessIsRecordedThroughAnOutage: the handler is not run again for an outage of
// the store that is shorter than the patience, or for a lost reply.
func TestSuccessIsRecordedThroughAnOutage(t *testing.T) {
	for name, fail := range map[string][2]error{"down": {errDown, nil}, "lost replies": {nil, errDown}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newGate()
				once, seen := guard(t, store, idempotency.Config{})
				store.fail("complete", fail[0], fail[1])
				time.AfterFunc(8*time.Second, func() { store.fail("complete", nil, nil) })
				if err := once(handler(func(context.Context, *reprise.Message) error { return nil })).Handle(t.Context(), message("m")); err != nil {
					t.Error(err)
				}
				if err := once(handler(nil)).Handle(t.Context(), message("m")); err != nil {
					t.Errorf("the duplicate: %v", err)
				}
				if diff := cmp.Diff([]idempotency.Kind{idempotency.KindDone, idempotency.KindDuplicate}, seen()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestUnrecordedSuccessIsRecordedWhenItComesAgain: the message of work that is done
// and could not be recorded is not deleted, and when it comes again here it is
// recorded instead of run.
func TestUnrecordedSuccessIsRecordedWhenItComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newGate()
		store.fail("complete", errDown, nil)
		time.AfterFunc(2*time.Hour, func() { store.fail("complete", nil, nil) })
		var results []string
		once, seen := guard(t, store, idempotency.Config{Duplicate: func(_ context.Context, _ *reprise.Message, result []byte) error {
			results = append(results, string(result))
			return nil
		}})
		runs := 0
		q.Consume(once(handler(func(ctx context.Context, _ *reprise.Message) error {
			runs++
			return idempotency.SetResult(ctx, []byte("result"))
		})), reprise.Config{})
		id := q.Send("order")[0]
		time.Sleep(time.Hour)
		if len(q.Messages()) != 1 {
			t.Error("the message is gone, and no record says that its work is done")
		}
		q.WaitEmpty(24 * time.Hour)
		if runs != 1 {
			t.Errorf("the handler ran %d times, want once", runs)
		}
		if diff := cmp.Diff([]string{"result"}, results); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		trips := len(store.trips["complete"])
		if err := once(handler(nil)).Handle(t.Context(), message(id)); err != nil || len(store.trips["complete"]) != trips {
			t.Errorf("another duplicate: %v, and completed again", err)
		}
		if kinds := seen(); kinds[0] != idempotency.KindUnrecorded || kinds[len(kinds)-1] != idempotency.KindDuplicate {
			t.Errorf("events %v", kinds)
		}
	})
}

// TestSuccessIsRecordedThoughTheTimeIsUp: the effect has happened.
func TestSuccessIsRecordedThoughTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		store.latency = 100 * time.Millisecond
		once, seen := guard(t, store, idempotency.Config{})
		ctx, stop := context.WithCancel(t.Context())
		err := once(handler(func(context.Context, *reprise.Message) error { stop(); return nil })).Handle(ctx, message("m"))
		if diff := cmp.Diff([]idempotency.Kind{idempotency.KindDone}, seen()); diff != "" || err != nil {
			t.Errorf("%v; events (-want +got):\n%s", err, diff)
		}
	})
}
