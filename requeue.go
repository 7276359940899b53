package reprise

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/digest"
	"github.com/reprise-sqs/reprise/plan"
)

// Via says how a message that is to come again is given back to its queue.
type Via = plan.Via

const (
	// ViaAuto hides the message until it is due. Where that would lose it or what
	// is known of it, a copy with its history is sent and the original deleted: at
	// the last receive that the queue's RedrivePolicy permits, near the end of the
	// queue's retention, for a wait beyond SQS's 12 hours, for a message that is
	// released again, and for waits while the queue's quota of messages in flight is
	// nearly used up: delayed copies are not in flight. A wait of more than a year is
	// cut to a year. Copies need sqs:SendMessage on the queue. On FIFO queues, where a
	// copy would come out of turn, messages are only ever hidden.
	ViaAuto = plan.ViaAuto
	// ViaVisibility only hides. Waits beyond 12 hours are then kept by the process
	// that set them, and at its last permitted receive a message is dead-lettered.
	ViaVisibility = plan.ViaVisibility
	// ViaRequeue sends a copy for each retry, so that attempts are counted exactly
	// in the whole fleet, at one or two requests more for ten retries. It is
	// refused for FIFO queues.
	ViaRequeue = plan.ViaRequeue
)

var errDigest = errors.New("its MD5 is not the one that SQS sent with it, so that a copy might not be what was sent")

// sendCopies sends up to ten copies to the queue itself, or to its retry lane.
func (c *Consumer) sendCopies(batch []*consumer.Delivery, asked []consumer.Entry) (replied results) {
	var damaged [maxBatch]bool
	sound := make([]types.SendMessageBatchRequestEntry, 0, len(batch))
	for i := range batch {
		d := ofMachine(batch[i])
		if damaged[i] = !intact(d.raw); damaged[i] {
			continue
		}
		entry := c.copyOf(d, &asked[i])
		entry.Id = &positions[i]
		c.signHistory(&entry)
		sound = append(sound, entry)
	}
	if len(sound) > 0 {
		replied = c.sendBatch(c.copyTo.url, sound)
	}
	for i := range batch {
		if damaged[i] {
			replied[i] = consumer.Failure{Err: errDigest, Kinds: consumer.Damaged}
		}
	}
	return replied
}

// copyOf is the copy that takes d's place in its queue.
func (c *Consumer) copyOf(d *delivery, e *consumer.Entry) types.SendMessageBatchRequestEntry {
	entry := d.resend(e.Bare)
	if entry.MessageAttributes == nil {
		entry.MessageAttributes = make(map[string]types.MessageAttributeValue, 1)
	}
	entry.MessageAttributes[HistoryAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(e.History)}
	entry.DelaySeconds = e.Seconds
	return entry
}

// resend is everything that d's sender sent, to send again; if bare is set, without
// the trace header.
func (d *delivery) resend(bare bool) types.SendMessageBatchRequestEntry {
	entry := types.SendMessageBatchRequestEntry{
		MessageBody:       d.raw.Body,
		MessageAttributes: maps.Clone(withoutHistory(d.raw.MessageAttributes)),
	}
	if trace := d.raw.Attributes["AWSTraceHeader"]; trace != "" && !bare {
		entry.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &trace},
		}
	}
	if d.GroupID != "" {
		entry.MessageGroupId = &d.GroupID
	}
	return entry
}

// intact says that raw is what SQS computed its digests of. What has no digest is
// not known to be.
func intact(raw *types.Message) bool {
	body := md5.Sum([]byte(deref(raw.Body)))
	if hex.EncodeToString(body[:]) != deref(raw.MD5OfBody) {
		return false
	}
	if len(raw.MessageAttributes) == 0 {
		return deref(raw.MD5OfMessageAttributes) == ""
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(raw.MessageAttributes)) {
		a := raw.MessageAttributes[name]
		if digest.IsBinary(deref(a.DataType)) {
			text = digest.AppendBinary(text, name, deref(a.DataType), a.BinaryValue)
		} else {
			text = digest.AppendString(text, name, deref(a.DataType), deref(a.StringValue))
		}
	}
	attributes := md5.Sum(text)
	return hex.EncodeToString(attributes[:]) == deref(raw.MD5OfMessageAttributes)
}
