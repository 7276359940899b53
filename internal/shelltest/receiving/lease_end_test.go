package receiving

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestLeaseIsKeptForTwelveHours: SQS permits no longer lease. The last renewals request only the
// remaining time, so that none is refused, and the handler keeps its message to the end.
func TestLeaseIsKeptForTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		refused := 0
		watch := &kit.Spy{Client: q.Direct()}
		watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			out, err := watch.Client.ChangeMessageVisibilityBatch(ctx, in)
			if err == nil {
				refused += len(out.Failed)
			}
			return out, err
		}
		var held time.Duration
		var cause error
		c := q.ConsumeWith(watch, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives == 1 {
				<-ctx.Done()
				held, cause = time.Since(m.Received), context.Cause(ctx)
			}
			return nil
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(14 * time.Hour)
		c.Stop()
		if held < 12*time.Hour-10*time.Second || held > 12*time.Hour || cause != reprise.ErrLeaseLost {
			t.Errorf("the handler had its message for %v, until %v: want all of the twelve hours", held, cause)
		}
		if refused > 0 {
			t.Errorf("%d renewals were refused", refused)
		}
	})
}

// TestLeaseCountsFromTheRequest: replies to heartbeats take seconds, and then none arrives any
// more. The handler is told before SQS ends the lease.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		q := reprisetest.NewQueue(t, nil)
		slow := &kit.Spy{Client: q.Direct()}
		var ends time.Time
		slow.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			if !ends.IsZero() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			out, err := slow.Client.ChangeMessageVisibilityBatch(ctx, in)
			ends = q.Messages()[0].Due
			time.Sleep(4 * time.Second)
			return out, err
		}
		var told time.Time
		q.ConsumeWith(slow, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives == 1 {
				<-ctx.Done()
				told = time.Now()
			}
			return nil
		}), reprise.Config{Lease: lease})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		if ends.IsZero() || told.IsZero() || told.After(ends) || told.Before(ends.Add(-lease/2)) {
			t.Errorf("the handler was told at %v that its lease ends, which it did at %v", told, ends)
		}
	})
}

// TestNothingStartsAfterItsLease: no heartbeat succeeds, and a place for the next handler becomes
// free at about the time at which the leases end. The waiting message either starts during its
// lease, and its context ends with the lease, or it is received again.
func TestNothingStartsAfterItsLease(t *testing.T) {
	const lease = 15 * time.Second
	step := time.Duration(race.Fewer(50, 250)) * time.Millisecond
	for failing := time.Duration(0); failing <= 3*time.Second; failing += step { // or as long as the consumer waits
		for busy := lease - 1500*time.Millisecond; busy < lease; busy += step {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				broken := &kit.Spy{Client: q.Direct()}
				broken.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
					select {
					case <-time.After(failing):
						return nil, kit.ErrUnavailable
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				var slow string
				var began, told time.Duration // since it was received, of the other
				q.ConsumeWith(broken, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
					switch {
					case slow == "":
						slow = m.ID
						time.Sleep(busy)
					case slow != m.ID && began == 0:
						began = time.Since(m.Received)
						<-ctx.Done()
						told = time.Since(m.Received)
					}
					return nil
				}), reprise.Config{Concurrency: 1, Lease: lease, Logger: slog.New(slog.DiscardHandler)})
				q.Send("one", "another")
				q.WaitEmpty(time.Hour)
				if began > lease-time.Second || told > lease {
					t.Errorf("renewals fail after %v, a place is free after %v: the next began %v after its receive, and was told after %v that its lease ends", failing, busy, began, told)
				}
			})
		}
	}
}

// TestOneRenewalThatHangs: the shortest possible lease leaves time for a second renewal, whenever
// the first is due.
func TestOneRenewalThatHangs(t *testing.T) {
	for i := range 40 { // the turn is drawn from the id, and the ids are the same in every run
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			hanging := &kit.Spy{Client: q.Direct()}
			hanging.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
				if hanging.HideCount() > 1 {
					return hanging.Client.ChangeMessageVisibilityBatch(ctx, in)
				}
				<-ctx.Done()
				time.Sleep(30 * time.Millisecond) // before that is noticed
				return nil, ctx.Err()
			}
			c := q.ConsumeWith(hanging, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				if m.Body != "slow" {
					return nil
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(10 * time.Second):
					return nil
				}
			}), reprise.Config{Lease: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
			for range i {
				q.Send("quick")
			}
			q.Send("slow")
			q.WaitEmpty(time.Minute)
			if n := c.Status().Counts; n.Lost != 0 {
				t.Errorf("message %d: counts %+v: its lease was lost for one renewal", i, n)
			}
		})
	}
}

