package batches

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// byBody returns a verdict for each message by its body; nil for others.
func byBody(ms []*reprise.Message, verdicts map[string]error) []error {
	errs := make([]error, len(ms))
	for i, m := range ms {
		errs[i] = verdicts[m.Body]
	}
	return errs
}

// attempts collects the attempts that an observer is told of, by body.
type attempts struct {
	mu  sync.Mutex
	all map[string][]reprise.Attempt
}

func (a *attempts) observer() reprise.Observer {
	return reprise.Observer{Attempt: func(_ context.Context, e reprise.Attempt) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.all == nil {
			a.all = make(map[string][]reprise.Attempt)
		}
		a.all[e.Message.Body] = append(a.all[e.Message.Body], e)
	}}
}

func (a *attempts) of(body string) []reprise.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all[body])
}

// TestOneBadMessageCostsItsNeighboursNothing: a batch with every kind of verdict.
// Each settles its own message, and no other.
func TestOneBadMessageCostsItsNeighboursNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		verdicts := map[string]error{
			"fails":     kit.ErrUnavailable,
			"permanent": reprise.Permanent(kit.ErrUnavailable),
			"later":     reprise.RetryAfter(time.Hour, kit.ErrUnavailable),
			"released":  reprise.Release(10*time.Minute, kit.ErrUnavailable),
		}
		begun := time.Now()
		again := make(map[string]string) // when, and as which attempt
		var mu sync.Mutex
		var l batchLog
		var told attempts
		c := q.ConsumeBatch(l.handler(func(_ context.Context, ms []*reprise.Message) []error {
			if len(ms) == 6 {
				return byBody(ms, verdicts)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				again[m.Body] = fmt.Sprintf("attempt %d after %v", m.Attempt, time.Since(begun).Truncate(time.Minute))
			}
			return nil
		}), reprise.BatchConfig{
			Size: 6, Linger: 10 * time.Second,
			Config: reprise.Config{
				Retry:    retry.Policy{Backoff: retry.Constant(2 * time.Minute), Jitter: retry.None},
				Observer: told.observer(),
			},
		})
		q.Send("good", "fails", "permanent", "later", "released", "fine")
		q.WaitEmpty(2 * time.Hour)
		n := c.Stop().Counts
		want := map[string]string{
			"fails":    "attempt 2 after 2m0s",
			"released": "attempt 1 after 10m0s",
			"later":    "attempt 2 after 1h0m0s",
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("what came again (-want +got):\n%s", diff)
		}
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "permanent" {
			t.Errorf("dead letters %+v, want the permanent one", letters)
		}
		if n.Deleted != 5 || n.Retried != 2 || n.Released != 1 || n.DeadLettered != 1 {
			t.Errorf("counts %+v", n)
		}
		for body, outcome := range map[string]reprise.Outcome{"good": reprise.OutcomeDelete, "fails": reprise.OutcomeRetry, "permanent": reprise.OutcomeDeadLetter, "released": reprise.OutcomeRelease} {
			if e := told.of(body); len(e) == 0 || e[0].Outcome != outcome || !errors.Is(e[0].Err, verdicts[body]) {
				t.Errorf("of %s the observer was told %+v, want %v", body, e, outcome)
			}
		}
	})
}

