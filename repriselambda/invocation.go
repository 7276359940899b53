package repriselambda

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// invocation is the client of the consumer of one invocation. It receives the event's records, once
// and all together, so that the messages of a group arrive together; and it deletes a message by
// remembering not to name it in the reply. The receipt handles that the consumer sees are the
// positions of the records.
type invocation struct {
	reprise.Client
	queue *source
	event Event
	url   string             // of the queue
	ended <-chan struct{}    // closed: nothing is received any more
	stop  context.CancelFunc // ends it
	began time.Time

	mu       sync.Mutex
	received bool
	open     map[string]bool      // messages without a decision, by id
	behind   map[string]bool      // those of them that only wait to be given back with their group
	running  int                  // calls of the handler
	refused  bool                 // SQS has not accepted a request about a message
	deleted  map[string]bool      // messages by id
	due      map[string]time.Time // when failed messages come again, by id
	giveUp   *time.Timer          // ends the invocation if SQS takes too long with what is left
}

func newInvocation(ctx context.Context, stop context.CancelFunc, client reprise.Client, queue *source, url string, event Event) *invocation {
	in := &invocation{
		Client:  client,
		queue:   queue,
		event:   event,
		url:     url,
		ended:   ctx.Done(),
		stop:    stop,
		began:   time.Now(),
		open:    make(map[string]bool, len(event.Records)),
		behind:  make(map[string]bool),
		deleted: make(map[string]bool, len(event.Records)),
		due:     make(map[string]time.Time),
	}
	for i := range event.Records {
		in.open[event.Records[i].MessageID] = true
	}
	return in
}

// ReceiveMessage returns the records of the event, and waits after that.
func (in *invocation) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	in.mu.Lock()
	again := in.received
	in.received = true
	in.mu.Unlock()
	if again {
		select {
		case <-in.ended:
		case <-ctx.Done():
		}
		return &sqs.ReceiveMessageOutput{}, nil
	}
	messages := make([]types.Message, len(in.event.Records))
	positions := positionsOf(len(messages))
	for i := range messages {
		messages[i] = in.event.Records[i].message()
		messages[i].ReceiptHandle = &positions[i]
	}
	return &sqs.ReceiveMessageOutput{Messages: messages}, nil
}

// positionsOf returns the numbers below n as text. They share one string.
func positionsOf(n int) []string {
	var text []byte
	ends := make([]int, n)
	for i := range n {
		text = strconv.AppendInt(text, int64(i), 10)
		ends[i] = len(text)
	}
	all, start := string(text), 0
	positions := make([]string, n)
	for i, end := range ends {
		positions[i], start = all[start:end], end
	}
	return positions
}

// DeleteMessageBatch leaves the messages to Lambda.
func (in *invocation) DeleteMessageBatch(_ context.Context, batch *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := &sqs.DeleteMessageBatchOutput{Successful: make([]types.DeleteMessageBatchResultEntry, len(batch.Entries))}
	for i, entry := range batch.Entries {
		in.deleted[in.record(entry.ReceiptHandle).MessageID] = true
		out.Successful[i].Id = entry.Id
	}
	return out, nil
}

// ChangeMessageVisibilityBatch hides messages, but none beyond the 12 hours that SQS permits after
// the receive, which Lambda made.
func (in *invocation) ChangeMessageVisibilityBatch(ctx context.Context, batch *sqs.ChangeMessageVisibilityBatchInput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	now := time.Now()
	capped := *batch
	capped.Entries = slices.Clone(batch.Entries)
	for i := range capped.Entries {
		e := &capped.Entries[i]
		r := in.record(e.ReceiptHandle)
		longest, _ := retry.Visibility(in.receivedBy(r), now, now.Add(retry.MaxVisibility))
		e.ReceiptHandle = &r.ReceiptHandle
		e.VisibilityTimeout = min(e.VisibilityTimeout, max(longest, 1))
	}
	out, err := in.Client.ChangeMessageVisibilityBatch(ctx, &capped, options...)
	if err == nil && slices.ContainsFunc(out.Failed, tooLong) {
		out, err = in.hideLess(ctx, &capped, out, options...)
	}
	in.answered(err == nil && len(out.Failed) == 0)
	return out, err
}

