package reprise_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// spy passes calls on and keeps what was asked. Its hooks, where set, replace a
// reply.
type spy struct {
	reprise.Client

	mu       sync.Mutex
	receives []*sqs.ReceiveMessageInput
	deletes  []*sqs.DeleteMessageBatchInput
	hides    []*sqs.ChangeMessageVisibilityBatchInput
	sends    []*sqs.SendMessageBatchInput

	received func(*sqs.ReceiveMessageOutput)
}

func (s *spy) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	s.mu.Lock()
	s.receives = append(s.receives, in)
	s.mu.Unlock()
	out, err := s.Client.ReceiveMessage(ctx, in, opts...)
	if err == nil && s.received != nil {
		s.mu.Lock()
		s.received(out)
		s.mu.Unlock()
	}
	return out, err
}

func (s *spy) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	s.mu.Lock()
	s.deletes = append(s.deletes, in)
	s.mu.Unlock()
	return s.Client.DeleteMessageBatch(ctx, in, opts...)
}

func (s *spy) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	s.mu.Lock()
	s.hides = append(s.hides, in)
	s.mu.Unlock()
	return s.Client.ChangeMessageVisibilityBatch(ctx, in, opts...)
}

func (s *spy) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	s.mu.Lock()
	s.sends = append(s.sends, in)
	s.mu.Unlock()
	return s.Client.SendMessageBatch(ctx, in, opts...)
}

// numbered returns the bodies 1 to n.
func numbered(n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = strconv.Itoa(i + 1)
	}
	return bodies
}

// TestPartialDeleteFailureIsRetriedAlone: SQS answers 200 and refuses three
// entries of ten. Those three, and no other, are deleted again, and their
// handlers do not run again.
func TestPartialDeleteFailureIsRetriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 3})
		q.Send(numbered(10)...)
		watch := &spy{Client: q.Direct()}
		var j journal
		q.ConsumeWith(watch, j.handler(succeed), reprise.Config{})
		q.WaitEmpty(time.Minute)

		if n := len(j.all()); n != 10 {
			t.Errorf("%d handler runs for 10 messages", n)
		}
		if len(watch.deletes) != 2 || len(watch.deletes[0].Entries) != 10 || len(watch.deletes[1].Entries) != 3 {
			t.Fatalf("deletes of %v entries, want 10 and then the 3 refused", sizes(watch.deletes))
		}
		handles := make(map[string]bool)
		for _, e := range watch.deletes[0].Entries[:3] {
			handles[*e.ReceiptHandle] = true
		}
		for _, e := range watch.deletes[1].Entries {
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

// TestPartialVisibilityFailureIsRetriedAlone: the same for the backoff of failed
// messages, whose due times do not move by it.
func TestPartialVisibilityFailureIsRetriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch", Limit: 3})
		q.Send(numbered(10)...)
		watch := &spy{Client: q.Direct()}
		var j journal
		q.ConsumeWith(watch, j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return errUnavailable
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(30 * time.Second), Jitter: retry.None}})
		q.WaitEmpty(time.Minute)

		if len(watch.hides) != 2 || len(watch.hides[0].Entries) != 10 || len(watch.hides[1].Entries) != 3 {
			t.Fatalf("%d visibility requests, want one of 10 entries and one of the 3 refused", len(watch.hides))
		}
		for body, first := range firsts(j.all()) {
			runs := j.of(body)
			if len(runs) != 2 {
				t.Fatalf("message %s ran %d times, want 2", body, len(runs))
			}
			if waited := runs[1].started.Sub(first); waited < 30*time.Second || waited > 31*time.Second+300*time.Millisecond {
				t.Errorf("message %s waited %v, want 30s", body, waited)
			}
		}
	})
}

// firsts returns when each body first ran.
func firsts(runs []run) map[string]time.Time {
	first := make(map[string]time.Time)
	for _, r := range runs {
		if _, ok := first[r.body]; !ok {
			first[r.body] = r.started
		}
	}
	return first
}

// TestSameMessageTwiceInOneBatch: SQS may hand out a message twice in one
// receive. It is run once, settled once, with the newer handle, and entry ids do
// not collide.
func TestSameMessageTwiceInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(numbered(3)...)
		var duplicates, settled atomic.Int64
		watch := &spy{Client: q.Direct()}
		watch.received = func(out *sqs.ReceiveMessageOutput) {
			if len(out.Messages) == 3 {
				out.Messages = append(out.Messages, out.Messages[0])
			}
		}
		var j journal
		q.ConsumeWith(watch, j.handler(succeed), reprise.Config{Observer: reprise.Observer{
			Received: func(_ context.Context, e reprise.Received) {
				if e.Duplicate {
					duplicates.Add(1)
				}
			},
			Settled: func(context.Context, reprise.Settled) { settled.Add(1) },
		}})
		q.WaitEmpty(time.Minute)
		if n := len(j.all()); n != 3 || duplicates.Load() != 1 || settled.Load() != 3 {
			t.Errorf("%d runs, %d duplicates, %d settled; want 3, 1, 3", n, duplicates.Load(), settled.Load())
		}
	})
}

