package attacks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The attacker of these tests is a producer that may send to one queue and has no other permission.
// Whatever it sends, the messages of others are still received, handled and settled.

// cursed is the beginning of the body of a message that makes every request that contains it fail.
const cursed = "cursed"

// refuseCursed has a whole send fail with err if it contains the copy of a cursed message; permit
// may accept some of them.
func refuseCursed(watch *kit.Spy, err error, permit func(types.SendMessageBatchRequestEntry) bool) {
	watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		for _, e := range in.Entries {
			if strings.HasPrefix(*e.MessageBody, cursed) && !permit(e) {
				return nil, err
			}
		}
		return watch.Client.SendMessageBatch(ctx, in)
	}
}

// curses are ways in which a proxy between the consumer and its queue may refuse one message.
var curses = []struct {
	name string
	err  error
}{
	{"with an error of SQS that names the contents", &types.InvalidMessageContents{}},
	{"as too large", &smithy.GenericAPIError{Code: "RequestEntityTooLarge", Fault: smithy.FaultClient}},
	{"with an error that nobody knows", &smithy.GenericAPIError{Code: "Confused", Fault: smithy.FaultClient}},
	{"with an error of the server", &smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}},
	{"by cutting the connection", errors.New("read: connection reset by peer")},
}

// TestAttackUncopyableDeadLetters: 400 messages that are given up, and whose copies are always
// refused, come before 100 good ones and some other messages that are given up. The good ones are
// handled, the others dead-lettered with their stories. Messages that cannot be copied are kept,
// and the health reports it.
func TestAttackUncopyableDeadLetters(t *testing.T) {
	for _, tt := range curses[:race.Fewer(len(curses), 1)] {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(100)
				watch := &kit.Spy{Client: q.Direct()}
				refuseCursed(watch, tt.err, func(types.SendMessageBatchRequestEntry) bool { return false })
				c := q.ConsumeWith(watch, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					if m.Body == "good" {
						return nil
					}
					return reprise.Permanent(kit.ErrUnavailable)
				}), reprise.Config{})
				for i := range 400 {
					q.Send(fmt.Sprint(cursed, i))
				}
				for range 50 {
					q.Send("good", "given up", "good")
				}
				time.Sleep(20 * time.Minute)
				s := c.Status()
				letters := dead.Messages()
				if s.Counts.Deleted != 100 || s.Counts.DeadLettered != 50 || len(letters) != 50 || s.Counts.Kept < 400 {
					t.Errorf("%d deleted, %d dead-lettered, %d kept; want 100, 50 and each of 400 at least once", s.Counts.Deleted, s.Counts.DeadLettered, s.Counts.Kept)
				}
				for _, letter := range letters {
					kit.StoryOf(t, letter)
				}
				if s.Health != reprise.HealthDegraded {
					t.Errorf("health %v (%q), want degraded", s.Health, s.Problem)
				}
			})
		})
	}
}

// TestAttackUncopyableRetries is the same for copies of messages that are to be retried.
func TestAttackUncopyableRetries(t *testing.T) {
	for _, tt := range curses[:race.Fewer(len(curses), 1)] {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(100)
				watch := &kit.Spy{Client: q.Direct()}
				refuseCursed(watch, tt.err, func(types.SendMessageBatchRequestEntry) bool { return false })
				refuse, alone := watch.Send, make(map[string]bool) // by body
				watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
					if len(in.Entries) == 1 {
						watch.Mu.Lock()
						alone[*in.Entries[0].MessageBody] = true
						watch.Mu.Unlock()
					}
					return refuse(ctx, in)
				}
				c := q.ConsumeWith(watch, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					if m.Body == "good" || m.Body == "retried" && m.Attempt > 1 {
						return nil
					}
					return kit.ErrUnavailable
				}), reprise.Config{Via: reprise.ViaRequeue, Retry: kit.EveryMinute(100)})
				for i := range 400 {
					q.Send(fmt.Sprint(cursed, i))
				}
				for range 50 {
					q.Send("good", "retried", "good")
				}
				time.Sleep(20 * time.Minute)
				if s := c.Status(); s.Counts.Deleted != 150 || s.Counts.Requeued != 50 {
					t.Errorf("%d deleted, %d requeued; want 150 and 50 (%q)", s.Counts.Deleted, s.Counts.Requeued, s.Problem)
				}
				watch.Mu.Lock()
				defer watch.Mu.Unlock()
				for i := range 400 {
					if body := fmt.Sprint(cursed, i); !alone[body] {
						t.Errorf("%q was never refused in a request of its own", body)
					}
				}
			})
		})
	}
}

// TestAttackCopyWithoutWhatCanBeLeftOut: a message that can be copied only without its trace header
// and its story is dead-lettered without them.
func TestAttackCopyWithoutWhatCanBeLeftOut(t *testing.T) {
	for _, tt := range curses[:race.Fewer(len(curses), 1)] {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(100)
				watch := &kit.Spy{Client: q.Direct()}
				refuseCursed(watch, tt.err, func(e types.SendMessageBatchRequestEntry) bool { return len(e.MessageSystemAttributes) == 0 })
				q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					return reprise.Permanent(kit.ErrUnavailable)
				}), reprise.Config{})
				for i := range 3 {
					q.SendMessage(sqsserver.SendMessageEntry{MessageBody: fmt.Sprint(cursed, i), MessageSystemAttributes: []sqsserver.MessageAttribute{
						{Name: "AWSTraceHeader", DataType: "String", StringValue: "Root=1-5759e988-bd862e3fe1be46a994272793"},
					}})
				}
				q.WaitEmpty(30 * time.Minute) // it is tried for 5 minutes, hidden for 15, and tried again
				if n := len(dead.Messages()); n != 3 {
					t.Errorf("%d dead letters, want 3", n)
				}
			})
		})
	}
}

// TestAttackStuckDeletes: 300 messages can never be deleted, others can. The others go on; the
// consumer reports the problem, and holds no more messages than permitted.
func TestAttackStuckDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		stuck := make(map[string]bool) // by receipt handle
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := watch.Client.ReceiveMessage(ctx, in)
			if err == nil {
				watch.Mu.Lock()
				defer watch.Mu.Unlock()
				for _, m := range out.Messages {
					stuck[*m.ReceiptHandle] = strings.HasPrefix(*m.Body, cursed)
				}
			}
			return out, err
		}
		watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			watch.Mu.Lock()
			var kept []types.DeleteMessageBatchRequestEntry
			out := &sqs.DeleteMessageBatchOutput{}
			for _, e := range in.Entries {
				if stuck[*e.ReceiptHandle] {
					out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: new("InternalError")})
				} else {
					kept = append(kept, e)
				}
			}
			watch.Mu.Unlock()
			if len(kept) == 0 {
				return out, nil
			}
			answered, err := watch.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: in.QueueUrl, Entries: kept})
			if err == nil {
				out.Successful = answered.Successful
			}
			return out, err
		}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(kit.Succeed), reprise.Config{})
		for i := range 300 {
			q.Send(fmt.Sprint(cursed, i), fmt.Sprint("good", i))
		}
		time.Sleep(5 * time.Minute)
		q.Send(kit.Numbered(1000)...)
		time.Sleep(5 * time.Minute)
		s := c.Status()
		if s.Counts.Deleted != 1300 || len(j.All()) != 1600 {
			t.Errorf("%d deleted after %d runs, want 1300 after 1600", s.Counts.Deleted, len(j.All()))
		}
		if s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "300") || !strings.Contains(s.Problem, "InternalError") {
			t.Errorf("health %v (%q), want degraded, with the number and the reason", s.Health, s.Problem)
		}
	})
}
