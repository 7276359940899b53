package settling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestRequeueImpossible: a message without room for the history, without the permission to send, or
// that does not match its digest cannot be copied. It is hidden instead, which is reported; at its
// last permitted receive it is given up, with its story.
func TestRequeueImpossible(t *testing.T) {
	var ten []sqsserver.MessageAttribute
	for i := range 10 {
		ten = append(ten, sqsserver.MessageAttribute{Name: fmt.Sprint("a", i), DataType: "String", StringValue: "x"})
	}
	deny := func(watch *kit.Spy) {
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if strings.HasSuffix(*in.QueueUrl, "-2") { // the dead-letter queue's
				return watch.Client.SendMessageBatch(ctx, in)
			}
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}
	}
	damage := func(change func(*types.Message)) func(watch *kit.Spy) {
		return func(watch *kit.Spy) {
			watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
				out, err := watch.Client.ReceiveMessage(ctx, in)
				if err == nil {
					for i := range out.Messages {
						change(&out.Messages[i])
					}
				}
				return out, err
			}
		}
	}
	one := []sqsserver.MessageAttribute{{Name: "a", DataType: "String", StringValue: "x"}}
	for _, tt := range []struct {
		name    string
		message sqsserver.SendMessageEntry
		spoil   func(*kit.Spy)
		code    string
	}{
		{"ten attributes are taken", sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: ten}, nil, "message-not-copyable"},
		{"it is as large as SQS permits", sqsserver.SendMessageEntry{MessageBody: strings.Repeat("x", 1<<20)}, nil, "message-not-copyable"},
		{"sending is denied", sqsserver.SendMessageEntry{MessageBody: "order"}, deny, "requeue-refused"},
		{"the body is another", sqsserver.SendMessageEntry{MessageBody: "order"},
			damage(func(m *types.Message) { m.Body = aws.String("0rder") }), "message-not-copyable"},
		{"an attribute is missing", sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: one},
			damage(func(m *types.Message) { m.MessageAttributes = nil }), "message-not-copyable"},
		{"an attribute is another", sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: one},
			damage(func(m *types.Message) {
				m.MessageAttributes["a"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("y")}
			}), "message-not-copyable"},
		{"there is no digest", sqsserver.SendMessageEntry{MessageBody: "order"},
			damage(func(m *types.Message) { m.MD5OfBody = nil }), "message-not-copyable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(3)
				watch := &kit.Spy{Client: q.Direct()}
				if tt.spoil != nil {
					tt.spoil(watch)
				}
				var mu sync.Mutex
				var codes []string
				var j kit.Journal
				q.ConsumeWith(watch, j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
					Via:   reprise.ViaRequeue,
					Retry: kit.EveryMinute(9),
					Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) {
						mu.Lock()
						defer mu.Unlock()
						codes = append(codes, f.Code)
					}},
				})
				q.SendMessage(tt.message)
				q.WaitEmpty(time.Hour)
				runs := j.All()
				if len(runs) != 3 {
					t.Fatalf("%d runs, want one for each permitted receive", len(runs))
				}
				for i, r := range runs[1:] {
					if waited := r.Started.Sub(runs[i].Started); r.Attempt != i+2 || waited < time.Minute || waited > 62*time.Second {
						t.Errorf("attempt %d after %v, want %d after 1m", r.Attempt, waited, i+2)
					}
				}
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if len(tt.message.MessageAttributes) < 10 && len(tt.message.MessageBody) < 1<<20 {
					if s := kit.StoryOf(t, letters[0]); s.Reason != "attempts" && s.Reason != "receives" || s.Attempts != 3 {
						t.Errorf("story %+v", s)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if n := len(slices.DeleteFunc(codes, func(code string) bool { return code != tt.code })); n != 1 {
					t.Errorf("%d findings %s, want it once", n, tt.code)
				}
			})
		})
	}
}

