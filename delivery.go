package reprise

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// delivery is one message in this consumer's hands: the machine's part of it, and what the
// machine need not know.
type delivery struct {
	consumer.Delivery

	raw             *types.Message
	attributes      map[string]types.MessageAttributeValue // raw's, without the history
	deduplicationID string
	traceHeader     string

	told  atomic.Pointer[Message] // of which observers were told last; nil: of none
	run   *run                    // of its handler: the latest
	first run                     // the storage of most
}

// run is what one run of the handler gets to see. A later run of the same delivery
// has its own: the handler may have kept what it was given.
type run struct {
	ctx   attemptContext
	shown Message // the handler's copy of the message, to do with as it likes
	trail string  // that the observer leaves of it

	// Of a batch.
	err    error // what the handler returned for it
	judged bool  // err is known
}

// ofMachine returns the delivery that d is part of.
func ofMachine(d *consumer.Delivery) *delivery { return d.Cargo.(*delivery) }

// taken returns the delivery that d is part of, with a new run of its handler; nil if d is.
// It is called in the section in which the machine has taken d to be run: from then on its
// lease may be lost.
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

// show gives the handler's run its message.
func (d *delivery) show() {
	d.write(&d.run.shown, d.Attempt, d.Trail)
	d.run.ctx.msg = &d.run.shown
}

// write makes m the message as it was at its attempt of that number.
func (d *delivery) write(m *Message, attempt int, trail string) {
	*m = Message{
		ID: d.ID, OriginID: d.OriginID, Body: deref(d.raw.Body), GroupID: d.GroupID, DeduplicationID: d.deduplicationID,
		Attributes: d.attributes, TraceHeader: d.traceHeader, Trail: trail,
		Sent: d.Sent, FirstReceived: d.FirstReceived, Received: d.Received,
		Attempt: attempt, Receives: d.Receives,
	}
}

// message is the message of which is told: mostly the same of all events of an attempt.
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
	for name, value := range raw.Attributes { // they are few: a look-up for each takes longer
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

// measure sets the sizes of d, when it is known what of it is a history.
func (d *delivery) measure() {
	d.Size, d.Attributes, d.TraceSize = sizeOf(d.raw.Body, d.attributes), len(d.attributes), len(d.traceHeader)
}

// milliseconds parses SQS's timestamps: milliseconds since 1970, in decimal.
// What is absent or no number is the zero time.
func milliseconds(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}
