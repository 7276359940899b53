package awstarget

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
)

// Sender is the part of a [*reprise.Sender] that the target needs.
type Sender interface {
	Send(ctx context.Context, messages ...reprise.Outgoing) ([]reprise.Sent, error)
}

// Transform returns the body that is sent for a message.
type Transform func(ctx context.Context, m *reprise.Message) (string, error)

// Queue sends each message to another queue, with its attributes, message group and trace
// header. A message is deleted from its own queue when SQS has taken it for the other: if the
// program dies in between, it is sent twice. A FIFO queue drops the second within five
// minutes, since both have the id of the message as their deduplication id.
type Queue struct {
	to        Sender
	fifo      bool
	transform Transform // nil: bodies stay as they are
}

// NewQueue returns a target that sends to a queue, which is a FIFO queue or not.
func NewQueue(to Sender, fifo bool, transform Transform) *Queue {
	return &Queue{to, fifo, transform}
}

// Handle sends m.
func (q *Queue) Handle(ctx context.Context, m *reprise.Message) error {
	out := reprise.Outgoing{Body: m.Body, Attributes: maps.Clone(m.Attributes), GroupID: m.GroupID, TraceHeader: m.TraceHeader}
	delete(out.Attributes, reprise.StoryAttribute) // from when it was a dead letter
	if q.fifo {
		out.DeduplicationID = m.OriginID
		if out.GroupID == "" {
			out.GroupID = m.OriginID // a standard queue's messages need no order
		}
	}
	if q.transform != nil {
		body, err := q.transform(ctx, m)
		if err != nil {
			return err
		}
		if body == "" {
			return reprise.Permanent(errors.New("the transformed body is empty, and SQS takes no empty message"))
		}
		out.Body = body
		if n := size(&out); n > maxMessage {
			return reprise.Permanent(fmt.Errorf("the transformed body and the attributes are %d bytes long, more than SQS's limit of %d: write a shorter body", n, maxMessage))
		}
	}
	sent, err := q.to.Send(ctx, out)
	if err == nil {
		return nil
	}
	if len(sent) > 0 && sent[0].Err != nil {
		err = sent[0].Err
	}
	err = fmt.Errorf("sending to the other queue: %w", err)
	api, answered := errors.AsType[smithy.APIError](err)
	switch {
	case ctx.Err() != nil:
		return err
	case answered && slices.Contains(refusals, api.ErrorCode()):
		return reprise.Permanent(err)
	}
	return reprise.Unavailable(err)
}

// maxMessage is SQS's limit of a message's bytes.
const maxMessage = 1 << 20

// size returns m's bytes as SQS counts them.
func size(m *reprise.Outgoing) int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// refusals are SQS's codes for a message that it never takes. A batch that is too long, here of
// one message, has two names: the API model's and the one that SQS answers with.
var refusals = []string{
	"InvalidMessageContents", "InvalidParameterValue", "MissingParameter",
	"BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong",
}
