package settling

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestRequeueHidesThenSendsThenDeletes: a crash at any point leaves the message or its copy, or
// both, and neither is visible before it is due. This test uses the SDK's own client.
func TestRequeueHidesThenSendsThenDeletes(t *testing.T) {
	for _, tt := range []struct {
		name string
		wait time.Duration
		want []string
	}{
		{"due when its lease has ended", 10 * time.Minute, []string{"hide", "send", "delete"}},
		{"due while it is leased", 10 * time.Second, []string{"send", "delete"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(1)
				watch := &kit.Spy{Client: q.Client()}
				var j kit.Journal
				c := q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 {
						return kit.ErrUnavailable
					}
					return nil
				}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(tt.wait), Jitter: retry.None, MaxAttempts: 5}})
				q.Send("order")
				time.Sleep(5 * time.Second)
				if got := watch.Calls(); !slices.Equal(got, tt.want) {
					t.Errorf("calls %v, want %v", got, tt.want)
				}
				q.WaitEmpty(time.Hour)
				runs := j.All()
				if len(runs) != 2 || runs[1].Attempt != 2 {
					t.Fatalf("runs %+v, want two attempts", runs)
				}
				if waited := runs[1].Started.Sub(runs[0].Started); waited < tt.wait || waited > tt.wait+2*time.Second {
					t.Errorf("ran again after %v, want %v", waited, tt.wait)
				}
				if n := c.Status().Counts; n.Requeued != 1 || n.Retried != 1 || n.Lost != 0 {
					t.Errorf("counts %+v, want one retry, by requeue", n)
				}
			})
		})
	}
}

// TestCopyIsWhatWasSent: a copy has the type labels, binary values, trace header and fair queue's
// group of the original. The handler gets the same message: no history among its attributes, and
// the origin's id and times.
func TestCopyIsWhatWasSent(t *testing.T) {
	for name, client := range map[string]func(*reprisetest.Queue) reprise.Client{
		"SDK":    func(q *reprisetest.Queue) reprise.Client { return q.Client() },
		"direct": func(q *reprisetest.Queue) reprise.Client { return q.Direct() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(1)
				var seen []reprise.Message
				q.ConsumeWith(client(q), reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					seen = append(seen, *m)
					return kit.ErrUnavailable
				}), reprise.Config{Retry: kit.EveryMinute(3)})
				attributes := []sqsserver.MessageAttribute{
					{Name: "digest", DataType: "Binary.sha", BinaryValue: []byte{0, 255, 7}},
					{Name: "n", DataType: "Number.int", StringValue: "7"},
					{Name: "tenant", DataType: "String", StringValue: "acme"},
				}
				trace := "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
				id := q.SendMessage(sqsserver.SendMessageEntry{
					MessageBody:             "Zażółć \t\r\n 💥",
					MessageAttributes:       attributes,
					MessageSystemAttributes: []sqsserver.MessageAttribute{{Name: "AWSTraceHeader", DataType: "String", StringValue: trace}},
					MessageGroupId:          "acme",
				})
				q.WaitEmpty(time.Hour)
				if len(seen) != 3 {
					t.Fatalf("%d runs, want 3", len(seen))
				}
				for i, m := range seen {
					same := m.OriginID == id && m.Body == seen[0].Body && m.GroupID == "acme" && m.Sent.Equal(seen[0].Sent) && m.FirstReceived.Equal(seen[0].FirstReceived)
					if !same || m.Attempt != i+1 || (m.ID == id) != (i == 0) {
						t.Errorf("run %d has %+v", i+1, m)
					}
					if diff := cmp.Diff(seen[0].Attributes, m.Attributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" || len(m.Attributes) != 3 {
						t.Errorf("run %d has other attributes (-first +now):\n%s", i+1, diff)
					}
				}
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if h := kit.HistoryOf(t, letters[0]); h != (kit.History{}) {
					t.Errorf("the dead letter carries the history %+v", h)
				}
				var plain []sqsserver.MessageAttribute
				for _, a := range letters[0].Attributes {
					if a.Name != reprise.StoryAttribute {
						plain = append(plain, a)
					}
				}
				if diff := cmp.Diff(attributes, plain); diff != "" {
					t.Errorf("attributes of the dead letter (-sent +got):\n%s", diff)
				}
				if s := kit.StoryOf(t, letters[0]); s.Origin != id || s.Attempts != 3 || s.Reason != "attempts" {
					t.Errorf("story %+v", s)
				}
			})
		})
	}
}

