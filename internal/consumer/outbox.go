package consumer

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/calls"
)

// Outbox sends settlements by one batch action of SQS, in requests that its calls decide
// on.
type Outbox struct {
	Request Request

	name   string
	state  state // of the deliveries in it
	leased bool  // only what is still leased is sent
	copies bool  // it sends copies, whose sizes matter
	calls  calls.Machine[*Delivery]
	linger alarms.Alarm // rings at the Deadline of calls at the latest
	taken  int64        // entries that SQS has confirmed
}

// String returns the name of what it sends.
func (o *Outbox) String() string { return o.name }

// Request says what a request asks for.
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
	Seconds int32   // of its visibility timeout, or by which its copy is delayed
	History string  // of a copy that comes again
	Story   *Story  // of a dead letter
	Bare    bool    // the copy goes without its story and its trace header
}

// put adds d to the outbox.
func (c *Machine) put(o *Outbox, d *Delivery, now time.Time) {
	c.move(d, o.state) // from now on nothing else may be sent about it
	e := calls.Entry[*Delivery]{Cargo: d, Ends: d.lease.End(), Alone: d.apart}
	if o.copies {
		e.Size = copySize(d)
	}
	o.calls.Add(now, e)
	if at := o.calls.Deadline(); !at.IsZero() {
		c.alarms.Sooner(&o.linger, at)
	}
}

// lingered is called when an outbox's alarm rings. Under load requests fill up long before:
// so it is not set anew for each, but here, if those for which it was set have gone.
func (c *Machine) lingered(o *Outbox, now time.Time) {
	o.calls.Due(now)
	if at := o.calls.Deadline(); !at.IsZero() {
		c.alarms.Set(&o.linger, at)
	}
}

// sendRequests sends the requests that are to go out, heartbeats and settlements.
func (c *Machine) sendRequests() {
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

// Prepare fills in what the request for batch asks for, and returns what is left of the
// batch: a message whose lease has ended is lost, since a request would now disturb
// whoever has it. It is an input just before the request goes out: receipt handles are the
// newest, and seconds are computed now, so that the time until now is part of the backoff.
func (c *Machine) Prepare(o *Outbox, batch []*Delivery, entries *[MaxBatch]Entry) []*Delivery {
	if o.leased {
		batch = c.dropExpired(batch, c.now)
	}
	for i, d := range batch {
		switch o.Request {
		case DeleteMessages:
			d.named = d.Handle
			entries[i] = Entry{Handle: d.Handle}
		case HideMessages:
			entries[i] = c.hideOf(d, c.now)
		case SendDeadLetters:
			entries[i] = Entry{Story: c.story(d, c.now), Bare: d.bare}
		case SendCopies:
			entries[i] = Entry{History: c.historyFor(d, c.now), Seconds: c.delayFor(d.verdict, c.now), Bare: d.bare}
		}
	}
	return batch
}

// Acknowledge takes in the results of the request for batch: what SQS confirmed is no
// longer ours, what it refused is sent again later.
func (c *Machine) Acknowledge(o *Outbox, batch []*Delivery, results *[MaxBatch]Failure) {
	now := c.now
	if slices.ContainsFunc(results[:len(batch)], func(f Failure) bool { return f.Err == nil }) {
		c.answered = now
	}
	for i, d := range batch {
		c.move(d, stateSettling)
		f := &results[i]
		switch {
		case f.Err == nil && d.superseded() && (o == &c.deletes || o == &c.hides):
			c.settle(d, now) // what was confirmed may have been said of the older handle
		case f.Err == nil:
			o.taken++
			c.confirm(o, d, now)
		default:
			c.refused(o, d, f, now)
		}
	}
	o.calls.Ended()
}
