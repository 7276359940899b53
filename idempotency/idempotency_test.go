package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// gate is a memory store that can be slow, or fail before or after it has done
// what it was asked.
type gate struct {
	*idempotency.Memory

	mu      sync.Mutex
	latency time.Duration
	down    map[string]error // by method: nothing is done
	deaf    map[string]error // by method: it is done, and the reply is lost
	trips   map[string][]int // by method: how many members each trip had
}

func newGate() *gate {
	return &gate{
		Memory: idempotency.NewMemory(idempotency.MemoryConfig{}),
		down:   make(map[string]error), deaf: make(map[string]error), trips: make(map[string][]int),
	}
}

// fail sets what goes wrong with a method.
func (g *gate) fail(method string, down, deaf error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down[method], g.deaf[method] = down, deaf
}

func through[In, Out any](g *gate, ctx context.Context, method string, batch []In, call func(context.Context, []In) ([]Out, error)) ([]Out, error) {
	g.mu.Lock()
	g.trips[method] = append(g.trips[method], len(batch))
	latency, down, deaf := g.latency, g.down[method], g.deaf[method]
	g.mu.Unlock()
	select {
	case <-time.After(latency):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if down != nil {
		return nil, down
	}
	out, err := call(ctx, batch)
	if deaf != nil {
		return nil, deaf
	}
	return out, err
}

func (g *gate) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	return through(g, ctx, "acquire", batch, g.Memory.Acquire)
}

func (g *gate) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	return through(g, ctx, "complete", batch, g.Memory.Complete)
}

func (g *gate) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	return through(g, ctx, "release", batch, g.Memory.Release)
}

func (g *gate) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	return through(g, ctx, "extend", batch, g.Memory.Extend)
}

var errDown = errors.New("connection refused")

// guard makes middleware that must be valid, and notes what becomes of messages.
func guard(t *testing.T, store idempotency.Store, cfg idempotency.Config) (once func(reprise.Handler) reprise.Handler, seen func() []idempotency.Kind) {
	t.Helper()
	var mu sync.Mutex
	var kinds []idempotency.Kind
	cfg.Observe = func(_ context.Context, e idempotency.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, e.Kind)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	once, err := idempotency.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return once, func() []idempotency.Kind {
		mu.Lock()
		defer mu.Unlock()
		return append([]idempotency.Kind(nil), kinds...)
	}
}

func handler(f func(ctx context.Context, m *reprise.Message) error) reprise.Handler {
	return reprise.HandlerFunc(f)
}

func message(id string) *reprise.Message {
	return &reprise.Message{ID: id, OriginID: id, Body: "body of " + id}
}

// decision is what a consumer would do about err: release, retry or dead-letter, and
// after how long.
func decision(err error) (retry.Action, time.Duration) {
	now := time.Now()
	d := retry.Policy{Backoff: retry.Constant(7 * time.Hour), Jitter: retry.None}.Decide(retry.Attempt{N: 1, Seed: "s", Sent: now, First: now, Ended: now, Err: err})
	return d.Action, d.At.Sub(now)
}

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

// TestLongHandlerKeepsItsClaim for as long as it takes, with one trip for all of
// them each half lease.
func TestLongHandlerKeepsItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		once, _ := guard(t, store, idempotency.Config{Lease: time.Minute})
		var running sync.WaitGroup
		for n := range 100 {
			time.Sleep(10 * time.Millisecond)
			running.Go(func() {
				err := once(handler(func(ctx context.Context, _ *reprise.Message) error {
					select {
					case <-time.After(time.Hour + 10*time.Second):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})).Handle(t.Context(), message(fmt.Sprint(n)))
				if err != nil {
					t.Errorf("message %d: %v", n, err)
				}
			})
		}
		running.Wait()
		if n := len(store.trips["extend"]); n < 100 || n > 130 {
			t.Errorf("%d trips for an hour's leases of a minute, want about 120", n)
		}
		for _, n := range store.trips["extend"] {
			if n != 100 {
				t.Errorf("a trip extended %d claims, want all 100", n)
				break
			}
		}
	})
}

