package settling

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestNothingIsLostAtTheLastPermittedReceive: at its last permitted receive, and if no copy
// replaces it, a message is never given back: SQS would move it to the dead-letter queue at the
// next receive, without a run and without a story. It is dead-lettered with its story instead.
func TestNothingIsLostAtTheLastPermittedReceive(t *testing.T) {
	for _, tt := range []struct {
		name      string
		permitted int
		limit     int // of attempts; 0: the queue's
		handle    func(context.Context, *reprise.Message) error
		wait      time.Duration // before the consumer is stopped
		reason    string
		attempts  int
	}{
		{
			name:      "its retry fails",
			permitted: 3,
			handle:    func(context.Context, *reprise.Message) error { return kit.ErrUnavailable },
			wait:      time.Hour, reason: "attempts", attempts: 3,
		},
		{
			name:      "its retry fails, and its policy allows more attempts",
			permitted: 3, limit: 5,
			handle: func(context.Context, *reprise.Message) error { return kit.ErrUnavailable },
			wait:   time.Hour, reason: "receives", attempts: 3,
		},
		{
			name:      "its wait takes another hop",
			permitted: 2,
			handle: func(context.Context, *reprise.Message) error {
				return reprise.RetryAfter(23*time.Hour, kit.ErrUnavailable)
			},
			wait: 30 * time.Hour, reason: "receives", attempts: 1,
		},
		{
			name:      "its handler releases it",
			permitted: 1,
			handle:    func(context.Context, *reprise.Message) error { return reprise.Release(0, kit.ErrUnavailable) },
			wait:      time.Minute, reason: "receives", attempts: 0, // a release is none
		},
		{
			name:      "its handler is told to stop",
			permitted: 1,
			handle: func(ctx context.Context, _ *reprise.Message) error {
				<-ctx.Done()
				return ctx.Err()
			},
			wait: time.Second, reason: "receives", attempts: 0, // a run that a stop ends is none
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(tt.permitted)
				c := q.Consume(reprise.HandlerFunc(tt.handle), reprise.Config{
					Via:   reprise.ViaVisibility,
					Retry: retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: tt.limit},
				})
				q.Send("order")
				time.Sleep(tt.wait)
				c.Stop()
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1; left in the queue: %+v", len(letters), q.Messages())
				}
				if s := kit.StoryOf(t, letters[0]); s.Reason != tt.reason || s.Attempts != tt.attempts || s.Receives != tt.permitted {
					t.Errorf("story %+v, want reason %s, %d attempts, %d receives", s, tt.reason, tt.attempts, tt.permitted)
				}
			})
		})
	}
}

// TestUnstartedAtTheLastReceive: a stop releases messages that have not started, except if the next
// receive would lose them.
func TestUnstartedAtTheLastReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(1)
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(15 * time.Second)
			return nil
		}), reprise.Config{Concurrency: 1, Via: reprise.ViaVisibility})
		q.Send(kit.Numbered(3)...)
		time.Sleep(time.Second)
		if report := c.Stop(); report.Counts.Deleted != 1 || report.Counts.DeadLettered != 2 || len(q.Messages()) != 0 {
			t.Errorf("%v; left %+v: want 1 handled and 2 dead-lettered", report, q.Messages())
		}
		for _, m := range dead.Messages() {
			if s := kit.StoryOf(t, m); s.Reason != "receives" || s.Attempts != 0 {
				t.Errorf("story %+v, want reason receives without an attempt", s)
			}
		}
	})
}

// TestLastReceiveWhileItIsGivenBack: a message is received again while SQS is asked to
// hide it, for the last permitted time. It is not given back with the newer handle.
func TestLastReceiveWhileItIsGivenBack(t *testing.T) {
	for name, failure := range map[string]error{"retried": kit.ErrUnavailable, "released": reprise.Release(0, kit.ErrUnavailable)} {
		attempts := 1
		if name == "released" {
			attempts = 0
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(2)
				watch := &kit.Spy{Client: q.Direct()}
				watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
					out, err := watch.Client.ChangeMessageVisibilityBatch(ctx, in)
					if watch.HideCount() == 1 {
						q.Release(q.Messages()[0].ID)
						time.Sleep(2 * time.Second) // the poll brings it again
					}
					return out, err
				}
				q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return failure }), reprise.Config{
					Via:   reprise.ViaVisibility,
					Retry: retry.Policy{Backoff: retry.Constant(time.Minute)},
				})
				q.Send("order")
				q.WaitEmpty(time.Hour)
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if s := kit.StoryOf(t, letters[0]); s.Reason != "receives" || s.Attempts != attempts || s.Receives != 2 {
					t.Errorf("story %+v, want reason receives after %d attempts", s, attempts)
				}
			})
		})
	}
}
