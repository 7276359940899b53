package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/calls"
)

// Outbox collects settlements for one batch action of SQS. Its calls decide which of them
// share a request, and when the request goes out.
type Outbox struct {
	Request Request

	name   string
	state  state // of the deliveries in it
	leased bool  // messages whose lease has ended are left out
	copies bool  // it sends copies, whose sizes count
	calls  calls.Machine[*Delivery]
	linger alarms.Alarm // rings at the Deadline of calls at the latest
	taken  int64        // entries that SQS has confirmed
}

// String returns the outbox's name, for logs.
func (o *Outbox) String() string { return o.name }

// Request is what a request asks SQS to do.
type Request uint8

// The requests of outboxes.
const (
	DeleteMessages  Request = iota
	HideMessages            // change their visibility
	SendDeadLetters         // to the dead-letter queue
	SendCopies              // to the queue itself, or to its retry lane
)

// Entry is what a request asks for one message.
type Entry struct {
	Handle  *string // its newest receipt handle
	Seconds int32   // its visibility timeout, or the delay of its copy
	History string  // of a copy that comes again
	Story   *Story  // of a dead letter
	Bare    bool    // the copy is sent without its story and its trace header
}

// put adds d to an outbox.
func (c *Machine) put(o *Outbox, d *Delivery, now time.Time) {
	c.move(d, o.state) // until it is acknowledged, no other request may be about d
	e := calls.Entry[*Delivery]{Cargo: d, Ends: d.lease.End(), Alone: d.apart}
	if o.copies {
		e.Size = copySize(d)
	}
	o.calls.Add(now, e)
	if at := o.calls.Deadline(); !at.IsZero() {
		c.alarms.Sooner(&o.linger, at)
	}
}

// copySize returns the size of a copy of d in a batch request, with a story or a history,
// and with the trace header: SQS does not count that, but the request carries it.
func copySize(d *Delivery) int {
	return d.Size + d.TraceSize + max(historySize, MaxStoryError+1000)
}

// lingered is called when an outbox's alarm rings. Under load, requests fill up long before:
// so the alarm is not set again for each request, but here, if its request is gone already.
func (c *Machine) lingered(o *Outbox, now time.Time) {
	o.calls.Due(now)
	if at := o.calls.Deadline(); !at.IsZero() {
		c.alarms.Set(&o.linger, at)
	}
}

// sendRequests sends the requests that are due: heartbeats and settlements.
func (c *Machine) sendRequests() {
	c.permitHeartbeats()
	for c.heartbeats.Ready() {
		c.want(Effect{Kind: Heartbeat, Batch: c.heartbeats.Next()})
	}
	for _, o := range c.outboxes() {
		for o.calls.Ready() {
			batch := o.calls.Next()
			for _, d := range batch {
				d.requests++
			}
			c.want(Effect{Kind: Send, Outbox: o, Batch: batch})
		}
	}
}

// outboxes returns all four outboxes.
func (c *Machine) outboxes() [4]*Outbox {
	return [...]*Outbox{&c.deletes, &c.hides, &c.copies, &c.requeues}
}
