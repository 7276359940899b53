package reprise

import (
	"cmp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/retry"
)

// delivery is one message in this consumer's hands, from its receipt to the
// acknowledgement of its settlement. Except msg and raw, which do not change
// while a handler runs, its fields belong to the core.
type delivery struct {
	msg      *Message // as it is run and told of: another one for each attempt
	received Message  // as it was received: the first of them
	raw      *types.Message
	key      string                   // of the breaker and the pause that concern it
	run      *run                     // of its handler: the first, or one after it was held
	first    run                      // the storage of most
	shelf    *gate                    // the closed gate that it waits behind
	gate     *gate                    // the gate that has let it through
	round    int                      // of the gate's breaker, when it did
	next     *delivery                // in a fifo
	previous *delivery                //
	handle   *string                  // the newest receipt handle
	named    *string                  // the one that the latest request about it named
	receives int                      // SQS's count at the newest receive
	fit      int                      // attempts that fit into the time since it was first received
	member   groups.Member[*delivery] // FIFO: of its group
	history  *past                    // what it carries of the messages before it; nil: nothing
	size     int                      // in bytes, of a batch consumer

	state      state
	leaseState leaseState
	verdict    verdict // while it waits for its time: what becomes of it otherwise

	duplicate bool // arrived while the same message was held: only lent its handle
	ran       bool // its handler was run
	tried     bool // an attempt has failed for want of what its handler needs

	copied     bool // the dead-letter queue, or its own, has it again
	uncopyable bool // it cannot be requeued
	bare       bool // the copy goes without what can be left out: its story and its trace header
	apart      bool // the copy goes in a request of its own
	watched    bool // its end has been taken in by Consumer.giveUps
	refusals   int  // settlements that failed, for their backoff
	refused    refusals
	requests   int // requests spent on settling

	began     time.Time // of the run of its handler that is under way
	hung      bool      // its handler ignores the end of its context
	requested time.Time // start of the receive: the 12 hours count from here
	expires   time.Time // the lease's end, as far as we may rely on it
	renewAt   time.Time // the next heartbeat
	renewFrom time.Time // no heartbeat before: the latest has failed

	hiddenUntil time.Time // by the settlement that is under way
}

// run is what one run of the handler gets to see. A later run of the same delivery
// has its own: the handler may have kept what it was given.
type run struct {
	ctx   attemptContext
	shown Message // the handler's copy of msg, to do with as it likes
	trail string  // that the observer leaves of it
}

// verdict is what the end of an attempt decides.
type verdict struct {
	outcome Outcome
	reason  retry.Reason
	// due is when the message should be visible again, on our clock; zero with
	// OutcomeRelease: at once.
	due time.Time
	err error
	// unavailable says that the attempt failed for want of what the handler needs.
	unavailable bool
	requeue     cause // why a copy is to take the message's place
	alone       bool  // the copy is to run alone
	carried     bool  // hidden for now; a copy will carry it on in time
}

// leaseSlack is kept off the end of a lease: a reply has travelled, and so will
// the next request.
func leaseSlack(lease time.Duration) time.Duration { return min(time.Second, lease/10) }

// grant records a lease of the given length that SQS has granted at or after from.
func (d *delivery) grant(from time.Time, length time.Duration) {
	d.expires = from.Add(length - leaseSlack(length))
	// Half-way, up to a tenth later by message, so that a fleet's heartbeats
	// spread and one failed heartbeat leaves time for more.
	d.renewAt = from.Add(length/2 + spread(length/10, d.msg.ID))
}

// lostTo is why settling failed, for a message that was lost; otherwise nil.
func (d *delivery) lostTo() error {
	if d.verdict.outcome == OutcomeLost {
		return d.verdict.err
	}
	return nil
}

// asReceived puts deliveries into the order in which they came, those of a FIFO
// queue that came together into the order in which they were sent.
func asReceived(a, b *delivery) int {
	return cmp.Or(a.msg.Received.Compare(b.msg.Received), groups.Compare(a.member.Sequence, b.member.Sequence), cmp.Compare(a.msg.ID, b.msg.ID))
}

// spread is the part of span that falls to a message id, the same everywhere. The
// last digits of an id are as random as the whole.
func spread(span time.Duration, id string) time.Duration {
	var sum uint32 = 2166136261 // FNV-1a
	for i := max(0, len(id)-8); i < len(id); i++ {
		sum = (sum ^ uint32(id[i])) * 16777619
	}
	return time.Duration(uint64(span) / (1 << 16) * uint64(sum>>16))
}

// fill reads a received message into d.
func (d *delivery) fill(raw *types.Message, received time.Time) {
	d.raw = raw
	d.run = &d.first
	d.handle = raw.ReceiptHandle
	d.msg = &d.received
	m := d.msg
	if raw.MessageId != nil {
		m.ID = *raw.MessageId
		m.OriginID = m.ID
	}
	if raw.Body != nil {
		m.Body = *raw.Body
	}
	m.Attributes = raw.MessageAttributes
	m.Received = received
	m.Receives = 1
	for name, value := range raw.Attributes { // they are few: a look-up for each takes longer
		switch types.MessageSystemAttributeName(name) {
		case types.MessageSystemAttributeNameMessageGroupId:
			m.GroupID = value
		case types.MessageSystemAttributeNameMessageDeduplicationId:
			m.DeduplicationID = value
		case types.MessageSystemAttributeNameSequenceNumber:
			d.member.Sequence = value
		case types.MessageSystemAttributeNameAWSTraceHeader:
			m.TraceHeader = value
		case types.MessageSystemAttributeNameSentTimestamp:
			m.Sent = milliseconds(value)
		case types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp:
			m.FirstReceived = milliseconds(value)
		case types.MessageSystemAttributeNameApproximateReceiveCount:
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				m.Receives = n
			}
		}
	}
	d.receives = m.Receives
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

// fifo is a first-in-first-out list of deliveries, linked through them.
type fifo struct{ first, last *delivery }

// push appends d.
func (f *fifo) push(d *delivery) {
	d.previous = f.last
	if f.last == nil {
		f.first = d
	} else {
		f.last.next = d
	}
	f.last = d
}

// pushFront puts d before all others.
func (f *fifo) pushFront(d *delivery) {
	d.next = f.first
	if f.first == nil {
		f.last = d
	} else {
		f.first.previous = d
	}
	f.first = d
}

// remove takes d out, which is in f.
func (f *fifo) remove(d *delivery) {
	if d.previous == nil {
		f.first = d.next
	} else {
		d.previous.next = d.next
	}
	if d.next == nil {
		f.last = d.previous
	} else {
		d.next.previous = d.previous
	}
	d.next, d.previous = nil, nil
}
