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

// Via says how a message to be tried again is given back to its queue.
type Via = plan.Via

const (
	// ViaAuto hides the message until it is due. If that would lose the message or its
	// history, a copy with the history is sent and the original is deleted: at the last
	// receive that the queue's RedrivePolicy permits; near the end of the queue's
	// retention; for a wait of more than SQS's 12 hours; for a message that is released
	// again; and while the queue's quota of messages in flight is nearly used up, because
	// delayed copies are not in flight. A wait of more than a year is cut to a year. Copies
	// need sqs:SendMessage on the queue. On FIFO queues a copy would come out of order:
	// there messages are only hidden.
	ViaAuto = plan.ViaAuto
	// ViaVisibility only hides. Then only the process that set a wait of more than 12 hours
	// knows its end, and at its last permitted receive a message is dead-lettered.
	ViaVisibility = plan.ViaVisibility
	// ViaRequeue sends a copy for each retry, so that all consumers of the queue count
	// attempts exactly. It costs one or two requests more for ten retries. FIFO queues do
	// not permit it.
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

// copyOf returns the copy that replaces d.
func (c *Consumer) copyOf(d *delivery, e *consumer.Entry) types.SendMessageBatchRequestEntry {
	entry := d.resend(e.Bare)
	if entry.MessageAttributes == nil {
		entry.MessageAttributes = make(map[string]types.MessageAttributeValue, 1)
	}
	entry.MessageAttributes[HistoryAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(e.History)}
	entry.DelaySeconds = e.Seconds
	return entry
}

// intact reports whether raw matches the digests that SQS sent with it. It returns false if
// a digest is missing.
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
