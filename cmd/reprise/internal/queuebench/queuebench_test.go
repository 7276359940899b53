package queuebench_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/queuebench"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// benchOf is a bench of q that ends at once where nothing holds it up.
func benchOf(q *reprisetest.Queue) *queuebench.Bench {
	return &queuebench.Bench{
		Client: q.Client(), QueueURL: q.URL(), Messages: 200, Waiting: 50, Size: 300, Senders: 2, Receivers: 3, Groups: 5, Patience: 40 * time.Second,
	}
}

// TestBench: everything that a bench sends it also receives once and deletes, in requests of ten.
func TestBench(t *testing.T) {
	for name, attributes := range map[string]map[string]string{"standard": nil, "FIFO": {"FifoQueue": "true"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, attributes)
				report, err := benchOf(q).Run(t.Context(), nil)
				want := queuebench.Counts{Sent: 200, Received: 200, Deleted: 200}
				if err != nil || report.Counts != want || len(report.Errors) > 0 {
					t.Fatalf("%v: %+v, want %+v; errors %v", err, report.Counts, want, report.Errors)
				}
				if n := report.Calls.Send; n < 20 || n > 40 {
					t.Errorf("%d requests sent 200 messages", n)
				}
				if left := q.Messages(); len(left) > 0 {
					t.Errorf("%d messages are left", len(left))
				}
			})
		})
	}
}

// TestRate: messages are sent at the rate, and no more than the limit of messages or time allows.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		b := benchOf(q)
		b.Messages, b.For, b.Rate = 0, 20*time.Second, 5
		report, err := b.Run(t.Context(), nil)
		if err != nil || report.Counts.Sent < 98 || report.Counts.Sent > 100 || report.Counts.Left != 0 {
			t.Errorf("%v: %+v, want 100 sent in 20 s", err, report.Counts)
		}
		if rate := report.PerSecond.Sent; rate < 4.9 || rate > 5.1 {
			t.Errorf("%g a second, want 5", rate)
		}
		b.Messages, b.For = 30, 0
		if report, err = b.Run(t.Context(), nil); err != nil || report.Counts.Deleted != 30 {
			t.Errorf("%v: %+v, want 30 deleted", err, report.Counts)
		}
	})
}

// TestStop: a bench that is told to stop sends no more, and leaves nothing in the queue.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		b := benchOf(q)
		b.Messages, b.For, b.Rate = 0, time.Hour, 10
		stop := make(chan struct{})
		time.AfterFunc(10*time.Second, func() { close(stop) })
		report, err := b.Run(t.Context(), stop)
		if c := report.Counts; err != nil || c.Sent < 90 || c.Sent > 110 || c.Deleted != c.Sent || len(q.Messages()) > 0 {
			t.Errorf("%v: %+v, and %d are in the queue", err, c, len(q.Messages()))
		}
	})
}

// TestOthers: messages of others are received, counted, and left in the queue.
func TestOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("one", `{"bench":"another","number":3}`)
		report, err := benchOf(q).Run(t.Context(), nil)
		if err != nil || report.Counts.Foreign != 2 || report.Counts.Deleted != 200 || len(q.Messages()) != 2 {
			t.Errorf("%v: %+v, and %d are in the queue, want the 2 of others", err, report.Counts, len(q.Messages()))
		}
	})
}

// TestSomebodyElse: messages that another consumer takes are given up after the patience, and
// reported; the bench ends.
func TestSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		b := benchOf(q)
		b.Client, b.Receivers = &thief{Client: b.Client}, 1
		began := time.Now()
		report, err := b.Run(t.Context(), nil)
		c := report.Counts
		if err != nil || c.Left == 0 || c.Deleted+c.Left != c.Sent || time.Since(began) > 2*time.Minute {
			t.Errorf("%v after %v: %+v, want some left", err, time.Since(began), c)
		}
	})
}

// thief takes away what each of the first ten receives brings, and deletes it.
type thief struct {
	queuebench.Client
	stolen int
}

