package reprisetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

var _ reprise.Client = (*reprisetest.Direct)(nil)

// Both clients must show the same queue in the same way, in a bubble and out of
// it.
func eachClient(t *testing.T, test func(t *testing.T, q *reprisetest.Queue, client reprise.Client)) {
	clients := map[string]func(*reprisetest.Queue) reprise.Client{
		"direct": func(q *reprisetest.Queue) reprise.Client { return q.Direct() },
		"sdk":    func(q *reprisetest.Queue) reprise.Client { return q.Client() },
	}
	for name, client := range clients {
		run := func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			test(t, q, client(q))
		}
		t.Run(name, run)
		t.Run(name+" in a bubble", func(t *testing.T) { synctest.Test(t, run) })
	}
}

func TestClientsReceiveAndDelete(t *testing.T) {
	eachClient(t, func(t *testing.T, q *reprisetest.Queue, client reprise.Client) {
		id := q.SendMessage(sqsserver.SendMessageEntry{
			MessageBody: "héllo",
			MessageAttributes: []sqsserver.MessageAttribute{
				{Name: "kind", DataType: "String", StringValue: "greeting"},
				{Name: "raw", DataType: "Binary", BinaryValue: []byte{1, 2}},
			},
		})
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10, WaitTimeSeconds: 20, VisibilityTimeout: 60,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"ApproximateReceiveCount"},
		})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("received %v, %v; want one message", out, err)
		}
		m := out.Messages[0]
		want := map[string]types.MessageAttributeValue{
			"kind": {DataType: aws.String("String"), StringValue: aws.String("greeting")},
			"raw":  {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}},
		}
		if diff := cmp.Diff(want, m.MessageAttributes, cmp.AllowUnexported(types.MessageAttributeValue{})); diff != "" {
			t.Errorf("message attributes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"ApproximateReceiveCount": "1"}, m.Attributes); diff != "" {
			t.Errorf("system attributes (-want +got):\n%s", diff)
		}
		if *m.MessageId != id || *m.Body != "héllo" {
			t.Errorf("received %s %q, want %s %q", *m.MessageId, *m.Body, id, "héllo")
		}
		if state := q.Messages()[0].State; state != sqsserver.InFlight {
			t.Errorf("the received message is %s, want in flight", state)
		}

		deleted, err := client.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{
			QueueUrl: aws.String(q.URL()),
			Entries: []types.DeleteMessageBatchRequestEntry{
				{Id: aws.String("0"), ReceiptHandle: m.ReceiptHandle},
				{Id: aws.String("1"), ReceiptHandle: aws.String("garbage")},
			},
		})
		if err != nil || len(deleted.Successful) != 1 || len(deleted.Failed) != 1 {
			t.Fatalf("deleted %v, %v; want one success and one failure", deleted, err)
		}
		if f := deleted.Failed[0]; *f.Id != "1" || *f.Code != "ReceiptHandleIsInvalid" || !f.SenderFault {
			t.Errorf("failed entry %+v, want 1, ReceiptHandleIsInvalid, the sender's fault", f)
		}
		q.WaitEmpty(time.Second)
	})
}

func TestClientsReturnModelledErrors(t *testing.T) {
	eachClient(t, func(t *testing.T, q *reprisetest.Queue, client reprise.Client) {
		_, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL() + "-not")})
		var missing *types.QueueDoesNotExist
		if !errors.As(err, &missing) || missing.ErrorCode() != "AWS.SimpleQueueService.NonExistentQueue" {
			t.Errorf("receive from a missing queue: %v, want QueueDoesNotExist", err)
		}
		_, err = client.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{
			QueueUrl: aws.String(q.URL()), Entries: []types.DeleteMessageBatchRequestEntry{},
		})
		var empty *types.EmptyBatchRequest
		if !errors.As(err, &empty) {
			t.Errorf("an empty batch: %v, want EmptyBatchRequest", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), WaitTimeSeconds: 20})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a cancelled poll: %v, want DeadlineExceeded", err)
		}
	})
}

func TestNameIsMadeOfTheTest(t *testing.T) {
	t.Run("strange ünïcode name/"+strings.Repeat("x", 100), func(t *testing.T) {
		fifo := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
		q := reprisetest.NewQueue(t, fifo)
		if !strings.HasPrefix(q.Name(), "TestNameIsMadeOfTheTest-strange") || !strings.HasSuffix(q.Name(), ".fifo") || len(q.Name()) != 80 {
			t.Errorf("queue is called %q", q.Name())
		}
		if other := q.NewQueue(fifo); !strings.HasSuffix(other.Name(), "-2.fifo") || len(other.Name()) != 80 {
			t.Errorf("second queue is called %q", other.Name())
		}
		q.Send("same", "same")
		if n := len(q.Messages()); n != 2 {
			t.Errorf("%d messages, want 2: Send must not deduplicate", n)
		}
	})
}

