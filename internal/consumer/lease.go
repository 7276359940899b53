package consumer

import (
	"cmp"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/retry"
)

// maxRenewal is the longest renewal. Renewals grow with the age of a handler,
// so that many slow handlers cost few calls, and this bounds how long their
// messages stay hidden when the process dies.
const maxRenewal = 10 * time.Minute

// keepLeases renews the lease of every message in our hands, from its receipt
// until SQS has acknowledged its settlement, and gives up those whose lease has
// ended. It is called by the alarm that it sets.
func (c *Machine) keepLeases(now time.Time) {
	if c.closed {
		return
	}
	due, next := c.leasesDue(now)
	for len(due) > 0 { // the renewed are due at another time
		c.renew(due, now)
		due, next = c.leasesDue(now)
	}
	if !next.IsZero() {
		c.alarms.Set(&c.keeping, next)
	}
}

// planKeeping makes sure that leases are looked at by at.
func (c *Machine) planKeeping(at time.Time) { c.alarms.Sooner(&c.keeping, at) }

// leasesDue returns the messages to renew now, those that would be due within a tenth
// of a lease included, so that heartbeats share requests; and when to look again, zero
// if nothing is held. Messages whose lease has ended are given up. One whose
// heartbeat has failed is not renewed before renewFrom, even where others are: or all
// would be tried again as often as the one whose lease ends first.
func (c *Machine) leasesDue(now time.Time) (due []*Delivery, next time.Time) {
	horizon := now.Add(c.Lease / 10)
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	var ended []*Delivery
	urgent := false
	for _, d := range c.held {
		if d.state == stateRunning {
			if at := c.watchHandler(d, now); !at.IsZero() {
				sooner(at)
			}
		}
		switch {
		case c.heldTooLong(d, now):
			sooner(now.Add(c.Lease / 10))
		case passed(d.expires, now) && !(d.busy() && d.state.settles()):
			if !d.leaseState.lost() {
				ended = append(ended, d)
			}
		case d.leaseState.lost():
			// Its handler has been told; there is no lease to keep.
		case d.busy():
			sooner(now.Add(c.Lease / 10)) // look again when the call is over
			if !d.state.settles() {
				sooner(d.expires) // it must not be started from then on; if it runs, its handler is told
			}
		case d.leaseState == leaseHidden:
			sooner(d.expires) // for longer than a lease, and not to be shortened
		case !passed(d.renewFrom, now):
			sooner(d.renewFrom)
		case passed(d.renewAt, horizon):
			due = append(due, d)
			urgent = urgent || passed(d.renewAt, now)
		default:
			sooner(d.renewAt)
		}
	}
	slices.SortFunc(ended, asReceived)
	for _, d := range ended {
		c.lose(d, errLeaseEnded)
	}
	if len(ended) > 0 {
		return nil, now // with the head of a FIFO group its siblings are given back first
	}
	if !urgent { // nothing has to go out yet: wait for the first that must
		for _, d := range due {
			sooner(d.renewAt)
		}
		return nil, next
	}
	for _, d := range due {
		d.leaseState = leaseRenewing
	}
	slices.SortFunc(due, func(a, b *Delivery) int { // the most urgent go out first
		return cmp.Or(a.renewAt.Compare(b.renewAt), cmp.Compare(a.ID, b.ID))
	})
	return due, next
}

// renew has heartbeats sent for messages that leasesDue has marked. They share requests
// only with each other, since no other message may be renewed yet.
func (c *Machine) renew(due []*Delivery, now time.Time) {
	for _, d := range due {
		c.heartbeats.Add(now, calls.Entry[*Delivery]{Cargo: d})
	}
	c.heartbeats.Flush()
}

// Renew fills in the entries that renew the leases of batch, and returns what is left of
// the batch: those whose lease has ended meanwhile are left out. It is an input just
// before the request goes out.
func (c *Machine) Renew(batch []*Delivery, entries *[MaxBatch]Entry) []*Delivery {
	now := c.now
	batch = slices.DeleteFunc(batch, func(d *Delivery) bool { return c.pastRenewal(d, now) })
	for i, d := range batch {
		d.named = d.Handle
		entries[i] = Entry{Handle: d.Handle, Seconds: c.renewal(d, now)}
	}
	return batch
}

// pastRenewal reports whether d's lease has ended while it waited for its heartbeat: a
// visibility change would now disturb whoever holds the message.
func (c *Machine) pastRenewal(d *Delivery, now time.Time) bool {
	if !passed(d.expires, now) && d.state != stateGone {
		return false
	}
	d.renewalEnded()
	switch {
	case d.state == stateGone:
	case d.state == stateFinished:
		c.move(d, stateSettling)
		c.settle(d, now) // a delete is still worth sending; anything else is given up
	case !d.leaseState.lost():
		c.lose(d, errLeaseEnded)
	}
	return true
}

// renewal is the length of d's next lease in seconds: as long as it has been
// held, at least Settings.Lease, at most ten minutes, and never beyond the twelve
// hours that SQS allows since the receive.
func (c *Machine) renewal(d *Delivery, now time.Time) int32 {
	held := elapsed(d.requested, now)
	length := max(c.Lease, min(held, maxRenewal)).Truncate(time.Second)
	seconds, _ := retry.Visibility(now.Add(-held), now, now.Add(length))
	return seconds
}

// Renewed takes in the results of a heartbeat for batch that was sent at requested.
func (c *Machine) Renewed(batch []*Delivery, entries *[MaxBatch]Entry, results *[MaxBatch]Failure, requested time.Time) {
	now := c.now
	for i, d := range batch {
		d.renewalEnded()
		if d.state == stateGone {
			continue
		}
		length := time.Duration(entries[i].Seconds) * time.Second
		c.renewed(d, &results[i], requested, now, length)
		if d.state == stateFinished {
			c.move(d, stateSettling)
			c.settle(d, now)
		}
	}
	c.heartbeats.Ended()
}

// renewed takes in the result of d's heartbeat.
func (c *Machine) renewed(d *Delivery, f *Failure, requested, now time.Time, length time.Duration) {
	switch {
	case d.superseded(): // received again meanwhile: the newer lease stands
	case f.Err == nil:
		c.answered = now
		d.grant(requested, length)
		if length < c.Lease {
			d.renewAt = d.expires // the twelve hours end there: nothing is left to renew
		}
	case f.is(BySender):
		// SQS knows nothing of this lease any more.
		c.lose(d, f.Err)
	default:
		// Try again soon, well before the end if there is time.
		left := d.expires.Sub(now)
		pause := min(left, max(left/4, 100*time.Millisecond))
		d.renewAt = now.Add(pause)
		d.renewFrom = now.Add(min(pause, max(pause*3/4, 100*time.Millisecond)))
		c.noteDenied("retry", f)
		c.complain("heartbeat", "renewing leases failed; trying again while they last", "error", f.Err)
	}
}
