package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	// deleteFor is how long a batch of deletes may take, with all attempts.
	deleteFor = time.Minute
	// releasers is how many requests give messages back at once.
	releasers = 8
	// maxFailed is how many of them in a row may fail before the others wait for the next round: while SQS refuses
	// all, the thousands of requests of a large queue would take hours.
	maxFailed = 3 * releasers
)

// settleRetry is for deletes and releases that SQS failed to carry out.
var settleRetry = retry.Policy{Backoff: retry.Exponential{Base: 200 * time.Millisecond, Max: 5 * time.Second}, MaxAttempts: 5}

// doomed is a message that is to be deleted.
type doomed struct{ id, handle string }

// delete deletes messages. Those whose delete SQS does not confirm stay marked in the ledger.
func (r *passRun) delete(ctx context.Context, messages []doomed) {
	for some := range slices.Chunk(messages, batchSize) {
		r.deleteBatch(ctx, some)
	}
}

func (r *passRun) deleteBatch(ctx context.Context, messages []doomed) {
	ctx, cancel := context.WithTimeout(ctx, deleteFor)
	defer cancel()
	r.mu.Lock()
	for _, m := range messages {
		r.ledger.set(m.id, undone)
	}
	r.mu.Unlock()
	for attempt := 1; ctx.Err() == nil; attempt++ {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
		for i := range messages {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &messages[i].handle}
		}
		out, err := r.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.QueueURL, Entries: entries})
		if err == nil {
			messages = r.deleted(messages, out.Successful)
		}
		if len(messages) == 0 || attempt == settleRetry.MaxAttempts {
			return
		}
		select {
		case <-time.After(settleRetry.Wait(messages[0].id, attempt)):
		case <-ctx.Done():
		}
	}
}

// deleted notes which messages SQS has deleted, and returns the others. A message that was received twice has two
// receipt handles, of which SQS acknowledges the older without deleting it: both have to be confirmed.
func (r *passRun) deleted(messages []doomed, confirmed []types.DeleteMessageBatchResultEntry) (rest []doomed) {
	gone := make(map[string]bool, len(confirmed))
	for _, e := range confirmed {
		gone[aws.ToString(e.Id)] = true
	}
	left := make(map[string]bool)
	for i, m := range messages {
		if !gone[strconv.Itoa(i)] {
			rest, left[m.id] = append(rest, m), true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		if !left[m.id] {
			r.ledger.unset(m.id, undone)
		}
	}
	return rest
}

// release gives the held messages back, so that others can receive them: in rounds, each for what the one before
// has left. Those whose lease has ended are visible, or another's. After the end of ctx it does nothing.
func (r *passRun) release(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the pass returns its cause
	}
	handles := make([]string, 0, len(r.held))
	now := time.Now()
	for _, m := range r.held {
		if m.until.After(now) {
			handles = append(handles, m.handle)
		}
	}
	for attempt := 1; len(handles) > 0; attempt++ {
		var err error
		if handles, err = r.showAll(ctx, handles); len(handles) == 0 {
			break
		}
		if attempt == settleRetry.MaxAttempts || ctx.Err() != nil {
			return fmt.Errorf("%s that were looked at stay hidden for up to %v: %w", plural.Of(len(handles), "message"), r.Lease, err)
		}
		select {
		case <-time.After(settleRetry.Wait(r.QueueURL, attempt)):
		case <-ctx.Done():
		}
	}
	return nil
}

// showAll makes messages visible, and returns those that it could not, with one of the reasons.
func (r *passRun) showAll(ctx context.Context, handles []string) (left []string, err error) {
	var (
		chunks  = make(chan []string)
		workers sync.WaitGroup
		failed  atomic.Int32 // requests in a row
		mu      sync.Mutex   // of left and err
	)
	for range releasers {
		workers.Go(func() {
			for some := range chunks {
				rest, problem := some, error(nil)
				if failed.Load() < maxFailed {
					if rest, problem = r.show(ctx, some); len(rest) == len(some) {
						failed.Add(1)
					} else {
						failed.Store(0)
					}
				}
				mu.Lock()
				left, err = append(left, rest...), cmp.Or(err, problem)
				mu.Unlock()
			}
		})
	}
	for some := range slices.Chunk(handles, batchSize) {
		chunks <- some
	}
	close(chunks)
	workers.Wait()
	return left, err
}

// show makes up to ten messages visible, and returns those that are still hidden, with the reason of the last.
func (r *passRun) show(ctx context.Context, handles []string) (left []string, err error) {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(handles))
	for i := range handles {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &handles[i]}
	}
	out, err := r.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &r.QueueURL, Entries: entries})
	if err != nil {
		return handles, err
	}
	for _, f := range out.Failed {
		i, notOurs := strconv.Atoi(aws.ToString(f.Id))
		if f.SenderFault || notOurs != nil || i < 0 || i >= len(handles) { // it is gone, or another receiver has it
			continue
		}
		left, err = append(left, handles[i]), fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
	}
	return left, err
}
