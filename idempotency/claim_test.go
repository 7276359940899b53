package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
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
				err := once(working(time.Hour+10*time.Second)).Handle(t.Context(), message(fmt.Sprint(n)))
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

// leaving is a store whose first Extend ends its goroutine.
type leaving struct {
	*gate
	once sync.Once
}

func (l *leaving) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	l.once.Do(runtime.Goexit)
	return l.gate.Extend(ctx, batch)
}

// panicking is a log whose handler panics.
type panicking struct{ slog.Handler }

func (panicking) Handle(context.Context, slog.Record) error { panic("the log is full") }

// TestClaimsAreKeptWhateverUserCodeDoes: neither a store that ends the goroutine which extends claims, nor a log that
// panics there, ends the extending of claims, or the process.
func TestClaimsAreKeptWhateverUserCodeDoes(t *testing.T) {
	for name, logger := range map[string]*slog.Logger{
		"the store leaves":           nil,
		"and the log of that panics": slog.New(panicking{slog.DiscardHandler}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				once, seen := guard(t, &leaving{gate: newGate()}, idempotency.Config{Lease: time.Minute, Logger: logger})
				var running sync.WaitGroup
				for n := range 2 {
					running.Go(func() {
						time.Sleep(time.Duration(n) * 10 * time.Minute) // the second claim is begun after that trip
						err := once(working(30*time.Minute)).Handle(t.Context(), message(fmt.Sprint(n)))
						if err != nil {
							t.Errorf("message %d: %v", n, err)
						}
					})
				}
				time.Sleep(25 * time.Minute)
				again := once(handler(func(context.Context, *reprise.Message) error {
					t.Error("a duplicate ran while the first run was at work")
					return nil
				})).Handle(t.Context(), message("0"))
				if action, _ := decision(again); action != retry.ActionRelease {
					t.Errorf("the duplicate: %v, want it released", again)
				}
				running.Wait()
				if diff := cmp.Diff([]idempotency.Kind{idempotency.KindInProgress, idempotency.KindDone, idempotency.KindDone}, seen()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
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
					cause = told(ctx)
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
// by the store's clock, however long replies take: leases count from the request.
func TestClaimThatCannotBeKeptIsGivenUpInTime(t *testing.T) {
	for _, c := range []struct {
		extended, want time.Duration // for so long extending works; when the handler is told
		hangs          bool          // afterwards, rather than fails
	}{
		{0, 54 * time.Second, false},
		{40 * time.Second, 84 * time.Second, false},
		{0, 54 * time.Second, true},
	} {
		t.Run(fmt.Sprint("extended for ", c.extended, ", hangs ", c.hangs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newGate()
				store.reply = 10 * time.Second
				time.AfterFunc(c.extended+15*time.Second, func() {
					store.mu.Lock()
					defer store.mu.Unlock()
					if c.hangs {
						store.latency = time.Hour
					} else {
						store.down["extend"] = errDown
					}
				})
				once, seen := guard(t, store, idempotency.Config{Lease: time.Minute, Timeout: time.Minute})
				began := time.Now()
				var after time.Duration
				var cause error
				err := once(handler(func(ctx context.Context, _ *reprise.Message) error {
					cause = told(ctx)
					after = time.Since(began)
					return ctx.Err() // while the store still holds the claim
				})).Handle(t.Context(), message("m"))
				if !errors.Is(cause, idempotency.ErrLost) {
					t.Errorf("the handler was told %v, want ErrLost", cause)
				}
				if action, _ := decision(err); action != retry.ActionRelease || !errors.Is(err, idempotency.ErrLost) {
					t.Errorf("%v, %v; want the message released: it has not failed", action, err)
				}
				if diff := cmp.Diff([]idempotency.Kind{idempotency.KindLost}, seen()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if after != c.want {
					t.Errorf("it was told after %v, want %v: nine tenths of the lease", after, c.want)
				}
				if n := len(store.trips["extend"]); n < 2 {
					t.Errorf("extending was tried %d times", n)
				}
			})
		})
	}
}

// TestClaimIsNotKeptLongerThanTheMessage: once the handler's context has ended its
// key becomes free, whether or not it returns, and whatever becomes of others.
func TestClaimIsNotKeptLongerThanTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		once, _ := guard(t, store, idempotency.Config{Lease: time.Minute})
		ctx, lose := context.WithCancelCause(t.Context())
		sleep := once(handler(func(context.Context, *reprise.Message) error {
			time.Sleep(time.Hour)
			return nil
		}))
		go sleep.Handle(ctx, message("m"))
		time.Sleep(time.Second)
		go sleep.Handle(t.Context(), message("another"))
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

// TestWhoGivesUpLeavesNoClaim: a message whose time ends while its key is being
// acquired says so, and the key becomes free.
func TestWhoGivesUpLeavesNoClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newGate()
		store.latency = time.Second
		once, seen := guard(t, store, idempotency.Config{})
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		err := once(handler(nil)).Handle(ctx, message("m"))
		if err != ctx.Err() || len(seen()) != 0 { // itself: the consumer judges by the cause
			t.Errorf("%v, events %v; want the context's own error, and none", err, seen())
		}
		time.Sleep(2 * time.Second)
		if s := store.Stats(); len(store.trips["acquire"]) != 1 || s.Records != 0 {
			t.Errorf("%d trips, %d records; want one and none", len(store.trips["acquire"]), s.Records)
		}
	})
}

