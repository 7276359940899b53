package settling

import (
	"context"
	"runtime"
	"slices"
	"sync"
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

// TestAfterDeleteFollowsTheDelete: AfterDelete is called once for each message whose work is done,
// after the queue has deleted it, with the message as it was received. It is not called for
// messages that are retried, requeued, released or dead-lettered.
func TestAfterDeleteFollowsTheDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(2)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 3})
		var mu sync.Mutex
		called := make(map[string]int)
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			body := m.Body
			m.Body = "the handler's to do with as it likes"
			switch {
			case body == "bad":
				return reprise.Permanent(kit.ErrUnavailable)
			case body == "slow" && m.Attempt < 5:
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: kit.EveryMinute(9), AfterDelete: func(_ context.Context, m *reprise.Message) {
			for _, left := range q.Messages() {
				if left.Body == m.Body {
					t.Errorf("called for %s, which the queue still has", m.Body)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			called[m.Body]++
		}})
		q.Send("good", "bad", "slow")
		q.WaitEmpty(time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(called) != 2 || called["good"] != 1 || called["slow"] != 1 {
			t.Errorf("called %v, want good and slow once each", called)
		}
	})
}

// TestAfterDeleteIsNotForCopies: a copy has replaced the message, in its queue or in the
// dead-letter queue, and the original could not be deleted. It is received again and deleted,
// without a call of AfterDelete: the copy still needs the objects that the hook would remove.
func TestAfterDeleteIsNotForCopies(t *testing.T) {
	throttled := func(action string) sqsserver.Fault {
		return sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: action}
	}
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"requeued", kit.ErrUnavailable},
		{"dead-lettered", reprise.Permanent(kit.ErrUnavailable)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(100)
				q.Fault(throttled("DeleteMessageBatch"))
				var called atomic.Int64
				c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return tt.err }), reprise.Config{
					Via:         reprise.ViaRequeue,
					Retry:       retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAge: -1},
					AfterDelete: func(context.Context, *reprise.Message) { called.Add(1) },
				})
				id := q.Send("order")[0]
				gone := func() bool {
					return !slices.ContainsFunc(q.Messages(), func(m sqsserver.MessageInfo) bool { return m.ID == id })
				}
				time.Sleep(time.Second) // there is a copy
				q.Fault(throttled("DeleteMessageBatch"), throttled("ChangeMessageVisibilityBatch"))
				kit.WaitFor(t, "the original is lost", 2*time.Hour, func() bool { return c.Status().Counts.Lost == 1 })
				q.Fault()
				kit.WaitFor(t, "the original is deleted", 2*time.Hour, gone)
				synctest.Wait()
				if n := called.Load(); n != 0 {
					t.Errorf("called %d times, for a message whose work is not done", n)
				}
			})
		})
	}
}

// TestAfterDeleteIsBounded: slow runs of AfterDelete take no handler's place, as many run at once
// as handlers may, and receiving waits for them before they accumulate.
func TestAfterDeleteIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var now, most, calls atomic.Int64
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Concurrency: 4, Prefetch: 6, StopBudget: time.Minute, AfterDelete: func(context.Context, *reprise.Message) {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second)
			now.Add(-1)
			calls.Add(1)
		}})
		q.Send(kit.Numbered(1000)...)
		time.Sleep(10 * time.Second)
		if n := c.Status().Counts.Deleted - calls.Load(); n > 140 {
			t.Errorf("%d wait for AfterDelete: want receiving to wait", n)
		}
		q.WaitEmpty(10 * time.Minute)
		if report := c.Stop(); calls.Load() != 1000 || most.Load() != 4 || !report.Drained() {
			t.Errorf("%d calls, %d at once, %v; want 1000, 4, and a stop that waits for them", calls.Load(), most.Load(), report)
		}
	})
}

// TestAfterDeleteThatMisbehaves: if AfterDelete panics, ends its goroutine or never returns, the
// other messages are not affected; a stop waits for a run that never returns until its budget ends.
func TestAfterDeleteThatMisbehaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		var called []string
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Concurrency: 2, StopBudget: 30 * time.Second, AfterDelete: func(ctx context.Context, m *reprise.Message) {
			mu.Lock()
			called = append(called, m.Body)
			mu.Unlock()
			switch m.Body {
			case "1", "2", "3":
				panic("burst")
			case "4", "5", "6":
				runtime.Goexit()
			case "7":
				<-ctx.Done()
				time.Sleep(time.Second)
			}
		}})
		q.Send(kit.Numbered(20)...)
		q.WaitEmpty(time.Minute)
		time.Sleep(time.Minute)
		report := c.Stop()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(called)
		if len(slices.Compact(called)) != 20 {
			t.Errorf("called for %v, want each once", called)
		}
		if c.Err() == nil || report.AfterDeletes != 1 || report.Took != 30*time.Second {
			t.Errorf("%v, %v: want the stop to give up on one when its budget ends", c.Err(), report)
		}
		time.Sleep(time.Minute)
	})
}
