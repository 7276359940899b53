package operate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
	"github.com/reprise-sqs/reprise/retry"
)

// Client is the part of *sqs.Client that a pass calls.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// Pass looks at the messages of a queue, each once. To SQS a look is a receive: it raises the
// receive count, and hides the message until the end of the pass, when all messages that it did not
// delete are given back at once.
type Pass struct {
	Client   Client
	QueueURL string
	Keys     []reprise.SigningKey // for the stories of dead letters
	// Most is how many messages it looks at, at most; 0: no limit.
	Most int
	// Polls is how many receives in a row must bring nothing that was in the queue at the start for
	// the pass to end.
	Polls int
	// Lease is how long SQS hides a message from others if the pass is killed. A pass looks for half
	// as long at most, so that it sees no message twice.
	Lease time.Duration
}

// ErrEnough is returned by a visit to end the pass.
var ErrEnough = errors.New("enough")

// Verdict is what to do with a message.
type Verdict uint8

const (
	// Keep gives the message back at the end of the pass.
	Keep Verdict = iota
	// Delete deletes it.
	Delete
)

// Outcome is the result of a pass.
type Outcome struct {
	Looked, Deleted int
	// NotDeleted are messages whose delete SQS did not confirm. They may be there still.
	NotDeleted int
	// Partial is why the pass may not have looked at all messages; empty: it has, as far as SQS
	// tells.
	Partial string
}

const (
	pollSeconds = 1
	batchSize   = 10
	// releasers is how many requests give messages back at once.
	releasers = 8
	// maxHeld leaves room for consumers in SQS's quota of messages in flight.
	maxHeld = 100_000
)

// deleteRetry is for a delete that SQS failed to carry out.
var deleteRetry = retry.Policy{Backoff: retry.Exponential{Base: 200 * time.Millisecond, Max: 5 * time.Second}, MaxAttempts: 5}

// dateUnit is the resolution of SQS's time, the Date of its answers.
const dateUnit = time.Second

// Run hands the messages to visit, batch by batch, until the queue seems to have none that were there
// at the start, enough were seen, visit returns an error, or stop is closed. Messages that are sent
// meanwhile are visited too, but do not prolong the pass. After ErrEnough Run returns nil. now is SQS's time, as
// far as it is known. Run gives back the messages that it holds also after a failure, but not after
// the end of ctx: then they stay hidden until the end of their lease.
func (p Pass) Run(ctx context.Context, stop <-chan struct{}, visit func(batch []Message, now time.Time) ([]Verdict, error)) (o Outcome, err error) {
	held := make(map[string]string) // receipt handles by message id
	defer func() { err = errors.Join(err, p.release(ctx, held)) }()
	began := time.Now()
	var start time.Time // SQS's, rounded up
	for empty := 0; empty < max(p.Polls, 1); {
		room := batchSize
		if p.Most > 0 {
			room = min(room, p.Most-o.Looked)
		}
		switch {
		case room == 0:
			o.Partial = fmt.Sprintf("looked at %d messages, as many as asked for", o.Looked)
			return o, nil
		case len(held) >= maxHeld:
			o.Partial = fmt.Sprintf("looked at %d messages: more in flight would use up the queue's quota", o.Looked)
			return o, nil
		case interrupt.Requested(stop):
			o.Partial = "stopped"
			return o, nil
		}
		if time.Since(began) > p.Lease/2 {
			o.Partial = fmt.Sprintf("looked at %d messages in %v: those seen first would soon be visible again", o.Looked, p.Lease/2)
			return o, nil
		}
		batch, now, err := p.receive(ctx, room, held)
		if err != nil {
			return o, err
		}
		if start.IsZero() {
			start = now.Add(dateUnit)
		}
		if empty++; slices.ContainsFunc(batch, func(m Message) bool { return !m.Sent.After(start) }) {
			empty = 0
		}
		if len(batch) == 0 {
			continue
		}
		o.Looked += len(batch)
		verdicts, err := visit(batch, now)
		if errors.Is(err, ErrEnough) {
			return o, nil
		}
		if err != nil {
			return o, err
		}
		var doomed []Message
		for i, m := range batch {
			if i < len(verdicts) && verdicts[i] == Delete {
				doomed = append(doomed, m)
				delete(held, m.ID)
			}
		}
		left := p.delete(ctx, doomed)
		o.Deleted += len(doomed) - left
		o.NotDeleted += left
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
	}
	return o, nil
}

// receive returns messages that are not yet held, and SQS's time.
func (p Pass) receive(ctx context.Context, room int, held map[string]string) (batch []Message, now time.Time, err error) {
	out, err := p.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &p.QueueURL, MaxNumberOfMessages: int32(room), WaitTimeSeconds: pollSeconds, VisibilityTimeout: int32(p.Lease / time.Second),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, now, err
	}
	if now, _ = awsmiddleware.GetServerTime(out.ResultMetadata); now.IsZero() {
		now = time.Now()
	}
	for _, m := range out.Messages {
		id := aws.ToString(m.MessageId)
		if _, again := held[id]; !again {
			batch = append(batch, Read(p.QueueURL, m, p.Keys))
		}
		held[id] = aws.ToString(m.ReceiptHandle)
	}
	return batch, now, nil
}

// delete deletes messages, and returns how many SQS did not confirm.
func (p Pass) delete(ctx context.Context, messages []Message) (left int) {
	for attempt := 1; len(messages) > 0; attempt++ {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
		for i, m := range messages {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.handle}
		}
		out, err := p.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &p.QueueURL, Entries: entries})
		if err == nil {
			messages = unconfirmed(messages, out.Successful)
		}
		if attempt == deleteRetry.MaxAttempts || len(messages) == 0 {
			break
		}
		select {
		case <-time.After(deleteRetry.Wait(messages[0].ID, attempt)):
		case <-ctx.Done():
			return len(messages)
		}
	}
	return len(messages)
}

func unconfirmed(messages []Message, done []types.DeleteMessageBatchResultEntry) []Message {
	gone := make(map[string]bool, len(done))
	for _, e := range done {
		gone[aws.ToString(e.Id)] = true
	}
	var rest []Message
	for i, m := range messages {
		if !gone[strconv.Itoa(i)] {
			rest = append(rest, m)
		}
	}
	return rest
}

// release gives the held messages back, so that others can receive them.
func (p Pass) release(ctx context.Context, held map[string]string) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // Run returns its cause
	}
	chunks := make(chan []string)
	var problems [releasers]error
	var workers sync.WaitGroup
	for i := range releasers {
		workers.Go(func() {
			for some := range chunks {
				if err := p.show(ctx, some); err != nil {
					problems[i] = err
				}
			}
		})
	}
	for some := range slices.Chunk(slices.Collect(maps.Values(held)), batchSize) {
		chunks <- some
	}
	close(chunks)
	workers.Wait()
	for _, err := range problems {
		if err != nil {
			return fmt.Errorf("messages that were looked at stay hidden for up to %v: %w", p.Lease, err)
		}
	}
	return nil
}

// show makes messages visible.
func (p Pass) show(ctx context.Context, handles []string) error {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(handles))
	for i := range handles {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &handles[i]}
	}
	out, err := p.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &p.QueueURL, Entries: entries})
	if err != nil {
		return err
	}
	for _, f := range out.Failed {
		if !f.SenderFault { // else it is gone, or another receiver has it
			return fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
		}
	}
	return nil
}
