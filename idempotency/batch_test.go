package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/retry"
)

// batchHandler is a handler of batches that does f for each message.
func batchHandler(f func(ctx context.Context, m *reprise.Message) error) reprise.BatchHandler {
	return reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			errs[i] = f(idempotency.MessageContext(ctx, m), m)
		}
		return errs
	})
}

// guardBatch is guard for batches; what became of messages is by their ids.
func guardBatch(t *testing.T, store idempotency.Store, cfg idempotency.Config) (once func(reprise.BatchHandler) reprise.BatchHandler, seen func() map[string]idempotency.Kind) {
	t.Helper()
	var mu sync.Mutex
	kinds := make(map[string]idempotency.Kind)
	cfg.Observe = func(_ context.Context, e idempotency.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds[e.Message.ID] = e.Kind
	}
	if cfg.Key == nil {
		cfg.Key = byID
	}
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	once, err := idempotency.NewBatch(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return once, func() map[string]idempotency.Kind {
		mu.Lock()
		defer mu.Unlock()
		defer clear(kinds)
		copied := make(map[string]idempotency.Kind)
		for id, kind := range kinds {
			copied[id] = kind
		}
		return copied
	}
}

// messages returns a message for each id, which may be followed by a group's name, as in
// "m@group", on a FIFO queue.
func messages(ids ...string) []*reprise.Message {
	ms := make([]*reprise.Message, len(ids))
	for i, id := range ids {
		name, group, fifo := strings.Cut(id, "@")
		ms[i] = message(name)
		if fifo {
			ms[i].GroupID, ms[i].DeduplicationID = group, name
		}
	}
	return ms
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	return ids
}

// TestBatchTakesOneTripEachWay, whatever its size, up to 256 messages to a trip.
func TestBatchTakesOneTripEachWay(t *testing.T) {
	for _, tt := range []struct {
		size, fail             int
		acquires, ends, failed []int
	}{
		{size: 1, acquires: []int{1}, ends: []int{1}},
		{size: 10, acquires: []int{10}, ends: []int{10}},
		{size: 10, fail: 3, acquires: []int{10}, ends: []int{7}, failed: []int{3}},
		{size: 10, fail: 10, acquires: []int{10}, failed: []int{10}},
		{size: 600, acquires: []int{256, 256, 88}, ends: []int{256, 256, 88}},
	} {
		t.Run(fmt.Sprint(tt.size, tt.fail), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newGate()
				store.latency = 10 * time.Millisecond
				once, seen := guardBatch(t, store, idempotency.Config{})
				failed := 0
				errs := once(batchHandler(func(context.Context, *reprise.Message) error {
					if failed < tt.fail {
						failed++
						return errDown
					}
					return nil
				})).HandleBatch(t.Context(), messages(numbered(tt.size)...))
				if n := len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })); n != tt.fail {
					t.Errorf("%d verdicts are errors, want %d", n, tt.fail)
				}
				want := map[string][]int{"acquire": tt.acquires}
				if tt.ends != nil {
					want["complete"] = tt.ends
				}
				if tt.failed != nil {
					want["release"] = tt.failed
				}
				if diff := cmp.Diff(want, store.trips); diff != "" {
					t.Errorf("trips (-want +got):\n%s", diff)
				}
				if n := len(seen()); n != tt.size {
					t.Errorf("told of %d messages, want %d", n, tt.size)
				}
			})
		})
	}
}

