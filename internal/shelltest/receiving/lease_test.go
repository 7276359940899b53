package receiving

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestLongHandlerKeepsItsLease: while a handler runs, its lease is kept, with fewer and fewer
// calls.
func TestLongHandlerKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(func(ctx context.Context, _ *reprise.Message) error {
			select {
			case <-time.After(5 * time.Hour):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}), reprise.Config{})
		q.Send("order")
		synctest.Wait()
		q.Consume(j.Handler(kit.Succeed), reprise.Config{}) // would take it if it could
		q.WaitEmpty(6 * time.Hour)
		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs, want 1: the lease was lost", n)
		}
		if beats := c.Status().Calls.Heartbeats; beats < 5*60/10 || beats > 80 {
			t.Errorf("%d heartbeats in 5 hours: want enough to keep the lease, and renewals that lengthen", beats)
		}
	})
}

// takenAway are faults that end the lease of a message at its first heartbeat, and delay its
// redelivery by about a minute.
var takenAway = []sqsserver.Fault{
	{Kind: sqsserver.FaultLoseLease, Action: "ChangeMessageVisibilityBatch", Limit: 1},
	{Kind: sqsserver.FaultServerError, Action: "ReceiveMessage", Skip: 1, Limit: 10},
}

// TestLeaseLostCancelsTheHandler: the server takes the message back. The handler's context ends
// with the reason, and its result is not settled.
func TestLeaseLostCancelsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(takenAway...)
		var j kit.Journal
		var cause error
		c := q.Consume(j.Handler(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives > 1 {
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		if !errors.Is(cause, reprise.ErrLeaseLost) {
			t.Errorf("the handler's context ended by %v, want ErrLeaseLost", cause)
		}
		if n := c.Status().Counts; n.Lost != 1 || n.Retried != 0 {
			t.Errorf("counts %+v, want 1 lost and nothing settled for it", n)
		}
	})
}

// TestLeaseLostAndRegained: the message is received again by the consumer whose handler has just
// been interrupted. It is given back once more: the interrupted run counts as no attempt.
func TestLeaseLostAndRegained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Action: "ChangeMessageVisibilityBatch", Limit: 1})
		watch := &kit.Spy{Client: q.Direct()}
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := watch.Client.ReceiveMessage(ctx, in)
			time.Sleep(500 * time.Millisecond) // the refusal overtakes the redelivery
			return out, err
		}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(func(ctx context.Context, m *reprise.Message) error {
			if len(j.All()) > 1 {
				return nil
			}
			<-ctx.Done()
			time.Sleep(time.Second) // the redelivery arrives
			return ctx.Err()
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		runs := j.All()
		if n := c.Status().Counts; len(runs) != 2 || runs[1].Attempt != 1 || n.Released != 1 || n.Retried != 0 {
			t.Errorf("runs %+v, counts %+v: want a release and a second first attempt", runs, n)
		}
	})
}

// TestPermanentAfterTheLeaseWasLost: a permanent error comes too late to be settled. It is
// remembered: when the message is received again it is dead-lettered, not run.
func TestPermanentAfterTheLeaseWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		q.Fault(takenAway...)
		var j kit.Journal
		q.Consume(j.Handler(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs of a permanent failure, want 1", n)
		}
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != "permanent" || s.Attempts != 1 || s.Receives != 2 {
			t.Errorf("story %+v, want a permanent failure of the one attempt, at the second receive", s)
		}
	})
}

