package reprise_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestLeaseIsKeptForTwelveHours: SQS lets nobody hold a message for longer. The last
// renewals ask for what is left of that, so that none is refused, and the handler
// has its message to the end.
func TestLeaseIsKeptForTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		refused := 0
		watch := &spy{Client: q.Direct()}
		watch.hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
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

// TestLeaseCountsFromTheRequest: replies to heartbeats take seconds, and then none
// comes any more. By the time at which SQS ends the lease the handler has been told.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		q := reprisetest.NewQueue(t, nil)
		slow := &spy{Client: q.Direct()}
		var ends time.Time
		slow.hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
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