func (c *thief) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := c.Client.ReceiveMessage(ctx, in, opts...)
	if err != nil || len(out.Messages) == 0 || c.stolen == 10 {
		return out, err
	}
	c.stolen++
	for _, m := range out.Messages {
		if _, err := c.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
			QueueUrl: in.QueueUrl, Entries: []types.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: m.ReceiptHandle}},
		}); err != nil {
			return nil, err
		}
	}
	return new(sqs.ReceiveMessageOutput), nil
}

// TestFaults: entries and requests that SQS refuses or does not answer are counted; what was sent is
// deleted all the same.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "SendMessageBatch", Every: 3}, sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Every: 4})
		report, err := benchOf(q).Run(t.Context(), nil)
		c := report.Counts
		failed := 0
		for _, n := range report.Errors {
			failed += n
		}
		if err != nil || c.Refused == 0 || c.Twice == 0 || c.Sent+c.Refused != 200 || c.Deleted != c.Sent || c.Left != 0 || failed != c.Refused+c.Twice {
			t.Errorf("%v: %+v, errors %v", err, c, report.Errors)
		}
	})
}

// TestDenied: a refused send ends the sending, and names the reason.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		b := benchOf(q)
		b.Client, b.Senders = &denied{Client: b.Client, after: 5}, 1
		report, err := b.Run(t.Context(), nil)
		api, ok := errors.AsType[smithy.APIError](err)
		if !ok || api.ErrorCode() != "AccessDenied" || report.Counts.Deleted == 0 || report.Counts.Left != 0 || len(q.Messages()) > 0 {
			t.Errorf("%v: %+v", err, report.Counts)
		}
	})
}

// denied may send so many batches, and no more.
type denied struct {
	queuebench.Client
	after int
}

func (c *denied) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if c.after--; c.after < 0 {
		return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "no", Fault: smithy.FaultClient}
	}
	return c.Client.SendMessageBatch(ctx, in, opts...)
}

// TestSilentServer: when sends are not answered any more, the bench soon sends no more, ends, and says
// why and what may be left.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		b := benchOf(q)
		b.Client, b.Senders, b.Messages, b.Rate, b.For = &silent{Client: b.Client, after: 5}, 1, 0, 100, time.Hour
		began := time.Now()
		report, err := b.Run(t.Context(), nil)
		if c := report.Counts; !errors.Is(err, errSilent) || c.Sent == 0 || c.Deleted != c.Sent || c.Left == 0 || c.Left > 50 || time.Since(began) > 2*time.Minute {
			t.Errorf("%v after %v: %+v", err, time.Since(began), c)
		}
	})
}

var errSilent = errors.New("connection refused")

// silent answers so many batches, and no more.
type silent struct {
	queuebench.Client
	after int
}

func (c *silent) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if c.after--; c.after < 0 {
		return nil, errSilent
	}
	return c.Client.SendMessageBatch(ctx, in, opts...)
}

// TestBodies: a body has the size that was asked for, and names its bench.
func TestBodies(t *testing.T) {
	for _, size := range []int{queuebench.MinSize, 1000, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			b := benchOf(q)
			sizes := &sizes{Client: b.Client}
			b.Client, b.Senders, b.Size, b.Messages = sizes, 1, size, 6
			report, err := b.Run(t.Context(), nil)
			if err != nil || report.Counts.Deleted != 6 || sizes.wrong != "" {
				t.Errorf("%v: %+v; wrong: %.200s", err, report.Counts, sizes.wrong)
			}
			if want := int64(6 * ((size + 65535) / 65536) * 2); size == 1<<20 && report.Calls.Billed < want {
				t.Errorf("%d requests billed, want %d at least", report.Calls.Billed, want)
			}
		})
	}
}

// sizes looks at the bodies that are sent.
type sizes struct {
	queuebench.Client
	wrong string
}

func (c *sizes) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	for _, e := range in.Entries {
		if body := *e.MessageBody; len(body)%1000 != 0 && len(body) != queuebench.MinSize && len(body) != 1<<20 || !strings.HasPrefix(body, `{"bench":"`) {
			c.wrong = body
		}
	}
	return c.Client.SendMessageBatch(ctx, in, opts...)
}