// TestBatchThatFailsWhole: if a call fails as a whole, the attempt at each of its messages has
// failed, with an error that names the cause; other batches go on.
func TestBatchThatFailsWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		fail func(ms []*reprise.Message) []error
		want string
	}{
		"it panics":                  {func([]*reprise.Message) []error { panic("burst") }, "handler panicked: burst"},
		"it ends its goroutine":      {func([]*reprise.Message) []error { runtime.Goexit(); return nil }, "runtime.Goexit"},
		"too few verdicts":           {func(ms []*reprise.Message) []error { return make([]error, len(ms)-1) }, "HandleBatch returned 4 verdicts on 5 messages"},
		"too many verdicts":          {func(ms []*reprise.Message) []error { return make([]error, len(ms)+1) }, "HandleBatch returned 6 verdicts on 5 messages"},
		"an empty list of verdicts":  {func([]*reprise.Message) []error { return []error{} }, "HandleBatch returned 0 verdicts on 5 messages"},
		"messages that are not ours": {func(ms []*reprise.Message) []error { ms[1] = &reprise.Message{}; return make([]error, len(ms)) }, "HandleBatch changed its messages"},
		"one message twice":          {func(ms []*reprise.Message) []error { ms[1] = ms[0]; return make([]error, len(ms)) }, "HandleBatch changed its messages"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(100)
				var l batchLog
				var told attempts
				c := q.ConsumeBatch(l.handler(func(_ context.Context, ms []*reprise.Message) []error {
					if strings.HasPrefix(ms[0].Body, "bad") {
						return tt.fail(ms)
					}
					return nil
				}), reprise.BatchConfig{
					Size: 5, Linger: 5 * time.Second,
					Config: reprise.Config{
						Retry:    retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3},
						Observer: told.observer(),
					},
				})
				q.Send("bad1", "bad2", "bad3", "bad4", "bad5", "good1", "good2", "good3", "good4", "good5")
				q.WaitEmpty(time.Hour)
				n := c.Stop().Counts
				for _, prefix := range []string{"bad", "good"} {
					for i := range 5 {
						body := prefix + strconv.Itoa(i+1)
						e := told.of(body)
						if prefix == "good" && (len(e) != 1 || e[0].Err != nil) {
							t.Errorf("%s: %+v, want one success", body, e)
						}
						if prefix == "bad" && (len(e) != 3 || e[2].Outcome != reprise.OutcomeDeadLetter || !strings.Contains(e[2].Err.Error(), tt.want)) {
							t.Errorf("%s: %+v, want three attempts, the last given up for %q", body, e, tt.want)
						}
					}
				}
				if n := len(dead.Messages()); n != 5 {
					t.Errorf("%d dead letters, want 5", n)
				}
				if n.Attempts != 20 || n.Batches != 4 || n.Deleted != 5 || n.Panics != 3*int64(strings.Count(tt.want, "panicked")) {
					t.Errorf("counts %+v: want 4 batches, 20 attempts", n)
				}
			})
		})
	}
}

// TestVerdictsFollowTheirMessages: a handler that sorts its batch returns verdicts in the new
// order.
func TestVerdictsFollowTheirMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		q.Send("3", "1", "2", "5", "4")
		q.ConsumeBatch(reprise.BatchHandlerFunc(func(_ context.Context, ms []*reprise.Message) []error {
			slices.SortFunc(ms, func(a, b *reprise.Message) int { return strings.Compare(a.Body, b.Body) })
			return byBody(ms, map[string]error{"5": reprise.Permanent(kit.ErrUnavailable)})
		}), reprise.BatchConfig{})
		q.WaitEmpty(time.Minute)
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "5" {
			t.Errorf("dead letters %+v, want 5", letters)
		}
	})
}

// TestHandlerTimeoutIsForTheBatch: the timeout ends the context of the whole batch, and the
// attempts at messages that the handler has not finished have failed.
func TestHandlerTimeoutIsForTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("a", "b", "slow")
		var l batchLog
		c := q.ConsumeBatch(l.handler(func(ctx context.Context, ms []*reprise.Message) []error {
			if ms[0].Attempt > 1 {
				return nil
			}
			begun := time.Now()
			<-reprise.MessageContext(ctx, ms[1]).Done()
			if took := time.Since(begun); took != 30*time.Second || !errors.Is(ctx.Err(), context.Canceled) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("the context ended after %v: %v", took, ctx.Err())
			}
			return byBody(ms, map[string]error{"slow": ctx.Err()})
		}), reprise.BatchConfig{Config: reprise.Config{HandlerTimeout: 30 * time.Second}})
		q.WaitEmpty(5 * time.Minute)
		n := c.Stop().Counts
		if n.Deleted != 3 || n.Retried != 1 {
			t.Errorf("counts %+v, want all deleted, one of them after a retry", n)
		}
		if got := l.all(); !slices.Equal(got[3:], []string{"slow"}) {
			t.Errorf("run as %v, want only the slow one again", got)
		}
	})
}