// TestNoVisibilityChangeOnceTheLeaseIsOver: when no heartbeat gets through, the lease ends by our
// own clock, the handler's context ends, and no visibility change is sent any more: on a standard
// queue SQS would obey it, to the harm of the consumer that holds the message.
func TestNoVisibilityChangeOnceTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"})
		watch := &kit.Spy{Client: q.Direct()}
		began := time.Now()
		var told time.Duration
		var requests int
		q.ConsumeWith(watch, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives > 1 {
				return nil
			}
			<-ctx.Done()
			told = time.Since(began)
			requests = watch.HideCount()
			return kit.ErrUnavailable
		}), reprise.Config{Lease: time.Minute})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		if told < 50*time.Second || told > time.Minute {
			t.Errorf("the handler was told after %v, want just before the minute is over", told)
		}
		if n := watch.HideCount(); n != requests {
			t.Errorf("%d visibility requests after the lease had ended", n-requests)
		}
	})
}

// TestLossIsToldWhenItHappens: the observer is told of a loss at once, not with the next message
// that is settled, which may take hours.
func TestLossIsToldWhenItHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Skip: 1},
		)
		var ended time.Time
		var told []time.Time
		q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			ended = time.Now()
			return ctx.Err()
		}), reprise.Config{Observer: reprise.Observer{Settled: func(_ context.Context, e reprise.Settled) {
			if e.Outcome == reprise.OutcomeLost {
				told = append(told, time.Now())
			}
		}}})
		q.Send("order")
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if len(told) != 1 || !told[0].Equal(ended) {
			t.Errorf("the message was let go at %v, and its loss told at %v", ended, told)
		}
	})
}

// TestLostWhileWaitingIsLetGo: every worker is busy and no heartbeat succeeds, for hours: the same
// few messages are received, wait, are lost and are received again. The consumer keeps nothing of
// lost messages, not even in its memory of failed ones.
func TestLostWhileWaitingIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"})
		var mu sync.Mutex
		var deliveries []weak.Pointer[reprise.Message]
		busy := make(chan struct{})
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			<-busy
			return nil
		}), reprise.Config{Concurrency: 1, Lease: 2 * time.Second, Observer: reprise.Observer{Received: func(_ context.Context, e reprise.Received) {
			mu.Lock()
			defer mu.Unlock()
			deliveries = append(deliveries, weak.Make(e.Message))
		}}})
		q.Send(kit.Numbered(11)...)
		time.Sleep(time.Hour)
		runtime.GC()
		mu.Lock()
		kept := 0
		for _, d := range deliveries {
			if d.Value() != nil {
				kept++
			}
		}
		// The messages of one receive are allocated together, so that one that is held keeps ten in
		// memory.
		if s := c.Status(); len(deliveries) < 10_000 || kept > 10*(s.Waiting+s.Running+1) {
			t.Errorf("%d of %d deliveries are still in memory, while %d wait and %d run", kept, len(deliveries), s.Waiting, s.Running)
		}
		mu.Unlock()
		close(busy)
		q.WaitEmpty(time.Minute)
	})
}

// TestHeartbeatNeverOverlapsSettlement: a handler ends while a heartbeat for its message is under
// way. The settlement waits for it: a heartbeat that is carried out later would replace hours of
// backoff by one lease.
func TestHeartbeatNeverOverlapsSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		slow := &slowVisibility{Client: q.Direct(), by: 2 * time.Second}
		var j kit.Journal
		q.ConsumeWith(slow, j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				slow.await()
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Lease: 20 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(6 * time.Hour), Jitter: retry.None}})
		q.Send("order")
		q.WaitEmpty(7 * time.Hour)
		if slow.overlapped {
			t.Error("two visibility requests for one message were under way together")
		}
		runs := j.All()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if waited := runs[1].Started.Sub(runs[0].Started); waited < 6*time.Hour {
			t.Errorf("the retry came after %v instead of 6h: a heartbeat landed after it", waited)
		}
	})
}

// slowVisibility delays the effect of visibility requests, and notices when two are under way at
// once.
type slowVisibility struct {
	reprise.Client
	by         time.Duration
	mu         sync.Mutex
	underWay   int
	overlapped bool
}

