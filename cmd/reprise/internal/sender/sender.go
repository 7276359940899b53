// Package sender sends many messages to a queue in few requests.
package sender

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/retry"
)

// Message is one message to send.
type Message struct {
	Body       string
	Attributes map[string]string // of type String
	// Group is the message group, which FIFO queues require.
	Group string
	// Delay hides the message at first, for whole seconds up to 15 min. Default: the
	// queue's own delay.
	Delay time.Duration
	// Source says where the message came from, such as "line 7", for errors.
	Source string
}

// Client is the part of *sqs.Client that a Sender calls.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Sender sends to one queue, in the order of the messages.
type Sender struct {
	Client   Client
	QueueURL string
	// FIFO gives every message a deduplication id of its own, so that a request which
	// is repeated after a lost reply sends nothing twice.
	FIFO bool
	// Retry says how long to wait before what SQS failed to take is sent again, and
	// how often. Default: 6 attempts, exponential from 200 ms, full jitter.
	Retry retry.Policy
}

// Report says what became of the messages.
type Report struct {
	// Sent is how many SQS took, Requests how many requests that needed.
	Sent, Requests int
	// Refused are the messages that SQS did not take.
	Refused []Refusal
}

// Refusal is a message that was not sent.
type Refusal struct {
	Source string
	Err    error
}

// The limits of one SendMessageBatch. Sizes leave room for attributes, which
// count too.
const (
	maxEntries    = 10
	maxBatchBytes = 1 << 20
)

// defaultRetry bridges a throttle or a restart of the server, not an outage:
// somebody is waiting in front of the terminal.
var defaultRetry = retry.Policy{Backoff: retry.Exponential{Base: 200 * time.Millisecond, Max: 5 * time.Second}, MaxAttempts: 6}

// Send sends messages until there are no more. It goes on past those that SQS
// refuses, which the Report names. The error is that of the sequence, or of a
// request that failed as a whole and ends the sending.
func (s *Sender) Send(ctx context.Context, messages iter.Seq2[Message, error]) (Report, error) {
	var report Report
	var batch []Message
	size := 0
	flush := func() error {
		err := s.sendBatch(ctx, batch, &report)
		batch, size = batch[:0], 0
		return err
	}
	for m, err := range messages {
		if err != nil {
			return report, errors.Join(err, flush())
		}
		if n := weight(m); len(batch) == maxEntries || size+n > maxBatchBytes && len(batch) > 0 {
			if err := flush(); err != nil {
				return report, err
			}
		}
		batch = append(batch, m)
		size += weight(m)
	}
	return report, flush()
}

// weight is what m counts against the size of a batch.
func weight(m Message) int {
	n := len(m.Body)
	for name, value := range m.Attributes {
		n += len(name) + len("String") + len(value)
	}
	return n
}

// sendBatch sends up to ten messages, and those of them again that the service
// failed to take.
func (s *Sender) sendBatch(ctx context.Context, batch []Message, report *Report) error {
	policy := s.Retry
	if policy.Backoff == nil {
		policy = defaultRetry
	}
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, m := range batch {
		entries[i] = s.entry(i, m)
	}
	for attempt := 1; len(entries) > 0; attempt++ {
		report.Requests++
		out, err := s.request(ctx, entries)
		if err != nil {
			return fmt.Errorf("sending: %w", err)
		}
		report.Sent += len(out.Successful)
		entries = s.sortFailures(entries, batch, out, attempt < policy.MaxAttempts, report)
		if len(entries) == 0 {
			return nil
		}
		select {
		case <-time.After(policy.Wait(*entries[0].Id, attempt)):
		case <-ctx.Done():
			return fmt.Errorf("sending: %w", context.Cause(ctx))
		}
	}
	return nil
}

// request sends entries. The SDK checks what a reply says of them, and panics at a reply
// about others.
func (s *Sender) request(ctx context.Context, entries []types.SendMessageBatchRequestEntry) (out *sqs.SendMessageBatchOutput, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the reply cannot be understood: %v", v)
		}
	}()
	return s.Client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.QueueURL, Entries: entries})
}

// sortFailures reports the entries that are given up, and returns those to send
// again, in their order.
func (s *Sender) sortFailures(entries []types.SendMessageBatchRequestEntry, batch []Message, out *sqs.SendMessageBatchOutput, again bool, report *Report) []types.SendMessageBatchRequestEntry {
	failures := make(map[string]types.BatchResultErrorEntry, len(out.Failed))
	for _, e := range entries { // until the reply says otherwise
		failures[*e.Id] = types.BatchResultErrorEntry{Code: aws.String("Unanswered"), Message: aws.String("the reply does not mention this message, which may have been sent")}
	}
	for _, sent := range out.Successful {
		delete(failures, aws.ToString(sent.Id))
	}
	for _, f := range out.Failed {
		failures[aws.ToString(f.Id)] = f
	}
	var left []types.SendMessageBatchRequestEntry
	for _, e := range entries {
		f, refused := failures[*e.Id]
		switch {
		case !refused:
		case again && !f.SenderFault:
			left = append(left, e)
		default:
			i, _ := strconv.Atoi(*e.Id) // ours
			report.Refused = append(report.Refused, Refusal{
				Source: batch[i].Source,
				Err:    fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message)),
			})
		}
	}
	return left
}

// entry is m as the i-th of a batch.
func (s *Sender) entry(i int, m Message) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{
		Id:           aws.String(strconv.Itoa(i)),
		MessageBody:  aws.String(m.Body),
		DelaySeconds: int32(m.Delay / time.Second),
	}
	if m.Group != "" {
		e.MessageGroupId = aws.String(m.Group)
	}
	if s.FIFO {
		var id [16]byte
		rand.Read(id[:])
		e.MessageDeduplicationId = aws.String(hex.EncodeToString(id[:]))
	}
	for name, value := range m.Attributes {
		if e.MessageAttributes == nil {
			e.MessageAttributes = make(map[string]types.MessageAttributeValue, len(m.Attributes))
		}
		e.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	return e
}