// TestLeaseLostInABatch: the server takes some messages of a batch back. The others go on, and are
// settled; the batch's context ends when all leases are lost.
func TestLeaseLostInABatch(t *testing.T) {
	for name, tt := range map[string]struct {
		losses int
		ends   bool
	}{
		"one of three": {1, false}, "all but one": {2, false}, "all": {3, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send("a", "b", "c")
				q.Fault(
					sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Action: "ChangeMessageVisibilityBatch", Limit: tt.losses},
					sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ReceiveMessage", Skip: 1, Limit: 10}, // see takenAway
				)
				var l batchLog
				var lost []string
				c := q.ConsumeBatch(l.handler(func(ctx context.Context, ms []*reprise.Message) []error {
					if ms[0].Receives > 1 {
						return nil
					}
					select {
					case <-time.After(45 * time.Second):
					case <-ctx.Done():
						if !errors.Is(context.Cause(ctx), reprise.ErrLeaseLost) {
							t.Errorf("the batch's context ended: %v", context.Cause(ctx))
						}
					}
					if ended := ctx.Err() != nil; ended != tt.ends {
						t.Errorf("the batch's context has ended: %v, want %v", ended, tt.ends)
					}
					errs := make([]error, len(ms))
					for i, m := range ms {
						if cause := context.Cause(reprise.MessageContext(ctx, m)); cause != nil {
							lost = append(lost, m.Body)
							errs[i] = cause
						}
					}
					return errs
				}), reprise.BatchConfig{})
				q.WaitEmpty(5 * time.Minute)
				n := c.Stop().Counts
				if len(lost) != tt.losses || n.Lost != int64(tt.losses) || n.Deleted != 3 || n.Retried+n.Released != 0 {
					t.Errorf("%v lost, counts %+v: want %d lost and nothing settled for them", lost, n, tt.losses)
				}
				if got := l.all()[3:]; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(lost))) {
					t.Errorf("%v run again, want %v", got, lost)
				}
			})
		})
	}
}

type contextKey string

// TestMessageContext: the context of a message in a batch has the values of the observer and ends
// with the batch. For a message that is not in the batch it is the batch's own context.
func TestMessageContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("a", "b")
		seen := make(map[string]any)
		var kept []context.Context
		var told attempts
		observer := told.observer()
		observer.Starting = func(ctx context.Context, m *reprise.Message) (context.Context, string) {
			return context.WithValue(ctx, contextKey("span"), "of "+m.Body), "trail-" + m.Body
		}
		c := q.ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			if other := new(reprise.Message); reprise.MessageContext(ctx, other) != ctx {
				t.Error("another message has a context of its own")
			}
			derived, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			for _, m := range ms {
				its := reprise.MessageContext(derived, m)
				seen[m.Body] = its.Value(contextKey("span"))
				kept = append(kept, its)
			}
			return nil
		}), reprise.BatchConfig{Config: reprise.Config{Observer: observer}})
		q.WaitEmpty(time.Minute)
		c.Stop()
		if diff := cmp.Diff(map[string]any{"a": "of a", "b": "of b"}, seen); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
		for _, ctx := range kept {
			if ctx.Err() == nil {
				t.Error("a message's context outlives its batch")
			}
		}
		for _, body := range []string{"a", "b"} {
			if e := told.of(body); len(e) != 1 || e[0].Message.Trail != "trail-"+body {
				t.Errorf("of %s the observer was told %+v", body, e)
			}
		}
		m := new(reprise.Message)
		if ctx := t.Context(); reprise.MessageContext(ctx, m) != ctx {
			t.Error("outside of a batch the context is another")
		}
	})
}

// TestHeldMessageKeepsNoOther: a message of a batch waits to be run again. The other messages of
// the batch, which are gone, take no memory.
func TestHeldMessageKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 10) // what comes in one receive is freed together
		kit.Groups(q, "b", 10)
		var others []weak.Pointer[reprise.Message]
		c := q.ConsumeBatch(reprise.BatchHandlerFunc(func(_ context.Context, ms []*reprise.Message) []error {
			if ms[0].Attempt > 1 {
				return nil
			}
			for _, m := range ms {
				if m.GroupID == "b" {
					others = append(others, weak.Make(m))
				}
			}
			return byBody(ms, map[string]error{"a01": kit.ErrUnavailable})
		}), reprise.BatchConfig{Size: 20, Config: reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(30 * time.Second), Jitter: retry.None}}})
		time.Sleep(10 * time.Second)
		runtime.GC()
		if n := c.Status(); len(others) != 10 || n.Counts.Deleted != 10 || n.Waiting != 10 {
			t.Fatalf("%d others, status %+v: want one group deleted, and one that waits", len(others), n)
		}
		for _, p := range others {
			if m := p.Value(); m != nil {
				t.Errorf("%s is kept though it is deleted", m.Body)
			}
		}
	})
}