// TestRefusedSettlementOfTheOlderHandle: a redelivery brings a newer handle while a
// settlement with the older one is under way, which SQS refuses. It is sent again with the newer
// handle: the message is not lost, and does not wait for the end of its lease.
func TestRefusedSettlementOfTheOlderHandle(t *testing.T) {
	for name, failures := range map[string]int64{"delete": 0, "retry": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				watch := &kit.Spy{Client: q.Direct()}
				redeliver := func() {
					q.Release(q.Messages()[0].ID)
					time.Sleep(2 * time.Second) // the poll brings it again
				}
				watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
					if watch.HideCount() > 1 {
						return watch.Client.ChangeMessageVisibilityBatch(ctx, in)
					}
					redeliver()
					return refuseAll(in), nil
				}
				watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
					if failures > 0 || len(watch.Deletes) > 1 {
						return watch.Client.DeleteMessageBatch(ctx, in)
					}
					redeliver()
					return &sqs.DeleteMessageBatchOutput{Failed: []types.BatchResultErrorEntry{
						{Id: in.Entries[0].Id, Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: true},
					}}, nil
				}
				var j kit.Journal
				c := q.ConsumeWith(watch, j.Handler(kit.FailFirst("order", int(failures))), reprise.Config{
					Lease: 10 * time.Minute,
					Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None},
				})
				began := time.Now()
				q.Send("order")
				q.WaitEmpty(time.Hour)
				n := c.Status().Counts
				if n.Lost != 0 || n.Duplicates != 1 || n.Retried != failures || n.Deleted != 1 || len(j.All()) != int(failures)+1 {
					t.Errorf("%d runs, counts %+v: want a duplicate, and nothing lost", len(j.All()), n)
				}
				if took := time.Since(began); took > time.Duration(failures)*time.Minute+5*time.Second {
					t.Errorf("gone after %v: it was left to its lease", took)
				}
			})
		})
	}
}

// TestDeleteAfterTheLease: a delete arrives when the lease has ended and another consumer has the
// message. SQS confirms it, but does not delete. When the message is received again its work is
// done: it is deleted, not run.
func TestDeleteAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 10 * time.Second
		q := reprisetest.NewQueue(t, nil)
		began := time.Now()
		var received atomic.Bool
		late := &kit.Spy{Client: q.Direct()}
		late.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			if received.Load() {
				time.Sleep(2*lease - time.Since(began)) // another consumer gets it first
			}
			out, err := late.Client.ReceiveMessage(ctx, in)
			received.Store(err == nil && len(out.Messages) > 0)
			return out, err
		}
		late.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			if up := time.Since(began); up < lease {
				time.Sleep(lease + 5*time.Second - up)
			}
			return late.Client.DeleteMessageBatch(ctx, in)
		}
		var j kit.Journal
		c := q.ConsumeWith(late, j.Handler(kit.Succeed), reprise.Config{Lease: lease})
		q.Send("order")
		time.Sleep(lease + time.Second)
		out, err := q.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), VisibilityTimeout: 30})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("somebody else received %+v, %v; want the message, whose lease has ended", out, err)
		}
		q.WaitEmpty(time.Hour)
		if n := c.Status().Counts; len(j.All()) != 1 || n.Received != 2 {
			t.Errorf("%d runs, counts %+v: want one run, and a second receive that is only deleted", len(j.All()), n)
		}
	})
}

