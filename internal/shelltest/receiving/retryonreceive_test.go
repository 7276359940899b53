package receiving

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestRetryOnReceive: an operator has a copy that waits with a delay retried, in the retry lane or in
// its own queue, by the SDK's client. Its handler runs at once, once, as the next attempt, which counts
// and is in the history of the copy after it, if there is one. What comes after it waits until it is due,
// and so do others.
func TestRetryOnReceive(t *testing.T) {
	for name, withLane := range map[string]bool{"retry lane": true, "requeue": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				main := reprisetest.NewQueue(t, nil)
				waits := main
				cfg := reprise.Config{
					Outage: reprise.Outage{Off: true}, Via: reprise.ViaRequeue,
					Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 9},
				}
				if withLane {
					waits = main.NewQueue(nil)
					cfg.RetryLane.URL, cfg.Via = waits.URL(), reprise.ViaAuto
				}
				var j kit.Journal
				c := main.ConsumeWith(main.Client(), j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), cfg)
				main.Send("now", "when due")
				time.Sleep(time.Minute)
				waiting := func(body string) (found sqsserver.MessageInfo) {
					t.Helper()
					for _, m := range waits.Messages() {
						if m.Body == body && m.State != sqsserver.Visible {
							found = m
						}
					}
					if found.ID == "" {
						t.Fatalf("nothing of %q waits: %+v", body, waits.Messages())
					}
					return found
				}
				early := waiting("now")
				if c.WakeMessage(early.ID) {
					t.Error("a copy that was never received can be woken")
				}
				if !c.RetryOnReceive(early.ID) {
					t.Fatal("the copy is not going to be retried")
				}
				asked := time.Now()
				time.Sleep(time.Minute)
				if n := len(j.Of("now")); n != 1 {
					t.Errorf("%d attempts before the copy was visible, want 1", n)
				}
				waits.Release(early.ID)
				time.Sleep(time.Minute)
				runs := j.Of("now")
				if len(runs) != 2 || runs[1].Attempt != 2 || runs[1].Started.Sub(asked) > 61*time.Second {
					t.Fatalf("the runs are %+v, want a second attempt a minute after %v", runs, asked)
				}
				next := waiting("now") // in the lane the copy itself, hidden
				if h := kit.HistoryOf(t, next); !withLane && (h.Attempt != 2 || h.Origin == next.ID || next.ID == early.ID) {
					t.Errorf("the next copy has the history %+v, want 2 attempts", h)
				}
				waits.Release(next.ID) // nobody has asked for this one
				time.Sleep(time.Minute)
				if n := len(j.Of("now")); n != 2 {
					t.Errorf("%d attempts, want that what nobody named waits until it is due", n)
				}
				time.Sleep(20 * time.Minute)
				for body, want := range map[string]int{"now": 4, "when due": 3} {
					runs := j.Of(body)
					if len(runs) != want {
						t.Errorf("%d attempts at %q, want %d", len(runs), body, want)
					}
					for i, r := range runs {
						if r.Attempt != i+1 {
							t.Errorf("run %d of %q has attempt %d", i+1, body, r.Attempt)
						}
						if i > 0 && (body != "now" || i != 1) && r.Started.Sub(runs[i-1].Started) < 10*time.Minute {
							t.Errorf("attempt %d at %q comes %v after the one before", i+1, body, r.Started.Sub(runs[i-1].Started))
						}
					}
				}
			})
		})
	}
}

// TestRetryOnReceiveIsRefused: what cannot be retried early is refused by the consumer and its retry
// lane together, so that nothing of it is remembered: later the message waits until it is due.
func TestRetryOnReceiveIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ordered := reprisetest.NewQueue(t, kit.FIFOQueue)
		if ordered.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{}).RetryOnReceive("00000000-0000-4000-8000-000000000000") {
			t.Error("a message of a FIFO queue is going to be retried early")
		}
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		var j kit.Journal
		var down atomic.Bool
		c := main.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "other" {
				return kit.FailBut(!down.Load(), reprise.Unavailable(kit.ErrUnavailable))
			}
			return kit.FailBut(m.Attempt > 1, kit.ErrUnavailable)
		}), reprise.Config{
			RetryLane: reprise.RetryLane{URL: lane.URL()},
			Retry:     retry.Policy{Backoff: retry.Constant(14 * time.Minute), Jitter: retry.None, MaxAttempts: 9},
		})
		main.Send("order")
		time.Sleep(10 * time.Second)
		copies := lane.Messages()
		if len(copies) != 1 {
			t.Fatalf("the lane has %d copies, want 1", len(copies))
		}
		down.Store(true)
		for range 30 {
			main.Send("other")
		}
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		if c.RetryOnReceive(copies[0].ID) {
			t.Error("a copy is going to be retried early while the breaker is open")
		}
		lane.Release(copies[0].ID)
		time.Sleep(2 * time.Minute)
		if n := len(j.Of("order")); n != 1 {
			t.Errorf("%d attempts, want that what was refused is not remembered by the retry lane", n)
		}
		down.Store(false)
		main.WaitEmpty(time.Hour)
		lane.WaitEmpty(time.Hour)
		if runs := j.Of("order"); len(runs) != 2 || runs[1].Started.Sub(runs[0].Started) < 14*time.Minute {
			t.Errorf("the runs are %+v, want a second attempt after 14 minutes", runs)
		}
	})
}