// TestFailureAfterACompletionIsNone: a handler that completed its claim itself, and
// then failed, or believes so, is not judged by what it returned: its message comes
// back to find the record.
func TestFailureAfterACompletionIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		store := idempotency.NewMemory(idempotency.MemoryConfig{})
		once, _ := guard(t, store, idempotency.Config{})
		runs := 0
		q.Consume(once(handler(func(ctx context.Context, _ *reprise.Message) error {
			runs++
			claim, retention, _ := idempotency.ClaimFrom(ctx)
			if held, err := store.Complete(ctx, []idempotency.Completion{{Claim: claim, Retention: retention}}); err != nil || !held[0] {
				t.Errorf("completing: %v, %v", held, err)
			}
			return errors.New("the reply to COMMIT was lost")
		})), reprise.Config{Retry: retry.Policy{MaxAttempts: 1}})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		if runs != 1 || len(dead.Messages()) != 0 {
			t.Errorf("%d runs and %d dead letters, want one and none", runs, len(dead.Messages()))
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

// lasting is a store that keeps a released record, as those in databases do: an extension that comes after
// the release begins a lease. Extensions take a second to come.
type lasting struct {
	mu      sync.Mutex
	token   idempotency.Token
	until   time.Time
	extends int
}

func (s *lasting) Acquire(_ context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := time.Until(s.until); left > 0 {
		return []idempotency.Answer{{State: idempotency.InProgress, Wait: left}}, nil
	}
	s.token++
	s.until = time.Now().Add(batch[0].Lease)
	return []idempotency.Answer{{State: idempotency.Acquired, Token: s.token}}, nil
}

func (s *lasting) Complete(context.Context, []idempotency.Completion) ([]bool, error) {
	return []bool{true}, nil
}

func (s *lasting) Release(context.Context, []idempotency.Claim) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now()
	return []bool{true}, nil
}

func (s *lasting) Extend(_ context.Context, batch []idempotency.Extension) ([]bool, error) {
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extends++
	s.until = time.Now().Add(batch[0].Lease)
	return []bool{true}, nil
}

// TestFailureDuringAnExtensionFreesTheKey: the release comes to the store after the extension that is under
// way when the handler fails.
func TestFailureDuringAnExtensionFreesTheKey(t *testing.T) {
	fails := func(context.Context, *reprise.Message) error {
		time.Sleep(30*time.Second + 500*time.Millisecond) // half a lease, and half of the trip
		return errors.New("as told")
	}
	for name, once := range map[string]func(*testing.T, idempotency.Store) func() error{
		"messages": func(t *testing.T, store idempotency.Store) func() error {
			once, _ := guard(t, store, idempotency.Config{Lease: time.Minute})
			return func() error { return once(handler(fails)).Handle(t.Context(), message("m")) }
		},
		"batches": func(t *testing.T, store idempotency.Store) func() error {
			once, err := idempotency.NewBatch(store, idempotency.Config{Lease: time.Minute, Key: byID})
			if err != nil {
				t.Fatal(err)
			}
			h := once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
				return []error{fails(ctx, ms[0])}
			}))
			return func() error { return h.HandleBatch(t.Context(), []*reprise.Message{message("m")})[0] }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(lasting)
			run := once(t, store)
			if err := run(); err == nil || errors.Is(err, idempotency.ErrInProgress) {
				t.Fatalf("%s: %v", name, err)
			}
			time.Sleep(2 * time.Second)
			if err := run(); errors.Is(err, idempotency.ErrInProgress) || store.extends != 2 {
				t.Errorf("%s: the retry ends with %v, after %d extensions, want one in each run", name, err, store.extends)
			}
		})
	}
}

// working returns a handler that takes so long, unless its context ends.
func working(d time.Duration) reprise.Handler {
	return handler(func(ctx context.Context, _ *reprise.Message) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}
