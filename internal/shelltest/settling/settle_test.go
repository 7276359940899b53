package settling

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPartialDeleteFailureIsRetriedAlone: SQS answers 200 and refuses three entries of ten. Only
// those three are deleted again, and their handlers do not run again.
func TestPartialDeleteFailureIsRetriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 3})
		q.Send(kit.Numbered(10)...)
		watch := &kit.Spy{Client: q.Direct()}
		var j kit.Journal
		q.ConsumeWith(watch, j.Handler(kit.Succeed), reprise.Config{})
		q.WaitEmpty(time.Minute)

		if n := len(j.All()); n != 10 {
			t.Errorf("%d handler runs for 10 messages", n)
		}
		if len(watch.Deletes) != 2 || len(watch.Deletes[0].Entries) != 10 || len(watch.Deletes[1].Entries) != 3 {
			t.Fatalf("deletes of %v entries, want 10 and then the 3 refused", sizes(watch.Deletes))
		}
		handles := make(map[string]bool)
		for _, e := range watch.Deletes[0].Entries[:3] {
			handles[*e.ReceiptHandle] = true
		}
		for _, e := range watch.Deletes[1].Entries {
			if !handles[*e.ReceiptHandle] {
				t.Errorf("entry %s was deleted again though SQS had confirmed it", *e.Id)
			}
		}
	})
}

func sizes(ins []*sqs.DeleteMessageBatchInput) (n []int) {
	for _, in := range ins {
		n = append(n, len(in.Entries))
	}
	return n
}

// TestPartialVisibilityFailureIsRetriedAlone: the same for the backoff of failed messages, whose
// due times stay the same.
func TestPartialVisibilityFailureIsRetriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch", Limit: 3})
		q.Send(kit.Numbered(10)...)
		watch := &kit.Spy{Client: q.Direct()}
		var j kit.Journal
		q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(30 * time.Second), Jitter: retry.None}})
		q.WaitEmpty(time.Minute)

		if len(watch.Hides) != 2 || len(watch.Hides[0].Entries) != 10 || len(watch.Hides[1].Entries) != 3 {
			t.Fatalf("%d visibility requests, want one of 10 entries and one of the 3 refused", len(watch.Hides))
		}
		for body, first := range firsts(j.All()) {
			runs := j.Of(body)
			if len(runs) != 2 {
				t.Fatalf("message %s ran %d times, want 2", body, len(runs))
			}
			if waited := runs[1].Started.Sub(first); waited < 30*time.Second || waited > 31*time.Second+300*time.Millisecond {
				t.Errorf("message %s waited %v, want 30s", body, waited)
			}
		}
	})
}

// firsts returns when each body first ran.
func firsts(runs []kit.Run) map[string]time.Time {
	first := make(map[string]time.Time)
	for _, r := range runs {
		if _, ok := first[r.Body]; !ok {
			first[r.Body] = r.Started
		}
	}
	return first
}

// TestSameMessageTwiceInOneBatch: SQS may return a message twice in one receive. It is run once and
// settled once, with the newer handle, and entry ids do not collide.
func TestSameMessageTwiceInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(3)...)
		var duplicates, settled atomic.Int64
		watch := &kit.Spy{Client: q.Direct()}
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := watch.Client.ReceiveMessage(ctx, in)
			if err == nil && len(out.Messages) == 3 {
				out.Messages = append(out.Messages, out.Messages[0])
			}
			return out, err
		}
		var j kit.Journal
		q.ConsumeWith(watch, j.Handler(kit.Succeed), reprise.Config{Observer: reprise.Observer{
			Received: func(_ context.Context, e reprise.Received) {
				if e.Duplicate {
					duplicates.Add(1)
				}
			},
			Settled: func(context.Context, reprise.Settled) { settled.Add(1) },
		}})
		q.WaitEmpty(time.Minute)
		synctest.Wait()
		if n := len(j.All()); n != 3 || duplicates.Load() != 1 || settled.Load() != 3 {
			t.Errorf("%d runs, %d duplicates, %d settled; want 3, 1, 3", n, duplicates.Load(), settled.Load())
		}
	})
}

