package settling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/chance"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPermanentIsDeadLetteredAtOnce: the dead letter has everything that the sender sent, and the
// story.
func TestPermanentIsDeadLetteredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		var j kit.Journal
		q.ConsumeWith(q.Client(), j.Handler(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(errors.New("no such customer \uFFFF 💥"))
		}), reprise.Config{Name: "worker-1"})
		id := q.SendMessage(sqsserver.SendMessageEntry{
			MessageBody: "Zażółć gęślą jaźń",
			MessageAttributes: []sqsserver.MessageAttribute{
				{Name: "digest", DataType: "Binary", BinaryValue: []byte{0, 255, 7}},
				{Name: "tenant", DataType: "String.name", StringValue: "acme"},
			},
		})
		q.WaitEmpty(time.Minute)

		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs of a permanent failure, want 1", n)
		}
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if letters[0].Body != "Zażółć gęślą jaźń" || len(letters[0].Attributes) != 3 {
			t.Errorf("dead letter %+v: the sender's body and attributes are not all there", letters[0])
		}
		s := kit.StoryOf(t, letters[0])
		if s.Reason != "permanent" || s.Attempts != 1 || s.Receives != 1 || s.Error != "permanent: no such customer  💥" ||
			s.Message != id || s.Source != q.ARN() || s.Consumer != "worker-1" || s.Last.IsZero() || s.First.IsZero() {
			t.Errorf("story %+v", s)
		}
	})
}

// TestExhaustedIsDeadLetteredWithTheReason: messages are given up by attempts and by age, and never
// retried in a tight loop.
func TestExhaustedIsDeadLetteredWithTheReason(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   retry.Policy
		receives int // the queue's maxReceiveCount
		attempts int
		reason   string
	}{
		{"attempts", retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 4, Jitter: retry.None}, 100, 4, "attempts"},
		{"the queue's maxReceiveCount, where the policy says nothing", retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}, 3, 3, "attempts"},
		{"attempts, beyond the queue's maxReceiveCount", retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 9, Jitter: retry.None}, 3, 9, "attempts"},
		{"age", retry.Policy{Backoff: retry.Constant(time.Hour), MaxAge: 150 * time.Minute, Jitter: retry.None}, 100, 4, "age"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(tt.receives)
				var j kit.Journal
				q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{Retry: tt.policy})
				q.Send("order")
				q.WaitEmpty(24 * time.Hour)
				if n := len(j.All()); n != tt.attempts {
					t.Errorf("%d attempts, want %d", n, tt.attempts)
				}
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if s := kit.StoryOf(t, letters[0]); s.Reason != tt.reason || s.Attempts != tt.attempts || s.Error != kit.ErrUnavailable.Error() {
					t.Errorf("story %+v, want reason %s after %d attempts", s, tt.reason, tt.attempts)
				}
			})
		})
	}
}

// TestNothingIsDroppedWithoutADeadLetterQueue: a message that is given up without a dead-letter
// queue stays hidden for as long as SQS permits, is not run again, and is reported.
func TestNothingIsDroppedWithoutADeadLetterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var log strings.Builder
		var codes []string
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) { codes = append(codes, f.Code) }},
		})
		q.Send("order")
		time.Sleep(90 * time.Hour)
		status := c.Status()
		c.Stop()
		if n := len(j.All()); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		if len(q.Messages()) != 1 {
			t.Error("the message is gone: it must stay until the queue's retention ends")
		}
		if status.Counts.Kept < 7 || status.Counts.Kept > 9 || status.Health != reprise.HealthDegraded {
			t.Errorf("status %+v: want it hidden 12 hours at a time, and degraded health", status)
		}
		if len(codes) != 1 || codes[0] != plan.CodeNoDeadLetterQueue {
			t.Errorf("findings %v, want %s", codes, plan.CodeNoDeadLetterQueue)
		}
		if !strings.Contains(log.String(), "no dead-letter queue takes them") || !strings.Contains(log.String(), "expires=") {
			t.Errorf("the log does not say that a message is kept, and until when:\n%s", log.String())
		}
	})
}

