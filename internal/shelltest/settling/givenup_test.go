package settling

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestKeptMessageKeepsItsError: a message is given up without a dead-letter queue that accepts it,
// and kept for a day. Its story has the error for which it was given up, whether its handler had
// run in this process or not.
func TestKeptMessageKeepsItsError(t *testing.T) {
	for _, tt := range []struct {
		name   string
		send   func(*reprisetest.Queue)
		policy retry.Policy
		runs   int
		reason string
		error  string
	}{
		{"by its handler", func(q *reprisetest.Queue) { q.Send("order") }, retry.Policy{}, 1, "permanent", kit.ErrUnavailable.Error()},
		{"before it has run", func(q *reprisetest.Queue) {
			h := kit.Plausible(q)
			h.Attempt, h.Error = 7, "no such customer"
			kit.Forged(q, "order", h.Text(t))
		}, retry.Policy{MaxAttempts: 7, MaxAge: -1}, 0, "attempts", "no such customer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewQueue(nil)
				taken := time.Now().Add(24 * time.Hour)
				watch := &kit.Spy{Client: q.Direct()}
				watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
					if time.Now().Before(taken) {
						return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
					}
					return watch.Client.SendMessageBatch(ctx, in)
				}
				var j kit.Journal
				c := q.ConsumeWith(watch, j.Handler(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{
					DeadLetterURL: dead.URL(), Retry: tt.policy,
				})
				tt.send(q)
				q.WaitEmpty(48 * time.Hour)
				if n := c.Status().Counts; n.Kept < 2 || len(j.All()) != tt.runs {
					t.Errorf("%d runs, counts %+v: want it kept at first, and run %d times", len(j.All()), n, tt.runs)
				}
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if s := kit.StoryOf(t, letters[0]); s.Reason != tt.reason || !strings.HasSuffix(s.Error, tt.error) {
					t.Errorf("story %+v, want the reason %s and the error %q", s, tt.reason, tt.error)
				}
			})
		})
	}
}

// TestStoryCountsRunsNotReceives: a message is given up after its only run. For a minute neither
// its dead letter nor a visibility change succeeds, so it is received again each time its lease has
// ended. These receives do not count as attempts.
func TestStoryCountsRunsNotReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "SendMessageBatch"})
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ChangeMessageVisibilityBatch"})
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{
			Lease: 10 * time.Second,
			Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None},
		})
		q.Send("order")
		time.Sleep(time.Minute)
		dead.Fault()
		q.Fault()
		q.WaitEmpty(10 * time.Minute)
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		s := kit.StoryOf(t, letters[0])
		if n := c.Status().Counts; len(j.All()) != 1 || s.Attempts != 1 || s.Receives < 4 || s.Reason != "permanent" || n.Lost < 3 {
			t.Errorf("story %+v after %d runs, counts %+v: want one attempt at several receives", s, len(j.All()), n)
		}
	})
}