// TestFailedHeartbeatsKeepTheirPauses: no heartbeat succeeds, and the leases of some messages end
// one after the other. The last heartbeats of the first message, at ever shorter pauses, do not
// renew the others each time.
func TestFailedHeartbeatsKeepTheirPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 20 * time.Second
		const slack = time.Second // that the consumer keeps off the end of a lease
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		ends, failed := make(map[string]time.Time), make(map[string]time.Time) // by handle
		heartbeats := 0
		throttled := &kit.Spy{Client: q.Direct()}
		throttled.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := throttled.Client.ReceiveMessage(ctx, in)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				for _, m := range out.Messages {
					ends[*m.ReceiptHandle] = time.Now().Add(lease)
				}
			}
			return out, err
		}
		throttled.Hide = func(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range in.Entries {
				last, again := failed[*e.ReceiptHandle]
				pause, left := time.Since(last), ends[*e.ReceiptHandle].Sub(last)-slack
				if again && (pause < 100*time.Millisecond || pause < left/6) {
					t.Errorf("a heartbeat that failed is sent again after %v, with %v of the lease left", pause, left)
				}
				failed[*e.ReceiptHandle] = time.Now()
				heartbeats++
			}
			return nil, kit.ErrUnavailable
		}
		c := q.ConsumeWith(throttled, reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}), reprise.Config{Lease: lease})
		for range 5 {
			q.Send("order")
			time.Sleep(time.Second)
		}
		time.Sleep(lease - 5*time.Second)
		c.Crash()
		mu.Lock() // a heartbeat may be under way
		defer mu.Unlock()
		if heartbeats < 25 {
			t.Errorf("%d heartbeats, want several for each of five messages", heartbeats)
		}
	})
}

// TestHideOfUnknownEffectIsRepeatedInTime: the reply to a short hide is lost. Later requests about
// the message take a while to reach SQS, and another consumer may have it when the hide ends: its
// lease must not be changed.
func TestHideOfUnknownEffectIsRepeatedInTime(t *testing.T) {
	for late := 400 * time.Millisecond; late < time.Second; late += 100 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			const travels = 300 * time.Millisecond // a request
			q := reprisetest.NewQueue(t, nil)
			direct := q.Direct()
			wire := &kit.Spy{Client: direct}
			received, hides := false, 0
			wire.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
				if received {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				received = true
				return direct.ReceiveMessage(ctx, in)
			}
			wire.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
				if hides++; hides > 1 {
					time.Sleep(travels)
					return direct.ChangeMessageVisibilityBatch(ctx, in)
				}
				_, _ = direct.ChangeMessageVisibilityBatch(ctx, in)
				time.Sleep(late)
				return nil, errors.New("connection reset by peer")
			}
			q.Send("order")
			c := q.ConsumeWith(wire, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
				return kit.ErrUnavailable
			}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None}})
			time.Sleep(10 * time.Millisecond)
			out, err := direct.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), WaitTimeSeconds: 20, VisibilityTimeout: 30})
			if err != nil || len(out.Messages) != 1 {
				t.Fatalf("the other consumer received %v, %v", out, err)
			}
			ends := time.Now().Add(30 * time.Second)
			time.Sleep(5 * time.Second)
			if m := q.Messages(); len(m) != 1 || m[0].Due.Before(ends.Add(-time.Second)) {
				t.Errorf("with a reply after %v: messages %+v, want the other consumer's lease to end at %v", late, m, ends)
			}
			c.Crash()
		})
	}
}

// TestHeartbeatsEndWithinTheLease: a heartbeat that hangs is given up while there is time for
// another, also where leases are short.
func TestHeartbeatsEndWithinTheLease(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		5 * time.Second:  time.Second,
		10 * time.Second: 2 * time.Second,
		time.Minute:      5 * time.Second,
	} {
		t.Run(lease.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				watch := &kit.Spy{Client: q.Direct()}
				var limit time.Duration // of the first heartbeat
				watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
					if end, ok := ctx.Deadline(); ok && limit == 0 {
						limit = time.Until(end)
					}
					return watch.Client.ChangeMessageVisibilityBatch(ctx, in)
				}
				q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					time.Sleep(lease)
					return nil
				}), reprise.Config{Lease: lease})
				q.Send("slow")
				q.WaitEmpty(time.Hour)
				if limit != want {
					t.Errorf("heartbeats may take %v, want %v", limit, want)
				}
			})
		})
	}
}