// TestEachMessageOfABatchHasItsVerdict: what is done, in progress, done with another
// payload, without a key, or one's twin is not run, and costs its neighbours nothing.
func TestEachMessageOfABatchHasItsVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		var told []string
		once, seen := guardBatch(t, store, idempotency.Config{
			Key: func(m *reprise.Message) (string, error) {
				if m.ID == "keyless" {
					return "", nil
				}
				return byID(m)
			},
			Digest: func(m *reprise.Message) []byte { return []byte(m.Body) },
			Duplicate: func(_ context.Context, m *reprise.Message, result []byte) error {
				told = append(told, m.ID+": "+string(result))
				return nil
			},
		})
		var ran []string
		handler := once(batchHandler(func(ctx context.Context, m *reprise.Message) error {
			ran = append(ran, m.ID)
			if m.ID == "fails" {
				return errDown
			}
			return idempotency.SetResult(ctx, []byte("result of "+m.ID))
		}))
		handler.HandleBatch(t.Context(), messages("done", "other payload"))
		if _, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "in progress", Lease: 3 * time.Minute, Retention: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		ran = nil
		seen()
		ms := messages("new", "done", "in progress", "other payload", "keyless", "fails", "twin")
		ms[3].Body = "another"
		ms[6].OriginID = "new"
		errs := handler.HandleBatch(t.Context(), ms)

		if diff := cmp.Diff([]string{"new", "fails"}, ran); diff != "" {
			t.Errorf("these were run (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"done: result of done"}, told); diff != "" {
			t.Errorf("duplicates were told (-want +got):\n%s", diff)
		}
		want := map[string]idempotency.Kind{
			"new": idempotency.KindDone, "done": idempotency.KindDuplicate, "in progress": idempotency.KindInProgress,
			"other payload": idempotency.KindMismatch, "fails": idempotency.KindFailed, "twin": idempotency.KindInProgress,
		}
		if diff := cmp.Diff(want, seen()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		for i, check := range []func(error) bool{
			func(err error) bool { return err == nil },
			func(err error) bool { return err == nil },
			func(err error) bool {
				action, wait := decision(err)
				return action == retry.ActionRelease && errors.Is(err, idempotency.ErrInProgress) && wait >= 3*time.Minute
			},
			func(err error) bool {
				action, _ := decision(err)
				return action == retry.ActionDeadLetter && errors.Is(err, idempotency.ErrMismatch)
			},
			func(err error) bool { action, _ := decision(err); return action == retry.ActionDeadLetter },
			func(err error) bool { return err == errDown },
			func(err error) bool {
				action, wait := decision(err)
				return action == retry.ActionRelease && errors.Is(err, idempotency.ErrInProgress) && wait < 2*time.Second
			},
		} {
			if !check(errs[i]) {
				t.Errorf("the verdict on %q is %v", ms[i].ID, errs[i])
			}
		}
	})
}

// TestBatchOfNothingNewIsNotRun: the handler is not called.
func TestBatchOfNothingNewIsNotRun(t *testing.T) {
	once, _ := guardBatch(t, newGate(), idempotency.Config{})
	calls := 0
	handler := once(reprise.BatchHandlerFunc(func(context.Context, []*reprise.Message) []error { calls++; return nil }))
	for range 3 {
		if errs := handler.HandleBatch(t.Context(), messages("a", "b")); errors.Join(errs...) != nil || len(errs) != 2 {
			t.Errorf("verdicts %v, want two successes", errs)
		}
	}
	if calls != 1 {
		t.Errorf("the handler was called %d times, want once", calls)
	}
}

