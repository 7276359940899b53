package receiving

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// refuseAll is SQS's answer to visibility changes by handles that it no longer knows.
func refuseAll(in *sqs.ChangeMessageVisibilityBatchInput) *sqs.ChangeMessageVisibilityBatchOutput {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: true})
	}
	return out
}

// TestClientThatBreaksItsContract: a Client may be the user's own code. A mistake of it counts as a
// failed call, which is tried again.
func TestClientThatBreaksItsContract(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wrong func() error
		says  string
	}{
		{"it returns neither a reply nor an error", func() error { return nil }, "neither a reply nor an error"},
		{"it panics", func() error { panic("no route") }, "the SQS client panicked: no route"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				watch := &kit.Spy{Client: q.Direct()}
				receives, deletes := 0, 0
				watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
					if receives++; receives <= 3 {
						return nil, tt.wrong()
					}
					return watch.Client.ReceiveMessage(ctx, in)
				}
				watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
					if deletes++; deletes <= 3 {
						return nil, tt.wrong()
					}
					return watch.Client.DeleteMessageBatch(ctx, in)
				}
				c := q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{})
				synctest.Wait()
				if s := c.Status(); s.Health != reprise.HealthFailing || !strings.Contains(s.Problem, tt.says) {
					t.Errorf("health %v (%q), want it failing and to say %q", s.Health, s.Problem, tt.says)
				}
				q.Send("order")
				q.WaitEmpty(5 * time.Minute)
				synctest.Wait()
				if n := c.Status().Counts; n.Attempts != 1 || n.Deleted != 1 {
					t.Errorf("counts %+v, want one attempt and one delete", n)
				}
			})
		})
	}
}

// TestCallTellsEntries: a receive counts the messages that it returned, not those that it
// requested; other calls count their entries, and those that SQS refused.
func TestCallTellsEntries(t *testing.T) {
	type sum struct{ Entries, Failed int }
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 2})
		q.Send(kit.Numbered(3)...)
		var mu sync.Mutex
		got := make(map[string]sum)
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{Call: func(_ context.Context, e reprise.Call) {
			mu.Lock()
			defer mu.Unlock()
			n := got[e.Operation.String()]
			got[e.Operation.String()] = sum{n.Entries + e.Entries, n.Failed + e.Failed}
		}}})
		q.WaitEmpty(time.Minute)
		c.Stop() // ends the outstanding poll, which brings nothing
		want := map[string]sum{
			"GetQueueAttributes": {},
			"ReceiveMessage":     {Entries: 3},
			"DeleteMessageBatch": {Entries: 3 + 2, Failed: 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("entries told (-want +got):\n%s", diff)
		}
	})
}

// TestRefusalIsOfTheEntryItNames: SQS refuses one entry in the middle of a batch for good. Its
// message is lost; the messages beside it are deleted once.
func TestRefusalIsOfTheEntryItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bad, invalid = 3, "ReceiptHandleIsInvalid"
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		var refused, lost, handles []string
		watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			for _, e := range in.Entries {
				handles = append(handles, *e.ReceiptHandle)
			}
			if len(refused) > 0 || len(in.Entries) <= bad {
				return watch.Client.DeleteMessageBatch(ctx, in)
			}
			refused = append(refused, *in.Entries[bad].ReceiptHandle)
			out, err := watch.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Delete(slices.Clone(in.Entries), bad, bad+1)})
			if err == nil {
				out.Failed = []types.BatchResultErrorEntry{{Id: in.Entries[bad].Id, Code: aws.String(invalid), SenderFault: true}}
			}
			return out, err
		}
		c := q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{
			Settled: func(_ context.Context, e reprise.Settled) {
				if e.Outcome == reprise.OutcomeLost {
					lost = append(lost, e.Message.Body)
				}
			},
		}})
		q.Send(kit.Numbered(10)...)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		left := q.Messages()
		if len(refused) != 1 || len(left) != 1 || len(lost) != 1 || lost[0] != left[0].Body {
			t.Errorf("%d refused, %d left in the queue, lost %v, want the one that was refused", len(refused), len(left), lost)
		}
		if n := c.Status().Counts; n.Deleted != 9 || len(handles) != 10 {
			t.Errorf("counts %+v and %d entries, want nine deleted, and none asked for twice", n, len(handles))
		}
	})
}

// TestThrottledEntriesAreTriedAgain: SQS may throttle single entries of a batch, and report it as
// the sender's fault. Such a refusal passes: no lease counts as lost, no settlement is given up,
// and no message stays unsent.
func TestThrottledEntriesAreTriedAgain(t *testing.T) {
	for _, code := range []string{"RequestThrottled", "ThrottlingException", "KMS.ThrottlingException"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(100)
				refused := 0
				entry := func(id *string) []types.BatchResultErrorEntry {
					refused++
					return []types.BatchResultErrorEntry{{Id: id, Code: &code, SenderFault: true}}
				}
				hides, deletes, sends := 0, 0, 0
				watch := &kit.Spy{Client: q.Direct()}
				watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
					if hides++; hides <= 2 {
						return &sqs.ChangeMessageVisibilityBatchOutput{Failed: entry(in.Entries[0].Id)}, nil
					}
					return watch.Client.ChangeMessageVisibilityBatch(ctx, in)
				}
				watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
					if deletes++; deletes <= 2 {
						return &sqs.DeleteMessageBatchOutput{Failed: entry(in.Entries[0].Id)}, nil
					}
					return watch.Client.DeleteMessageBatch(ctx, in)
				}
				watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
					if sends++; sends%3 != 0 {
						return &sqs.SendMessageBatchOutput{Failed: entry(in.Entries[0].Id)}, nil
					}
					return watch.Client.SendMessageBatch(ctx, in)
				}
				s, err := reprise.NewSender(watch, q.URL(), reprise.SenderConfig{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Send(t.Context(), reprise.Outgoing{Body: "order"}); err != nil {
					t.Errorf("sending: %v", err)
				}
				kit.CloseSender(t, s)
				c := q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					time.Sleep(10 * time.Minute)
					return reprise.Permanent(kit.ErrUnavailable)
				}), reprise.Config{})
				q.WaitEmpty(20 * time.Minute)
				synctest.Wait()
				if n := c.Status().Counts; n.Lost != 0 || n.Attempts != 1 || n.DeadLettered != 1 || n.Kept != 0 || refused != 8 {
					t.Errorf("%d refusals, counts %+v; want 8, one attempt, and the message dead-lettered", refused, n)
				}
				if letters := dead.Messages(); len(letters) != 1 || kit.StoryOf(t, letters[0]).Reason != "permanent" {
					t.Errorf("dead letters %+v, want the message with its story", letters)
				}
			})
		})
	}
}

// TestEmptyRepliesAtOnce: a server or a proxy answers at once instead of waiting for messages. The
// consumer pauses between its calls.
func TestEmptyRepliesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			in.WaitTimeSeconds = 0
			return watch.Client.ReceiveMessage(ctx, in)
		}
		c := q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		time.Sleep(time.Minute)
		if n := c.Status().Calls.Receives; n > 120 {
			t.Errorf("%d receives in a minute, want two a second at most", n)
		}
		sent := time.Now()
		q.Send(kit.Numbered(100)...)
		q.WaitEmpty(time.Minute)
		if took := time.Since(sent); took > 3*time.Second {
			t.Errorf("100 messages took %v: want no pause between receives that bring some", took)
		}
	})
}
