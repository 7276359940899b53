package reprise

import (
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// delivery is one message that this consumer holds: the machine's part of it, and the part
// that the machine need not know.
type delivery struct {
	consumer.Delivery

	raw             *types.Message
	attributes      map[string]types.MessageAttributeValue // raw's, without the history
	deduplicationID string
	traceHeader     string

	told  atomic.Pointer[Message] // what observers were told last; nil: nothing yet
	run   *run                    // the latest run of its handler
	first run                     // the storage of the first run: most deliveries have only one
}

// run is one run of a delivery's handler. A later run has its own context and Message,
// because the handler may have kept these.
type run struct {
	ctx   attemptContext
	shown Message // the handler's own copy of the message, which it may change
	trail string  // what Observer.Starting returned

	// In a batch:
	err    error // what the handler returned for it
	judged bool  // err is known
}

// ofMachine returns the delivery that d is part of.
func ofMachine(d *consumer.Delivery) *delivery { return d.Cargo.(*delivery) }

// taken returns the delivery that d is part of, with a new run; nil if d is nil. It must be
// called in the section in which the machine took d: after it the lease may be lost, which
// ends the context of the run.
func taken(d *consumer.Delivery) *delivery {
	if d == nil {
		return nil
	}
	taken := ofMachine(d)
	if taken.run == nil {
		taken.run = &taken.first
	} else {
		taken.run = new(run)
	}
	return taken
}

// show fills in the message for the handler's run.
func (d *delivery) show() {
	d.write(&d.run.shown, d.Attempt, d.Trail)
	d.run.ctx.msg = &d.run.shown
}

// write fills in m with the message as it was at that attempt.
func (d *delivery) write(m *Message, attempt int, trail string) {
	*m = Message{
		ID: d.ID, OriginID: d.OriginID, Body: deref(d.raw.Body), GroupID: d.GroupID, DeduplicationID: d.deduplicationID,
		Attributes: d.attributes, TraceHeader: d.traceHeader, Trail: trail,
		Sent: d.Sent, FirstReceived: d.FirstReceived, Received: d.Received,
		Attempt: attempt, Receives: d.Receives,
	}
}

// message returns the Message for the log and observers. Most events of an attempt share
// one.
func message(s consumer.Subject) *Message {
	d := s.Cargo.(*delivery)
	if m := d.told.Load(); m != nil && m.Attempt == s.Attempt && m.Trail == s.Trail {
		return m
	}
	m := new(Message)
	d.write(m, s.Attempt, s.Trail)
	d.told.Store(m)
	return m
}

// fill reads a received message into d.
func (d *delivery) fill(raw *types.Message, received time.Time) {
	d.Cargo = d
	d.raw = raw
	d.Handle = raw.ReceiptHandle
	d.ID = deref(raw.MessageId)
	d.OriginID = d.ID
	d.attributes = raw.MessageAttributes
	d.Received = received
	d.Receives = 1
	for name, value := range raw.Attributes { // there are few: looking up each name would take longer
		switch types.MessageSystemAttributeName(name) {
		case types.MessageSystemAttributeNameMessageGroupId:
			d.GroupID = value
		case types.MessageSystemAttributeNameMessageDeduplicationId:
			d.deduplicationID = value
		case types.MessageSystemAttributeNameSequenceNumber:
			d.SetSequence(value)
		case types.MessageSystemAttributeNameAWSTraceHeader:
			d.traceHeader = value
		case types.MessageSystemAttributeNameSentTimestamp:
			d.Sent = milliseconds(value)
		case types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp:
			d.FirstReceived = milliseconds(value)
		case types.MessageSystemAttributeNameApproximateReceiveCount:
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				d.Receives = n
			}
		}
	}
}

// measure sets the sizes of d, without its history. It must be called after recallHistory.
func (d *delivery) measure() {
	d.Size, d.Attributes, d.TraceSize = sizeOf(d.raw.Body, d.attributes), len(d.attributes), len(d.traceHeader)
}

// milliseconds parses SQS's timestamps: milliseconds since 1970, in decimal.
// It returns the zero time if s is not a number, or empty.
func milliseconds(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// resend returns an entry that sends d again as its producer sent it; if bare is set,
// without the trace header.
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

// sizeOf returns the size of a message as SQS counts it: its body, and the names, types and
// values of attributes.
func sizeOf(body *string, attributes map[string]types.MessageAttributeValue) int {
	size := len(deref(body))
	for name, a := range attributes {
		size += len(name) + len(deref(a.DataType)) + len(deref(a.StringValue)) + len(a.BinaryValue)
	}
	return size
}

// withoutHistory returns the attributes that the producer attached. It does not change the
// map, which belongs to the client.
func withoutHistory(attributes map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	if _, ok := attributes[HistoryAttribute]; !ok {
		return attributes
	}
	if len(attributes) == 1 {
		return nil
	}
	own := maps.Clone(attributes)
	delete(own, HistoryAttribute)
	return own
}