// TestBatchThatFailsWholeFreesItsKeys: by a panic, the end of its goroutine, or verdicts
// that cannot be understood.
func TestBatchThatFailsWholeFreesItsKeys(t *testing.T) {
	for name, f := range map[string]func(ms []*reprise.Message) []error{
		"panic":                  func([]*reprise.Message) []error { panic("index out of range") },
		"Goexit":                 func([]*reprise.Message) []error { runtime.Goexit(); return nil },
		"too few verdicts":       func([]*reprise.Message) []error { return make([]error, 1) },
		"no verdicts":            func([]*reprise.Message) []error { return []error{} },
		"a message twice":        func(ms []*reprise.Message) []error { ms[0] = ms[1]; return make([]error, 2) },
		"a message of another":   func(ms []*reprise.Message) []error { ms[0] = message("x"); return make([]error, 2) },
		"one that was not asked": func(ms []*reprise.Message) []error { ms[0] = nil; return make([]error, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			once, seen := guardBatch(t, newGate(), idempotency.Config{})
			ms := messages("done", "a", "b")
			once(batchHandler(func(context.Context, *reprise.Message) error { return nil })).HandleBatch(t.Context(), ms[:1])
			seen()
			var errs []error
			var attempt sync.WaitGroup
			attempt.Go(func() {
				defer func() { _ = recover() }()
				errs = once(reprise.BatchHandlerFunc(func(_ context.Context, ms []*reprise.Message) []error { return f(ms) })).HandleBatch(t.Context(), ms)
			})
			attempt.Wait()
			if name != "panic" && name != "Goexit" && (len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] == nil) {
				t.Errorf("verdicts %v, want two errors behind the success", errs)
			}
			want := map[string]idempotency.Kind{"done": idempotency.KindDuplicate, "a": idempotency.KindFailed, "b": idempotency.KindFailed}
			if diff := cmp.Diff(want, seen()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			ran := 0
			again := once(batchHandler(func(context.Context, *reprise.Message) error { ran++; return nil })).HandleBatch(t.Context(), ms)
			if errors.Join(again...) != nil || ran != 2 {
				t.Errorf("the retry: %v, %d were run, want two", again, ran)
			}
		})
	}
}

// TestBatchMayBeReordered: verdicts follow the messages.
func TestBatchMayBeReordered(t *testing.T) {
	once, seen := guardBatch(t, newGate(), idempotency.Config{})
	ms := messages("a", "b", "c")
	errs := once(reprise.BatchHandlerFunc(func(_ context.Context, ms []*reprise.Message) []error {
		slices.Reverse(ms)
		return []error{errDown, nil, nil}
	})).HandleBatch(t.Context(), ms)
	if errs[0] != nil || errs[1] != nil || errs[2] != errDown || ms[0].ID != "a" {
		t.Errorf("verdicts %v, want an error on the last", errs)
	}
	if got := seen(); got["c"] != idempotency.KindFailed || got["a"] != idempotency.KindDone {
		t.Errorf("events %v", got)
	}
}