// TestOvertakenHandlerIsToldAndItsWorkDoesNotCount: another process has the key.
func TestOvertakenHandlerIsToldAndItsWorkDoesNotCount(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		t.Run(fmt.Sprint("obeys ", obeys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newGate()
				once, seen := guard(t, store, idempotency.Config{Lease: time.Minute})
				var cause error
				err := once(handler(func(ctx context.Context, m *reprise.Message) error {
					claim, retention, ok := idempotency.ClaimFrom(ctx)
					if !ok || claim.Key != "m" || claim.Token <= 0 || retention != 14*24*time.Hour {
						t.Errorf("claim %v, retention %v, %v", claim, retention, ok)
					}
					store.Memory.Release(t.Context(), []idempotency.Claim{claim})
					store.Memory.Acquire(t.Context(), []idempotency.Request{{Key: "m", Lease: time.Hour, Retention: time.Hour}})
					<-ctx.Done()
					cause = context.Cause(ctx)
					if obeys {
						return ctx.Err()
					}
					return nil
				})).Handle(t.Context(), message("m"))
				if !errors.Is(cause, idempotency.ErrLost) {
					t.Errorf("the handler was told %v, want ErrLost", cause)
				}
				if action, _ := decision(err); action != retry.ActionRelease || !errors.Is(err, idempotency.ErrLost) {
					t.Errorf("%v, %v; want the message released", action, err)
				}
				if diff := cmp.Diff([]idempotency.Kind{idempotency.KindLost}, seen()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestClaimThatCannotBeKeptIsGivenUpInTime: the handler is told before its lease ends
// by the store's clock.
func TestClaimThatCannotBeKeptIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		store.fail("extend", errDown, nil)
		once, _ := guard(t, store, idempotency.Config{Lease: time.Minute})
		began := time.Now()
		err := once(handler(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})).Handle(t.Context(), message("m"))
		if !errors.Is(err, idempotency.ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
		if took := time.Since(began); took != 54*time.Second {
			t.Errorf("it was told after %v, want after nine tenths of the lease", took)
		}
		if n := len(store.trips["extend"]); n < 4 {
			t.Errorf("extending was tried %d times", n)
		}
	})
}

// TestClaimIsNotKeptLongerThanTheMessage: once the handler's context has ended its
// key becomes free, whether or not it returns.
func TestClaimIsNotKeptLongerThanTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		once, _ := guard(t, store, idempotency.Config{Lease: time.Minute})
		ctx, lose := context.WithCancelCause(t.Context())
		go once(handler(func(context.Context, *reprise.Message) error {
			time.Sleep(time.Hour)
			return nil
		})).Handle(ctx, message("m"))
		time.Sleep(10 * time.Minute)
		lose(reprise.ErrLeaseLost)
		time.Sleep(time.Minute)
		answers, _ := store.Acquire(t.Context(), []idempotency.Request{{Key: "m", Lease: time.Minute, Retention: time.Hour}})
		if answers[0].State != idempotency.Acquired {
			t.Errorf("a minute after the end of its message the key is %v, want it free", answers[0].State)
		}
		time.Sleep(time.Hour)
	})
}

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
		q.Send("order")
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
		if kinds := seen(); kinds[0] != idempotency.KindUnrecorded || kinds[len(kinds)-1] != idempotency.KindDuplicate {
			t.Errorf("events %v", kinds)
		}
	})
}

// TestStopReleasesTheKey: a handler that a stop interrupts leaves nothing behind that
// the next process would have to wait for.
func TestStopReleasesTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newGate()
		store.latency = 100 * time.Millisecond
		once, _ := guard(t, store, idempotency.Config{})
		c := q.Consume(once(handler(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})), reprise.Config{})
		q.Send("order")
		time.Sleep(5 * time.Second)
		if report := c.Stop(); c.Err() != nil || report.Counts.Released != 1 {
			t.Errorf("stop: %v, %v", c.Err(), report)
		}
		if s := store.Stats(); s.Records != 0 {
			t.Errorf("the store has %d records after the stop, want none", s.Records)
		}
	})
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