// TestDeadLetterQueueRefuses: without the permission to send to the dead-letter queue the message
// is kept, and is dead-lettered when the queue accepts messages again.
func TestDeadLetterQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("order")
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{
			DeadLetterURL: strings.Replace(q.URL(), q.Name(), "absent", 1),
		})
		time.Sleep(time.Hour)
		if len(q.Messages()) != 1 || len(j.All()) != 1 {
			t.Errorf("%d messages and %d runs, want 1 and 1", len(q.Messages()), len(j.All()))
		}
		if s := c.Status(); s.Health != reprise.HealthDegraded || s.Problem == "" {
			t.Errorf("health %v, %q", s.Health, s.Problem)
		}
	})
}

// TestDeadLetterOfTheLargestMessage: a message of the largest size that SQS accepts leaves no room
// for a story. It is dead-lettered without it, and the story is logged.
func TestDeadLetterOfTheLargestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		var log strings.Builder
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		body := strings.Repeat("x", 1<<20)
		q.Send(body, "small", body)
		q.WaitEmpty(time.Minute)
		synctest.Wait() // for the log
		letters := dead.Messages()
		if len(letters) != 3 {
			t.Fatalf("%d dead letters, want 3", len(letters))
		}
		for _, m := range letters {
			if m.Body == "small" {
				kit.StoryOf(t, m)
			} else if len(m.Attributes) != 0 || len(m.Body) != 1<<20 {
				t.Errorf("a dead letter of %d bytes with %d attributes", len(m.Body), len(m.Attributes))
			}
		}
		if !strings.Contains(log.String(), "is sent without its story") {
			t.Error("the log does not tell the story")
		}
	})
}

// TestDeadLetterQueueIsTriedAgain: after a dead-letter queue has refused messages, it is used again
// within a minute of its repair.
func TestDeadLetterQueueIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		watch := &kit.Spy{Client: q.Direct()}
		granted := time.Now().Add(5 * time.Minute)
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if time.Now().Before(granted) {
				return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
			}
			return watch.Client.SendMessageBatch(ctx, in)
		}
		q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{})
		for time.Now().Before(granted) {
			q.Send("refused")
			time.Sleep(30 * time.Second)
		}
		time.Sleep(time.Minute)
		q.Send("taken")
		time.Sleep(10 * time.Second)
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "taken" {
			t.Errorf("dead letters %+v, want the one given up since", letters)
		}
	})
}

// TestStoryOfALongError: a story whose full text would exceed the size limit of a queue is cut.
func TestStoryOfALongError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		long := errors.New("broken: " + strings.Repeat("ż", 1<<20))
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(long) }), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != "permanent" || !strings.Contains(s.Error, "broken: ż") || len(s.Error) > 1000 {
			t.Errorf("reason %q and %d bytes of the error, want the beginning of it", s.Reason, len(s.Error))
		}
	})
}

// TestTenAttributesBreakNoDeadLetter: a message with ten attributes, SQS's limit, leaves no room
// for a story. It is dead-lettered without it.
func TestTenAttributesBreakNoDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{})
		var attributes []sqsserver.MessageAttribute
		for i := range 10 {
			attributes = append(attributes, sqsserver.MessageAttribute{Name: fmt.Sprintf("a%d", i), DataType: "Number", StringValue: "7"})
		}
		q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: attributes})
		q.WaitEmpty(time.Minute)
		if letters := dead.Messages(); len(letters) != 1 || len(letters[0].Attributes) != 10 {
			t.Errorf("dead letters %+v, want the message with its ten attributes", letters)
		}
	})
}

// TestOneRefusedDeadLetterHoldsUpNoOther: a message too large for the dead-letter queue is kept.
// Those behind it are dead-lettered.
func TestOneRefusedDeadLetterHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		dead.SetAttributes(map[string]string{"MaximumMessageSize": "1024"})
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{Name: "worker-1"})
		q.Send(strings.Repeat("x", 2000))
		time.Sleep(5 * time.Second) // it has been refused
		q.Send("small 1", "small 2")
		time.Sleep(5 * time.Second)
		if n := c.Status().Counts; len(dead.Messages()) != 2 || n.DeadLettered != 2 || n.Kept != 1 {
			t.Errorf("%d dead letters, counts %+v: want the two small ones there, the large one kept", len(dead.Messages()), n)
		}
	})
}