// TestLostClaimEndsItsMessagesContext, and that of the batch only when no claim is left.
func TestLostClaimEndsItsMessagesContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		once, seen := guardBatch(t, store, idempotency.Config{Lease: time.Minute})
		ms := messages("a", "b")
		steal := func(ctx context.Context) { // as if the store had forgotten
			claim, _, _ := idempotency.ClaimFrom(ctx)
			if held, err := store.Memory.Release(t.Context(), []idempotency.Claim{claim}); err != nil || !held[0] {
				t.Errorf("stealing %v: %v, %v", claim, held, err)
			}
			if _, err := store.Memory.Acquire(t.Context(), []idempotency.Request{{Key: claim.Key, Lease: time.Hour, Retention: time.Hour}}); err != nil {
				t.Error(err)
			}
		}
		errs := once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			a, b := idempotency.MessageContext(ctx, ms[0]), idempotency.MessageContext(ctx, ms[1])
			if claim, _, ok := idempotency.ClaimFrom(b); !ok || claim.Key != "b" {
				t.Errorf("the claim of b is %v, %v", claim, ok)
			}
			if _, _, ok := idempotency.ClaimFrom(ctx); ok {
				t.Error("the context of the batch has a claim")
			}
			if err := idempotency.SetResult(ctx, nil); err == nil || !strings.Contains(err.Error(), "MessageContext") {
				t.Errorf("a result of the batch: %v", err)
			}
			steal(a)
			if err := told(a); !errors.Is(err, idempotency.ErrLost) {
				t.Errorf("a ended for %v", err)
			}
			if b.Err() != nil || ctx.Err() != nil {
				t.Errorf("with a, b ended (%v) or the batch (%v)", b.Err(), ctx.Err())
			}
			steal(b)
			if err := told(ctx); !errors.Is(err, idempotency.ErrLost) {
				t.Errorf("the batch ended for %v", err)
			}
			return nil
		})).HandleBatch(t.Context(), ms)
		for i, err := range errs {
			if action, _ := decision(err); action != retry.ActionRelease || !errors.Is(err, idempotency.ErrLost) {
				t.Errorf("the verdict on %s is %v, want a release", ms[i].ID, err)
			}
		}
		want := map[string]idempotency.Kind{"a": idempotency.KindLost, "b": idempotency.KindLost}
		if diff := cmp.Diff(want, seen()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestNothingIsRecordedBehindALostClaim: where a claim is lost, the consumer that has it now
// runs its message again. Later messages of the group must run after that, so that nothing is
// recorded for them here.
func TestNothingIsRecordedBehindALostClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		once, seen := guardBatch(t, store, idempotency.Config{Lease: time.Minute})
		ms := messages("a1@a", "a2@a", "b1@b")
		errs := once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			first := idempotency.MessageContext(ctx, ms[0])
			claim, _, _ := idempotency.ClaimFrom(first)
			if held, err := store.Memory.Release(t.Context(), []idempotency.Claim{claim}); err != nil || !held[0] {
				t.Errorf("taking %v away: %v, %v", claim, held, err)
			}
			if err := told(first); !errors.Is(err, idempotency.ErrLost) {
				t.Errorf("a1 ended for %v", err)
			}
			return nil
		})).HandleBatch(t.Context(), ms)
		for i, failed := range []bool{true, true, false} {
			if (errs[i] != nil) != failed {
				t.Errorf("the verdict on %s is %v", ms[i].ID, errs[i])
			}
		}
		want := map[string]idempotency.Kind{"a1": idempotency.KindLost, "b1": idempotency.KindDone}
		if diff := cmp.Diff(want, seen()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		answers, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "a2", Lease: time.Minute, Retention: time.Hour}})
		if err != nil || answers[0].State != idempotency.Acquired {
			t.Errorf("the key of a2 is %v (%v), want it free", answers, err)
		}
	})
}

// TestBatchKeepsAGroupsOrder: behind a message of its group that is not run, or fails,
// nothing is run, or recorded; other groups, and groups that have no order, do not care.
func TestBatchKeepsAGroupsOrder(t *testing.T) {
	store := newGate()
	once, seen := guardBatch(t, store, idempotency.Config{})
	if _, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "a1", Lease: time.Minute, Retention: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	var ran []string
	handler := once(batchHandler(func(_ context.Context, m *reprise.Message) error {
		ran = append(ran, m.ID)
		if strings.HasSuffix(m.ID, "2") {
			return errDown
		}
		return nil
	}))
	ms := messages("a1@a", "b1@b", "a3@a", "b2@b", "c1@c", "b3@b", "d2", "d3")
	ms[6].GroupID, ms[7].GroupID = "d", "d" // of a standard queue
	errs := handler.HandleBatch(t.Context(), ms)
	if diff := cmp.Diff([]string{"b1", "b2", "c1", "b3", "d2", "d3"}, ran); diff != "" {
		t.Errorf("these were run (-want +got):\n%s", diff)
	}
	for i, failed := range []bool{true, false, true, true, false, true, true, false} {
		if (errs[i] != nil) != failed {
			t.Errorf("the verdict on %s is %v", ms[i].ID, errs[i])
		}
	}
	want := map[string]idempotency.Kind{
		"a1": idempotency.KindInProgress, "b1": idempotency.KindDone, "b2": idempotency.KindFailed, "c1": idempotency.KindDone,
		"d2": idempotency.KindFailed, "d3": idempotency.KindDone,
	}
	if diff := cmp.Diff(want, seen()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	ran = nil
	handler.HandleBatch(t.Context(), messages("a3@a", "b3@b"))
	if diff := cmp.Diff([]string{"a3", "b3"}, ran); diff != "" {
		t.Errorf("what was put back was run again (-want +got):\n%s", diff)
	}
}