// await returns while a request is under way.
func (s *slowVisibility) await() {
	for {
		s.mu.Lock()
		busy := s.underWay > 0
		s.mu.Unlock()
		if busy {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
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

// TestSuccessWhileAHeartbeatIsRefused: the handler succeeds while a heartbeat is
// under way that SQS then refuses. The lease is lost, but the work is done: when
// the message comes again it is deleted, not run.
func TestSuccessWhileAHeartbeatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(takenAway...)
		slow := &slowVisibility{Client: q.Direct(), by: 2 * time.Second}
		var j kit.Journal
		c := q.ConsumeWith(slow, j.Handler(func(context.Context, *reprise.Message) error {
			slow.await()
			return nil
		}), reprise.Config{Lease: 20 * time.Second})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		synctest.Wait()
		if n := c.Status().Counts; len(j.All()) != 1 || n.Lost != 1 || n.Deleted != 1 {
			t.Errorf("%d runs, counts %+v: want 1 run, lost once and then deleted", len(j.All()), n)
		}
	})
}

// TestRefusalOfTheOlderHandle: a redelivery brings a newer handle while a
// heartbeat with the older one is under way, which SQS refuses. The newer lease
// stands: the handler is not interrupted.
func TestRefusalOfTheOlderHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			if watch.HideCount() > 1 {
				return watch.Client.ChangeMessageVisibilityBatch(ctx, in)
			}
			q.Release(q.Messages()[0].ID)
			time.Sleep(2 * time.Second) // the poll brings it again
			return refuseAll(in), nil
		}
		var cause error
		c := q.ConsumeWith(watch, reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			select {
			case <-ctx.Done():
				cause = context.Cause(ctx)
			case <-time.After(50 * time.Second):
			}
			return nil
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		synctest.Wait()
		if n := c.Status().Counts; cause != nil || n.Lost != 0 || n.Duplicates != 1 {
			t.Errorf("the handler was interrupted by %v; counts %+v, want a duplicate and nothing lost", cause, n)
		}
	})
}

// TestHeartbeatsThatHang: there are more leases than heartbeats can be under way at once, and no
// heartbeat is answered. Every handler is told before its lease ends, and ends later; no message is
// received again meanwhile. No heartbeat is sent for a lease that has ended while it waited.
func TestHeartbeatsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 1000
		const lease = time.Minute
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		received := make(map[string]time.Time) // by handle
		toldAfter, latest := time.Duration(0), time.Duration(0)
		underWay, most := 0, 0
		watch := &kit.Spy{Client: q.Direct()}
		began := time.Now()
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			if up := time.Since(began); up > lease/2 && up < 3*lease {
				time.Sleep(3*lease - up)
			}
			out, err := watch.Client.ReceiveMessage(ctx, in)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				for _, m := range out.Messages {
					received[*m.ReceiptHandle] = time.Now()
				}
			}
			return out, err
		}
		watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			mu.Lock()
			for _, e := range in.Entries {
				latest = max(latest, time.Since(received[*e.ReceiptHandle]))
			}
			underWay++
			most = max(most, underWay)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			underWay--
			mu.Unlock()
			return nil, ctx.Err()
		}
		q.ConsumeWith(watch, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives == 1 {
				<-ctx.Done()
				mu.Lock()
				toldAfter = max(toldAfter, time.Since(m.Received))
				mu.Unlock()
				time.Sleep(lease)
			}
			return nil
		}), reprise.Config{Concurrency: messages, Lease: lease})
		q.Send(kit.Numbered(messages)...)
		q.WaitEmpty(10 * time.Minute)
		if most <= 8 || most > messages/10 {
			t.Errorf("%d heartbeats were under way together, want more than the usual 8, and each for ten messages", most)
		}
		if latest == 0 || latest > lease {
			t.Errorf("the last heartbeat went out %v after its message's receipt, want some, and none after %v", latest, lease)
		}
		if toldAfter == 0 || toldAfter > lease {
			t.Errorf("a handler was told of the end of its lease %v after the receipt, want at most %v", toldAfter, lease)
		}
	})
}