// TestGivenUpBeforeTheQueueIsKnown: the queue's attributes cannot be read at the start, so it is
// not known whether there is a dead-letter queue. A message that is given up meanwhile is held, not
// hidden for 12 hours, and dead-lettered when the queue is known.
func TestGivenUpBeforeTheQueueIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "GetQueueAttributes"})
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
			Retry: retry.Policy{MaxAttempts: 1},
		})
		q.Send("order")
		time.Sleep(150 * time.Second)
		if s := c.Status(); s.Settling != 1 || s.Counts.Kept != 0 {
			t.Errorf("status %+v while the queue is not known, want the message held", s)
		}
		q.Fault()
		q.WaitEmpty(2 * time.Minute)
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != "attempts" || s.Attempts != 1 || s.Receives != 1 || len(j.All()) != 1 {
			t.Errorf("story %+v after %d runs, want one attempt at the one receive", s, len(j.All()))
		}
	})
}

// TestLostBeforeTheQueueIsKnown: a message seems exhausted by the time since its first receive, it
// is not known whether there is a dead-letter queue, and its lease ends. Neither is certain then:
// that no queue accepts it, and that its attempts are used up. When it is received again, and the
// queue is known to move it only after its last receive, it has one attempt left.
func TestLostBeforeTheQueueIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		q.Send("order")
		for range 5 { // by others, of whom nothing is known
			if _, err := q.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), VisibilityTimeout: 5}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
		}
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Skip: 1},
		)
		deaf, began := &kit.Spy{Client: q.Direct()}, time.Now()
		deaf.Attributes = func(ctx context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			if time.Since(began) < 50*time.Second {
				return nil, &smithy.GenericAPIError{Code: "RequestThrottled", Message: "slow down", Fault: smithy.FaultClient}
			}
			return deaf.Client.GetQueueAttributes(ctx, in)
		}
		deaf.Hide = func(ctx context.Context, _ *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var j kit.Journal
		c := q.ConsumeWith(deaf, j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), chance.Seeded(reprise.Config{
			Lease: 30 * time.Second,
			Retry: retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: 3},
		}, 1).(reprise.Config)) // the backoff of the receives that are throttled
		time.Sleep(50 * time.Second)
		if n := c.Status().Counts; n.Lost != 1 || n.Kept != 0 {
			t.Errorf("counts %+v, want the message lost", n)
		}
		time.Sleep(80 * time.Second) // the queue is known a minute later at most, and only then the message comes again
		if n := c.Status().Counts; n.Received != 1 {
			t.Errorf("counts %+v, want no receive yet but the first", n)
		}
		q.Fault()
		q.WaitEmpty(10 * time.Minute)
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != "attempts" || s.Attempts != 3 || len(j.All()) != 1 {
			t.Errorf("story %+v after %d runs, want three attempts, of which the last was here", s, len(j.All()))
		}
	})
}

// TestAttributesDenied: without the permission to read the queue's attributes the consumer reports
// it and goes on. Waiting would not reveal the dead-letter queue, so messages that are given up are
// kept.
func TestAttributesDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(5)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Attributes = func(context.Context, *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}
		var found []plan.Finding
		c := q.ConsumeWith(watch, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "bad" {
				return reprise.Permanent(kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) { found = append(found, f) }}})
		q.Send("good", "bad")
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := c.Status(); s.Counts.Deleted != 1 || s.Counts.Kept != 1 || s.Calls.Attributes > 9 {
			t.Errorf("status %+v, want one message handled, one kept, and the attributes asked for every ten minutes", s)
		}
		if len(found) != 1 || found[0].Code != "attributes-unreadable" || !strings.Contains(found[0].Problem, "not for you") {
			t.Errorf("findings %+v, want one that says what was denied", found)
		}
	})
}