// SendMessageBatch sends dead letters, or copies.
func (in *invocation) SendMessageBatch(ctx context.Context, batch *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := in.Client.SendMessageBatch(ctx, batch, options...)
	in.answered(err == nil && len(out.Failed) == 0)
	return out, err
}

// tooLong reports whether SQS may have refused an entry because of its 12 hours.
func tooLong(f types.BatchResultErrorEntry) bool {
	return f.SenderFault && aws.ToString(f.Code) == "InvalidParameterValue"
}

// hideLess asks once more for the messages that SQS has not hidden for as long as batch says, since
// Lambda had received them earlier than receivedBy assumes: while the function is throttled, it keeps a
// batch for up to the queue's visibility timeout.
func (in *invocation) hideLess(ctx context.Context, batch *sqs.ChangeMessageVisibilityBatchInput, out *sqs.ChangeMessageVisibilityBatchOutput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	less := *batch
	less.Entries = nil
	// A longer timeout would leave less, and has most often not passed.
	longest := int32((retry.MaxVisibility - min(in.queue.visibility(in.url), retry.MaxVisibility/2)) / time.Second)
	refused := slices.Clone(out.Failed)
	for _, e := range batch.Entries {
		if i := slices.IndexFunc(refused, func(f types.BatchResultErrorEntry) bool { return tooLong(f) && aws.ToString(f.Id) == *e.Id }); i >= 0 && e.VisibilityTimeout > longest {
			e.VisibilityTimeout = longest
			less.Entries = append(less.Entries, e)
			refused = slices.Delete(refused, i, i+1)
		}
	}
	if len(less.Entries) == 0 {
		return out, nil
	}
	// If this fails, the first answer stands: it is about all of them.
	if second, err := in.Client.ChangeMessageVisibilityBatch(ctx, &less, options...); err == nil {
		both := *out
		both.Successful = slices.Concat(out.Successful, second.Successful)
		both.Failed = append(refused, second.Failed...)
		return &both, nil
	}
	return out, nil
}

// GetQueueAttributes asks SQS about every ten minutes in the life of the process.
func (in *invocation) GetQueueAttributes(ctx context.Context, query *sqs.GetQueueAttributesInput, options ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return in.queue.attributes(ctx, in.Client, query, options...)
}

// maxBatching is the longest time for which Lambda gathers a batch, MaximumBatchingWindowInSeconds,
// plus the time to invoke the function.
const maxBatching = 300*time.Second + 20*time.Second

// receivedBy is the earliest instant at which Lambda can have received the record.
// SQS reports only when it was first received; for later receives only the batching window is
// known.
func (in *invocation) receivedBy(r *Record) time.Time {
	earliest := in.began.Add(-maxBatching)
	ms, err := strconv.ParseInt(r.Attributes["ApproximateFirstReceiveTimestamp"], 10, 64)
	if err != nil {
		return earliest
	}
	first := time.UnixMilli(ms)
	switch {
	case first.After(in.began):
		return in.began
	case r.Attributes["ApproximateReceiveCount"] == "1" || first.After(earliest):
		return first
	}
	return earliest
}

// record returns the record at the position that ReceiveMessage gave out.
func (in *invocation) record(position *string) *Record {
	i, err := strconv.Atoi(*position)
	if err != nil {
		panic("repriselambda: the consumer made up the receipt handle " + *position)
	}
	return &in.event.Records[i]
}

// handler is h, whose calls in counts; nil does not.
func (in *invocation) handler(h reprise.Handler) reprise.Handler {
	if in == nil {
		return h
	}
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		in.runs(1)
		defer in.runs(-1)
		return h.Handle(ctx, m)
	})
}