// TestRedeliveryAdoptsTheNewerHandle: a message that is received again while its handler runs is
// not run twice, and is settled with the handle of the later receive.
func TestRedeliveryAdoptsTheNewerHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Limit: 1})
		watch := &kit.Spy{Client: q.Direct()}
		var handles []string
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := watch.Client.ReceiveMessage(ctx, in)
			if err == nil {
				for _, m := range out.Messages {
					handles = append(handles, *m.ReceiptHandle)
				}
			}
			return out, err
		}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(func(context.Context, *reprise.Message) error {
			time.Sleep(10 * time.Second)
			return nil
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(time.Minute)
		synctest.Wait()
		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		if len(handles) != 2 {
			t.Fatalf("%d deliveries, want the duplicate too", len(handles))
		}
		last := watch.Deletes[len(watch.Deletes)-1].Entries
		if got := *last[len(last)-1].ReceiptHandle; got != handles[1] {
			t.Error("deleted with the older receipt handle")
		}
		if got := c.Status().Counts; got.Received != 2 || got.Deleted != 1 {
			t.Errorf("counts %+v, want 2 received, 1 deleted", got)
		}
	})
}

// TestDoneButUndeletedIsNotRunAgain: the work is done and every delete fails until the lease ends.
// When the message is received again it is deleted, not run.
func TestDoneButUndeletedIsNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 30},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch", Limit: 60},
		)
		q.Send("order")
		var j kit.Journal
		q.Consume(j.Handler(kit.Succeed), reprise.Config{Lease: 5 * time.Second})
		q.WaitEmpty(5 * time.Minute)
		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs, want 1: the work was done", n)
		}
	})
}

// TestDoneAfterTheLeaseIsNotRunAgain: the work is done after the lease has ended and
// another consumer has had the message, which it has given back. SQS confirms the
// delete by the older receipt, but a standard queue need not carry it out.
func TestDoneAfterTheLeaseIsNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"})
		var j kit.Journal
		q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
			time.Sleep(30 * time.Second)
			return nil
		}), reprise.Config{Lease: 5 * time.Second, Concurrency: 1, Prefetch: -1})
		q.Send("order")
		time.Sleep(20 * time.Second)
		out, err := q.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), VisibilityTimeout: 60})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("another consumer receives %v, %v, want the message", out, err)
		}
		q.Fault()
		q.WaitEmpty(5 * time.Minute)
		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs, want 1: the work was done", n)
		}
	})
}

// TestCallsPerMessage counts every request while a backlog lasts: the cost that a
// queue's owner pays, and the reason to batch.
func TestCallsPerMessage(t *testing.T) {
	for _, tt := range []struct {
		concurrency int
		most        float64
	}{{1, 0.35}, {4, 0.25}, {10, 0.21}, {100, 0.21}} {
		t.Run(fmt.Sprintf("concurrency %d", tt.concurrency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const backlog = 2000
				q := reprisetest.NewQueue(t, nil)
				q.Send(kit.Numbered(backlog)...)
				var at1000 reprise.Calls
				var c *reprisetest.Consumer
				handled := 0
				var mu sync.Mutex
				c = q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					mu.Lock()
					defer mu.Unlock()
					if handled++; handled == backlog/2 {
						at1000 = c.Status().Calls
					}
					return nil
				}), reprise.Config{Concurrency: tt.concurrency})
				q.WaitEmpty(time.Minute)
				calls := at1000.Receives + at1000.Deletes + at1000.Visibilities + at1000.Heartbeats
				per := float64(calls) / (backlog / 2)
				t.Logf("%.3f calls per message (%d receives, %d deletes)", per, at1000.Receives, at1000.Deletes)
				if per > tt.most {
					t.Errorf("%.3f calls per message, want at most %.2f", per, tt.most)
				}
			})
		})
	}
}

