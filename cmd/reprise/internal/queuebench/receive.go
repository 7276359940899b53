package queuebench

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// longPoll is SQS's longest wait, in seconds: an idle receiver makes the fewest requests.
	longPoll = 20
	// lease is the visibility timeout of what is received, in seconds: far longer than a delete
	// takes, and short enough that messages of others are soon back.
	lease = 30
	// failedReceive is the wait after a receive that failed.
	failedReceive = 500 * time.Millisecond
)

// receive receives and deletes messages until ctx ends.
func (r *run) receive(ctx, hard context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		out, err := r.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &r.QueueURL, MaxNumberOfMessages: batchSize, WaitTimeSeconds: longPoll, VisibilityTimeout: lease,
		})
		if err != nil {
			if ctx.Err() == nil {
				r.receiveFailed(err)
				wait(ctx, failedReceive)
			}
			continue
		}
		if mine := r.arrived(out.Messages, time.Since(began)); len(mine) > 0 {
			r.remove(hard, mine)
		}
	}
}

// arrival is a message of the bench that was received.
type arrival struct {
	number int
	handle *string
}

// arrived counts what a receive has brought, and returns what is to be deleted. Messages of others
// are left alone: they come back at the end of their visibility timeout.
func (r *run) arrived(messages []types.Message, took time.Duration) (mine []arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Receive++
	bytes := 0
	defer func() { r.calls.Billed += billed(bytes) }()
	if len(messages) == 0 {
		r.calls.Empty++
		return nil
	}
	r.receiveTook.Add(took)
	for _, m := range messages {
		if m.Body == nil || m.ReceiptHandle == nil {
			continue
		}
		bytes += len(*m.Body)
		b, ok := r.readBody(*m.Body)
		if !ok || b.Number >= len(r.messages) {
			r.counts.Foreign++
			continue
		}
		mine = append(mine, arrival{b.Number, m.ReceiptHandle})
		r.moved = time.Now()
		if r.messages[b.Number]&received != 0 {
			r.counts.Twice++
			continue
		}
		r.first(b)
	}
	return mine
}

// first counts the first receive of a message.
func (r *run) first(b body) {
	was := r.messages[b.Number]
	r.messages[b.Number] |= received
	r.counts.Received++
	r.journeys.Add(time.Since(r.began) - time.Duration(b.Sent))
	if was&refused != 0 { // though SQS has said that it did not take it
		r.open++
	} else {
		r.makeRoom()
	}
	if r.fifo {
		if b.Number < r.latest[b.Group] {
			r.counts.OutOfOrder++
		}
		r.latest[b.Group] = b.Number
	}
}

func (r *run) receiveFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Receive++
	r.calls.Billed++
	r.calls.Failed++
	r.failed(codeOf(err))
	if refusedByService(err) {
		r.fail(err)
	}
}

// remove deletes messages. Those that SQS does not delete are received again.
func (r *run) remove(ctx context.Context, mine []arrival) {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(mine))
	for i, a := range mine {
		id := strconv.Itoa(i)
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: a.handle}
	}
	began := time.Now()
	out, err := r.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.QueueURL, Entries: entries})
	took := time.Since(began)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Delete++
	r.calls.Billed++
	if err != nil {
		r.calls.Failed++
		r.failed(codeOf(err))
		if refusedByService(err) {
			r.fail(err)
		}
		return
	}
	r.deleteTook.Add(took)
	for _, e := range out.Failed {
		r.failed(*e.Code)
	}
	for _, e := range out.Successful {
		i, ok := entryOf(e.Id, len(mine))
		if !ok || r.messages[mine[i].number]&deleted != 0 {
			continue
		}
		r.messages[mine[i].number] |= deleted
		r.counts.Deleted++
		r.open--
		r.doneFor = time.Since(r.began)
		r.moved = time.Now()
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