// batchHandler is handler for handlers of batches.
func (in *invocation) batchHandler(h reprise.BatchHandler) reprise.BatchHandler {
	if in == nil {
		return h
	}
	return reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		in.runs(1)
		defer in.runs(-1)
		return h.HandleBatch(ctx, ms)
	})
}

// runs notes that so many more calls of the handler are under way.
func (in *invocation) runs(more int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.running += more
	in.look()
}

// answered notes whether SQS has accepted a request about messages.
func (in *invocation) answered(accepted bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.refused = in.refused || !accepted
	in.look()
}

// attempted notes the end of an attempt. On a FIFO queue a failure also decides about the rest of
// the group: it does not run.
func (in *invocation) attempted(a reprise.Attempt) {
	if a.Outcome == reprise.OutcomeHold {
		return // behind a failure in its batch: the failed message decides
	}
	if !a.Due.IsZero() {
		in.mu.Lock()
		in.due[a.Message.ID] = a.Due
		in.mu.Unlock()
	}
	if a.Outcome != reprise.OutcomeDelete && a.Outcome != reprise.OutcomeDeadLetter && in.fifo() {
		in.mu.Lock()
		for i := range in.event.Records {
			if r := &in.event.Records[i]; r.Attributes["MessageGroupId"] == a.Message.GroupID && in.open[r.MessageID] {
				in.behind[r.MessageID] = true
			}
		}
		in.mu.Unlock()
	}
	in.over(a.Message.ID)
}

// over notes that the decision about a message has been made.
func (in *invocation) over(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.open, id)
	delete(in.behind, id)
	in.look()
}

// look ends the invocation after the last decision: settlements are then sent at once, and if SQS
// does not accept them in the remaining time, they are dropped. What SQS does not accept for
// messages that no handler had, or that only wait for their group, is tried for maxSettleTime when no
// handler runs: it is no reason to pay for the rest of the function's time. The caller holds in.mu.
func (in *invocation) look() {
	waits := len(in.open) == len(in.behind) || in.refused && in.running == 0
	switch {
	case len(in.open) == 0:
		in.stop()
	case waits && in.giveUp == nil:
		in.giveUp = time.AfterFunc(maxSettleTime, in.stop)
	case !waits && in.giveUp != nil:
		in.giveUp.Stop()
		in.giveUp = nil
	}
}

// hideTime is the time that may be spent on messages whose settlement has failed.
const hideTime = time.Second

// hideUnsettled hides messages for which no copy could be sent until they are due: the
// queue's own visibility timeout may end earlier.
func (in *invocation) hideUnsettled(ctx context.Context, ids []string) {
	limit := hideTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	now := time.Now()
	var entries []types.ChangeMessageVisibilityBatchRequestEntry
	in.mu.Lock()
	for i := range in.event.Records {
		r := &in.event.Records[i]
		due, failed := in.due[r.MessageID]
		if !failed || !slices.Contains(ids, r.MessageID) {
			continue
		}
		if seconds, _ := retry.Visibility(in.receivedBy(r), now, due); seconds > 0 {
			position := strconv.Itoa(i)
			entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: &position, ReceiptHandle: &position, VisibilityTimeout: seconds})
		}
	}
	in.mu.Unlock()
	for batch := range slices.Chunk(entries, 10) {
		// If that fails too, the queue's visibility timeout decides.
		_, _ = in.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &in.url, Entries: batch})
	}
}

// fifo reports whether the messages of a group are handled in order. The records are of one queue.
func (in *invocation) fifo() bool {
	return strings.HasSuffix(in.event.Records[0].EventSourceARN, ".fifo")
}

// succeeded returns, when the consumer has ended, the ids of the messages that
// Lambda is to delete.
func (in *invocation) succeeded() map[string]bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.giveUp != nil {
		in.giveUp.Stop()
	}
	return in.deleted
}