// TestRefusedCopiesAreTriedAgain: copies that were refused are tried again after a minute, not for
// every message.
func TestRefusedCopiesAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		granted := time.Now().Add(5 * time.Minute)
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if time.Now().Before(granted) {
				return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
			}
			return watch.Client.SendMessageBatch(ctx, in)
		}
		c := q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }),
			reprise.Config{Via: reprise.ViaRequeue, Retry: retry.Policy{Backoff: retry.Constant(5 * time.Second), Jitter: retry.None, MaxAttempts: -1}})
		q.Send("order")
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if n := len(watch.Sends); n < 3 || n > 5 {
			t.Errorf("%d sends in 4 minutes, want one a minute", n)
		}
		if n := c.Status().Counts; n.Requeued != 0 || n.Retried < 40 {
			t.Errorf("counts %+v: want the retries by visibility", n)
		}
		time.Sleep(4 * time.Minute)
		if n := c.Status().Counts; n.Requeued == 0 {
			t.Errorf("counts %+v: want requeues since the permission was granted", n)
		}
	})
}

// TestDamagedAndRefusedCopiesInOneBatch: of three copies in one request one is left out, since its
// message is damaged, and one is refused. Each message gets its own reply: none is deleted before
// its copy is confirmed, and none is sent twice.
func TestDamagedAndRefusedCopiesInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := watch.Client.ReceiveMessage(ctx, in)
			if err == nil {
				for i := range out.Messages {
					if *out.Messages[i].Body == "damaged" {
						out.Messages[i].MD5OfBody = aws.String("no digest of it")
					}
				}
			}
			return out, err
		}
		refused := 0
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			at := slices.IndexFunc(in.Entries, func(e types.SendMessageBatchRequestEntry) bool { return *e.MessageBody == "refused" })
			if at < 0 || refused > 0 {
				return watch.Client.SendMessageBatch(ctx, in)
			}
			if refused++; len(in.Entries) != 2 {
				t.Fatalf("%d copies go together, want two: the damaged message has none", len(in.Entries))
			}
			no := types.BatchResultErrorEntry{Id: in.Entries[at].Id, Code: aws.String("InternalError")}
			in.Entries = slices.Delete(slices.Clone(in.Entries), at, at+1)
			out, err := watch.Client.SendMessageBatch(ctx, in)
			if err == nil {
				out.Failed = append(out.Failed, no)
			}
			return out, err
		}
		bodies := []string{"damaged", "refused", "taken"}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{
			Concurrency: 1, // the damaged one comes first
			Via:         reprise.ViaRequeue,
			Retry:       retry.Policy{Backoff: retry.Constant(5 * time.Second), Jitter: retry.None},
		})
		q.Send(bodies...)
		q.WaitEmpty(time.Minute)
		for _, body := range bodies {
			runs := j.Of(body)
			if len(runs) != 2 || runs[1].Attempt != 2 {
				t.Errorf("runs %+v of the message %q, want a failed attempt and a second one", runs, body)
			}
		}
		if n := c.Status().Counts; refused != 1 || n.Requeued != 2 || n.Retried != 3 {
			t.Errorf("%d refusals, counts %+v: want three retries, two of them by copies", refused, n)
		}
	})
}

// TestHiddenOriginalStaysHidden: the copy of a message that waits for hours has been sent, and the
// original, hidden for as long, cannot be deleted for most of that time. Its lease is not renewed
// meanwhile, because that would end it earlier, and the original would be received again if this
// process ended.
func TestHiddenOriginalStaysHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 6 * time.Hour
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch"})
		var j kit.Journal
		c := q.Consume(j.Handler(kit.FailFirst("order", 1)), reprise.Config{
			Via: reprise.ViaRequeue, Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None},
		})
		id := q.Send("order")[0]
		began := time.Now()
		time.Sleep(wait - 30*time.Minute)
		for _, m := range q.Messages() {
			if m.ID == id && m.Due.Sub(began) < wait {
				t.Errorf("the original is hidden until %v, want %v", m.Due.Sub(began), wait)
			}
		}
		if n := c.Status().Calls.Heartbeats; n != 0 || len(q.Messages()) != 2 {
			t.Errorf("%d heartbeats, %d messages; want none, and the original beside its copy", n, len(q.Messages()))
		}
		q.Fault()
		q.WaitEmpty(wait)
		if n := len(j.All()); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	})
}