// TestRedeliveryAdoptsTheNewerHandle: a message that is delivered again while its
// handler runs is not run twice, and settled with the handle of the later receive
// (rule 5).
func TestRedeliveryAdoptsTheNewerHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Limit: 1})
		watch := &spy{Client: q.Direct()}
		var handles []string
		watch.received = func(out *sqs.ReceiveMessageOutput) {
			for _, m := range out.Messages {
				handles = append(handles, *m.ReceiptHandle)
			}
		}
		var j journal
		c := q.ConsumeWith(watch, j.handler(func(context.Context, *reprise.Message) error {
			time.Sleep(10 * time.Second)
			return nil
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(time.Minute)
		if n := len(j.all()); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		if len(handles) != 2 {
			t.Fatalf("%d deliveries, want the duplicate too", len(handles))
		}
		last := watch.deletes[len(watch.deletes)-1].Entries
		if got := *last[len(last)-1].ReceiptHandle; got != handles[1] {
			t.Error("deleted with the older receipt handle")
		}
		if got := c.Status().Counts; got.Received != 2 || got.Deleted != 1 {
			t.Errorf("counts %+v, want 2 received, 1 deleted", got)
		}
	})
}

// TestDoneButUndeletedIsNotRunAgain: the work is done and every delete fails
// until the lease ends. When the message comes again it is deleted, not run.
func TestDoneButUndeletedIsNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 30},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch", Limit: 60},
		)
		q.Send("order")
		var j journal
		q.Consume(j.handler(succeed), reprise.Config{Lease: 5 * time.Second})
		q.WaitEmpty(5 * time.Minute)
		if n := len(j.all()); n != 1 {
			t.Errorf("%d runs, want 1: the work was done", n)
		}
	})
}

// TestHeartbeatNeverOverlapsSettlement: a handler ends while a heartbeat for its
// message is under way. The settlement waits for it: a heartbeat that lands after
// it would turn hours of backoff into one lease (rule 3).
func TestHeartbeatNeverOverlapsSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		slow := &slowVisibility{Client: q.Direct(), by: 2 * time.Second}
		var j journal
		q.ConsumeWith(slow, j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				// Heartbeats go out from the middle of the lease: end within the call.
				for !slow.busy() {
					time.Sleep(100 * time.Millisecond)
				}
				return errUnavailable
			}
			return nil
		}), reprise.Config{Lease: 20 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(6 * time.Hour), Jitter: retry.None}})
		q.Send("order")
		q.WaitEmpty(7 * time.Hour)
		if slow.overlapped {
			t.Error("two visibility requests for one message were under way together")
		}
		runs := j.all()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if waited := runs[1].started.Sub(runs[0].started); waited < 6*time.Hour {
			t.Errorf("the retry came after %v instead of 6h: a heartbeat landed after it", waited)
		}
	})
}

// slowVisibility makes visibility requests take a while before they have effect,
// and notices when two are under way together.
type slowVisibility struct {
	reprise.Client
	by         time.Duration
	mu         sync.Mutex
	underWay   int
	overlapped bool
}

func (s *slowVisibility) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underWay > 0
}

func (s *slowVisibility) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	s.mu.Lock()
	s.underWay++
	s.overlapped = s.overlapped || s.underWay > 1
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.underWay--
		s.mu.Unlock()
	}()
	time.Sleep(s.by)
	return s.Client.ChangeMessageVisibilityBatch(ctx, in, opts...)
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
				q.Send(numbered(backlog)...)
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

// TestIdleQueueCosts: an idle queue is polled three times a minute, and nothing
// else is called.
func TestIdleQueueCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(succeed), reprise.Config{})
		time.Sleep(time.Minute) // attributes and start
		before := c.Status().Calls
		time.Sleep(time.Hour)
		after := c.Status().Calls
		if per := float64(after.Receives-before.Receives) / 60; per > 3.1 {
			t.Errorf("%.2f receives a minute, want at most 3.1", per)
		}
		if rest := after.Total() - after.Receives - before.Total() + before.Receives; rest != 0 {
			t.Errorf("%d calls beside receives on an idle queue", rest)
		}
	})
}
