package operate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPassGivesBackTheNewestHandle: a message that is received twice in a pass is given back with the second receipt
// handle. A FIFO queue refuses the first, and the message would stay hidden for the whole lease.
func TestPassGivesBackTheNewestHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("one")
		p, client, exposed := pass(q), q.Client(), false
		handles := &handles{Client: p.Client}
		p.Client = handles
		o, err := p.Run(t.Context(), never, func([]operate.Message, time.Time) ([]operate.Verdict, error) {
			if exposed {
				t.Error("the message was visited twice")
			}
			exposed = true
			url := q.URL()
			_, err := client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: &handles.last, VisibilityTimeout: 0})
			return nil, err
		})
		if err != nil || o.Looked != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
		if _, hidden := inQueue(q); handles.received != 2 || hidden != 0 || !slices.Equal(handles.released, []string{handles.last}) {
			t.Errorf("after %d receives of the message it is hidden: %d, and given back with %q; want 2 receives, visible, %q", handles.received, hidden, handles.released, handles.last)
		}
	})
}

// handles notes the receipt handles that a pass receives, and those with which it gives back.
type handles struct {
	operate.Client
	last     string
	received int
	released []string
}

func (h *handles) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	for _, entry := range in.Entries {
		h.released = append(h.released, *entry.ReceiptHandle)
	}
	return h.Client.ChangeMessageVisibilityBatch(ctx, in, options...)
}

func (h *handles) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := h.Client.ReceiveMessage(ctx, in, options...)
	if err == nil && len(out.Messages) > 0 {
		h.last = *out.Messages[0].ReceiptHandle
		h.received++
	}
	return out, err
}

// TestPassCountsByTheNewestHandle: SQS confirms a delete by the older receipt handle of a message that was received twice,
// and does nothing. Only when the newest is confirmed, too, the message counts as deleted.
func TestPassCountsByTheNewestHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("one")
		p := pass(q)
		p.Client = &doubled{Client: p.Client, t: t, url: q.URL(), queue: q.Client()}
		visits := 0
		o, err := p.Run(t.Context(), never, func(batch []operate.Message, _ time.Time) ([]operate.Verdict, error) {
			visits += len(batch)
			return []operate.Verdict{operate.Delete}, nil
		})
		if left := len(q.Messages()); err != nil || visits != 1 || o.Deleted != 0 || o.NotDeleted != 1 || left != 1 {
			t.Errorf("%+v, %v, %d visits, %d messages are left; want one that is not deleted", o, err, visits, left)
		}
	})
}

// doubled brings a message twice in one reply, and fails each delete by the second receipt handle.
type doubled struct {
	operate.Client
	t      *testing.T
	url    string
	queue  *sqs.Client
	newest string
}

func (d *doubled) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := d.Client.ReceiveMessage(ctx, in, options...)
	if err != nil || len(out.Messages) == 0 || d.newest != "" {
		return out, err
	}
	_, err = d.queue.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &d.url, ReceiptHandle: out.Messages[0].ReceiptHandle, VisibilityTimeout: 0})
	if err != nil {
		return nil, err
	}
	again, err := d.Client.ReceiveMessage(ctx, in, options...)
	if err != nil || len(again.Messages) != 1 {
		d.t.Errorf("received again: %v, %v", again, err)
		return out, err
	}
	d.newest = *again.Messages[0].ReceiptHandle
	out.Messages = append(out.Messages, again.Messages...)
	return out, nil
}

func (d *doubled) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, options ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	var older []types.DeleteMessageBatchRequestEntry
	out := &sqs.DeleteMessageBatchOutput{}
	for _, entry := range in.Entries {
		if *entry.ReceiptHandle == d.newest {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("InternalError")})
		} else {
			older = append(older, entry)
		}
	}
	if len(older) == 0 {
		return out, nil
	}
	confirmed, err := d.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: in.QueueUrl, Entries: older}, options...)
	if err != nil || len(confirmed.Successful) != len(older) {
		d.t.Errorf("the older receipt handle is not confirmed: %v, %v", confirmed, err)
		return confirmed, err
	}
	out.Successful = confirmed.Successful
	return out, nil
}

// TestPassSaysWhatStaysHidden: entries that are refused however often they are tried leave messages hidden. The
// command says so, though the requests as a whole succeeded.
func TestPassSaysWhatStaysHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for range 10 {
			q.Send("letter")
		}
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch"})
		_, err := pass(q).Run(t.Context(), never, func([]operate.Message, time.Time) ([]operate.Verdict, error) { return nil, nil })
		if _, hidden := inQueue(q); hidden != 10 || err == nil || !strings.Contains(err.Error(), "stay hidden") {
			t.Errorf("%d hidden, and the error %v; want 10, and an error that says so", hidden, err)
		}
	})
}

// TestPassGivesBackWhatItHolds: a pass that is longer than its leases does not give back a message whose lease has ended.
// Somebody else may have received it, and SQS would make it visible while that works on it.
func TestPassGivesBackWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("kept")
		p, url := pass(q), q.URL()
		p.Lease, p.LongerThanLease = 30*time.Second, true
		taken := false
		visit := func([]operate.Message, time.Time) ([]operate.Verdict, error) {
			time.Sleep(20 * time.Second) // a slow visit does not prolong the lease
			return nil, nil
		}
		p.Before = func() {
			if held, hidden := inQueue(q); len(held) != 1 || hidden != 1 || taken {
				return
			}
			time.Sleep(11 * time.Second)
			out, err := q.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 600})
			if err != nil || len(out.Messages) != 1 {
				t.Errorf("another receiver: %v, %v", out, err)
			}
			taken = true
		}
		o, err := p.Run(t.Context(), never, visit)
		if _, hidden := inQueue(q); err != nil || o.Looked != 1 || !taken || hidden != 1 {
			t.Errorf("%+v, %v, another has received it: %v, and %d are hidden; want that it keeps it", o, err, taken, hidden)
		}
	})
}