// TestNewQueueOnMakesAQueueOfItsOwn: tests that share a server do not get each other's queues, although names that are
// cut to SQS's length can be equal.
func TestNewQueueOnMakesAQueueOfItsOwn(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	t.Cleanup(func() { _ = server.Close() })
	seen := make(map[string]bool)
	for _, end := range []string{"first", "second"} {
		t.Run(strings.Repeat("x", 100)+end, func(t *testing.T) {
			for range 2 {
				q := reprisetest.NewQueueOn(t, server, nil)
				if seen[q.URL()] {
					t.Errorf("%s is another's queue, with %d messages", q.Name(), len(q.Messages()))
				}
				seen[q.URL()] = true
				q.Send("x")
			}
		})
	}
}

func TestNewDeadLetterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "10"})
		dead := q.NewDeadLetterQueue(1)
		id := q.Send("poison")[0]
		for range 2 {
			if _, err := q.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), WaitTimeSeconds: 20}); err != nil {
				t.Fatal(err)
			}
		}
		q.WaitEmpty(0)
		if left := dead.Messages(); len(left) != 1 || left[0].ID != id || left[0].Source != q.ARN() || left[0].Receives != 1 {
			t.Errorf("dead letters %+v, want the message with its source", left)
		}
	})
}

// failing is a test that notes how it fails.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fails runs f in a test of its own, which must fail, and returns the message.
func fails(t *testing.T, f func(tb testing.TB)) string {
	t.Helper()
	tb := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tb)
	}()
	<-done
	if tb.message == "" {
		t.Error("the test did not fail")
	}
	return tb.message
}

func TestWaitEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		message := fails(t, func(tb testing.TB) {
			q := reprisetest.NewQueue(tb, map[string]string{"VisibilityTimeout": "7200"})
			q.Send("one", "two")
			if _, err := q.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL())}); err != nil {
				t.Error(err)
			}
			q.WaitEmpty(time.Hour)
		})
		for _, want := range []string{"after 1h0m0s", "2 messages", `"one": in flight, received 1 time, visible again at 2000-01-01 02:00:00`, `"two": visible`} {
			if !strings.Contains(message, want) {
				t.Errorf("the test fails with %q, which does not contain %q", message, want)
			}
		}

		q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "60"})
		q.Send("expires")
		q.WaitEmpty(time.Minute)

		q.Send("deleted later")
		time.AfterFunc(7*time.Second, func() {
			if err := q.Server().Delete(q.ARN(), q.Messages()[0].ID); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		q.WaitEmpty(time.Hour)
		if took := time.Since(start); took != 7*time.Second+time.Nanosecond {
			t.Errorf("WaitEmpty returned after %v, want the 7s until the delete, and the nanosecond that lets others rest", took)
		}
	})
}

func TestBadInputFailsTheTest(t *testing.T) {
	tests := []struct {
		name string
		do   func(tb testing.TB)
		want string
	}{
		{"attributes", func(tb testing.TB) {
			reprisetest.NewQueue(tb, map[string]string{"VisibilityTimeout": "99999"})
		}, "Invalid value for the parameter VisibilityTimeout."},
		{"a message", func(tb testing.TB) { reprisetest.NewQueue(tb, nil).Send("") }, "parameter MessageBody"},
		{"a fault", func(tb testing.TB) { reprisetest.NewQueue(tb, nil).Fault(sqsserver.Fault{Kind: "fire"}) }, `kind "fire" is unknown`},
		{"an id", func(tb testing.TB) { reprisetest.NewQueue(tb, nil).Release("x") }, "not a UUID"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if message := fails(t, test.do); !strings.Contains(message, test.want) {
				t.Errorf("the test fails with %q, want %q in it", message, test.want)
			}
		})
	}
}

// Faults strike the traffic, not what the test itself does.
func TestFaultSparesTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle})
		q.Send("x")
		q.SetAttributes(map[string]string{"VisibilityTimeout": "60"})
		poll := &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), WaitTimeSeconds: 1}
		var throttled *types.RequestThrottled
		for name, client := range map[string]reprise.Client{"direct": q.Direct(), "sdk": q.Client()} {
			if _, err := client.ReceiveMessage(t.Context(), poll); !errors.As(err, &throttled) {
				t.Errorf("%s: a throttled receive returned %v", name, err)
			}
		}
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "ReceiveMessage", Limit: 1})
		if _, err := q.Direct().ReceiveMessage(t.Context(), poll); !errors.Is(err, sqsserver.ErrReplyLost) {
			t.Errorf("direct: a lost reply returned %v", err)
		}
		q.Release(q.Messages()[0].ID)
		if out, err := q.Client().ReceiveMessage(t.Context(), poll); err != nil || len(out.Messages) != 1 {
			t.Errorf("after the faults received %v, %v", out, err)
		}
	})
}