// TestIdleQueueIsPolledThreeTimesAMinute: an idle queue costs three receives a minute and, about
// every ten minutes, a reading of its attributes.
func TestIdleQueueIsPolledThreeTimesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		time.Sleep(time.Minute) // attributes and start
		before := c.Status().Calls
		time.Sleep(time.Hour)
		after := c.Status().Calls
		if per := float64(after.Receives-before.Receives) / 60; per > 3.1 {
			t.Errorf("%.2f receives a minute, want at most 3.1", per)
		}
		reads := after.Attributes - before.Attributes
		if rest := after.Total() - after.Receives - before.Total() + before.Receives - reads; rest != 0 {
			t.Errorf("%d other calls on an idle queue", rest)
		}
		if reads < 4 || reads > 8 {
			t.Errorf("the attributes were read %d times in an hour, want one reading every 7.5 to 12.5 minutes", reads)
		}
	})
}

// TestOutageOfSettlements: for ten minutes no message can be deleted or renewed, so that finished
// messages fill every place and lose their leases. Then all of them are deleted, and none is run
// again.
func TestOutageOfSettlements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 300
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch"},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"},
		)
		var j kit.Journal
		q.Consume(j.Handler(kit.Succeed), reprise.Config{})
		q.Send(kit.Numbered(messages)...)
		time.Sleep(10 * time.Minute)
		q.Fault()
		q.WaitEmpty(10 * time.Minute)
		if n := len(j.All()); n != messages {
			t.Errorf("%d runs of %d messages: some were run again, though their work was done", n, messages)
		}
	})
}

// TestSettlementsThatHang: requests on connections that have died silently are
// ended in time for another attempt.
func TestSettlementsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		var hung atomic.Int64
		watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			if hung.Add(1) <= 15 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return watch.Client.DeleteMessageBatch(ctx, in)
		}
		var j kit.Journal
		q.ConsumeWith(watch, j.Handler(kit.Succeed), reprise.Config{})
		q.Send(kit.Numbered(300)...)
		q.WaitEmpty(10 * time.Minute)
		if n := len(j.All()); n != 300 {
			t.Errorf("%d runs of 300 messages", n)
		}
	})
}

// TestHealthShowsThatSettlingFails: the health shows at once a failure that an operator must fix,
// and after a while one that may pass by itself; and it shows it only while it lasts.
func TestHealthShowsThatSettlingFails(t *testing.T) {
	throttled := &types.RequestThrottled{}
	for _, tt := range []struct {
		name     string
		err      error
		failures int64
		health   reprise.Health
		says     string
	}{
		{"a lasting failure", &types.QueueDoesNotExist{}, 1, reprise.HealthDegraded, "QueueDoesNotExist"},
		{"many passing failures in a row", throttled, 5, reprise.HealthDegraded, "RequestThrottled"},
		{"a few passing failures", throttled, 4, reprise.HealthOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				watch := &kit.Spy{Client: q.Direct()}
				var c *reprisetest.Consumer
				var calls int64
				var after reprise.Status // the last failure, when its reply has been taken in
				watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
					if calls++; calls <= tt.failures {
						return nil, tt.err
					}
					after = c.Status()
					return watch.Client.DeleteMessageBatch(ctx, in)
				}
				c = q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{})
				q.Send("order")
				q.WaitEmpty(time.Minute)
				if after.Health != tt.health || !strings.Contains(after.Problem, tt.says) {
					t.Errorf("health %v (%q) after %d failures, want %v and the problem to name %q", after.Health, after.Problem, tt.failures, tt.health, tt.says)
				}
				synctest.Wait()
				if s := c.Status(); s.Health != reprise.HealthOK || s.Problem != "" {
					t.Errorf("health %v (%q) after settling has succeeded, want ok", s.Health, s.Problem)
				}
			})
		})
	}
}