// TestOriginalIsKeptUntilTheCopyIsConfirmed: sends fail, entries fail, replies are lost. The
// original is deleted when a copy is confirmed and not before.
func TestOriginalIsKeptUntilTheCopyIsConfirmed(t *testing.T) {
	for _, kind := range []sqsserver.FaultKind{sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultFailEntry, sqsserver.FaultDropConnection} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(1)
				q.Fault(sqsserver.Fault{Kind: kind, Action: "SendMessageBatch"})
				watch := &kit.Spy{Client: q.Direct()}
				var j kit.Journal
				c := q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 {
						return kit.ErrUnavailable
					}
					return nil
				}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 5}})
				q.Send("order")
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if len(watch.Deletes) != 0 || len(q.Messages()) != 1 || len(watch.Sends) < 10 {
					t.Fatalf("%d deletes, %d sends, %d messages while no copy is taken", len(watch.Deletes), len(watch.Sends), len(q.Messages()))
				}
				if n := c.Status().Calls.Heartbeats; n != 0 {
					t.Errorf("%d heartbeats of a message that is hidden for an hour: they would show it early", n)
				}
				q.Fault()
				q.WaitEmpty(2 * time.Hour)
				runs := j.All()
				if len(runs) != 2 || runs[1].Attempt != 2 {
					t.Fatalf("runs %+v, want two attempts", runs)
				}
				if waited := runs[1].Started.Sub(runs[0].Started); waited < time.Hour || waited > time.Hour+2*time.Second {
					t.Errorf("ran again after %v, want 1h", waited)
				}
			})
		})
	}
}

// TestRequeueHidesWhatComesAgain: while the queue accepts no copy, the hidden original is delivered
// again. It is hidden again, until it is due.
func TestRequeueHidesWhatComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		var full atomic.Bool
		full.Store(true)
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if full.Load() {
				return nil, kit.ErrUnavailable
			}
			return watch.Client.SendMessageBatch(ctx, in)
		}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
			return kit.FailBut(m.Attempt == 2, kit.ErrUnavailable)
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None}, Via: reprise.ViaRequeue})
		id := q.Send("order")[0]
		time.Sleep(5 * time.Second)
		q.Release(id)
		time.Sleep(2 * time.Minute)
		if n := c.Status().Counts; n.Lost != 0 || n.Duplicates != 1 || watch.HideCount() != 2 {
			t.Errorf("hidden %d times, counts %+v; want it received and hidden twice, and not lost", watch.HideCount(), n)
		}
		full.Store(false)
		q.WaitEmpty(20 * time.Minute)
		runs := j.All()
		if len(runs) != 2 || runs[1].Started.Sub(runs[0].Started) < 10*time.Minute {
			t.Errorf("runs %+v, want two, ten minutes apart", runs)
		}
	})
}

// TestRequeueIsFinishedByAStop: a stop finishes a requeue within its budget, because it is a
// settlement.
func TestRequeueIsFinishedByAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(1)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch", Limit: 4})
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }),
			reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 5}})
		q.Send("order")
		time.Sleep(300 * time.Millisecond)
		report := c.Stop()
		if c.Err() != nil || report.Counts.Requeued != 1 {
			t.Errorf("%v, %v: want the requeue finished", c.Err(), report)
		}
		messages := q.Messages()
		if len(messages) != 1 || kit.HistoryOf(t, messages[0]).Attempt != 1 {
			t.Errorf("left %+v, want the copy with one attempt made", messages)
		}
	})
}

// TestDeleteThatFailsAfterTheCopy: the original is received again by the process that has sent the
// copy. It is deleted without being run.
func TestDeleteThatFailsAfterTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch"})
		var j kit.Journal
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Via: reprise.ViaRequeue, Retry: kit.EveryMinute(5)})
		q.Send("order")
		time.Sleep(90 * time.Second)
		if n := len(q.Messages()); n != 3 {
			t.Errorf("%d messages, want the original and two copies", n)
		}
		q.Fault()
		q.WaitEmpty(time.Hour)
		if n := c.Status().Counts; n.Received != 3 || n.Requeued != 2 || n.Deleted != 1 {
			t.Errorf("counts %+v, want each original hidden until it is deleted, so that it does not come beside its copy", n)
		}
		if runs := j.All(); len(runs) != 3 || runs[2].Attempt != 3 {
			t.Errorf("runs %+v, want three attempts", runs)
		}
	})
}

// TestCrashBetweenCopyAndDelete: a crash leaves both the copy and the original. The message is not
// lost, and neither of them runs before it is due.
func TestCrashBetweenCopyAndDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(100)
		policy := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 5}
		var j kit.Journal
		handler := j.Handler(func(context.Context, *reprise.Message) error {
			if len(j.All()) == 1 {
				return kit.ErrUnavailable
			}
			return nil
		})
		watch := &kit.Spy{Client: q.Direct()}
		var crash func()
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			out, err := watch.Client.SendMessageBatch(ctx, in)
			crash()
			return out, err
		}
		first := q.ConsumeWith(watch, handler, reprise.Config{Via: reprise.ViaRequeue, Retry: policy})
		crash = first.Crash
		q.Send("order")
		time.Sleep(time.Minute)
		if n := len(q.Messages()); n != 2 {
			t.Fatalf("%d messages, want the original and its copy", n)
		}
		q.Consume(handler, reprise.Config{Retry: policy})
		q.WaitEmpty(3 * time.Hour)
		runs := j.All()
		if len(runs) != 3 {
			t.Fatalf("%d runs, want the first and one of each", len(runs))
		}
		for _, r := range runs[1:] {
			if waited := r.Started.Sub(runs[0].Started); waited < time.Hour || r.Attempt != 2 {
				t.Errorf("attempt %d after %v, want the second after 1h", r.Attempt, waited)
			}
		}
	})
}
