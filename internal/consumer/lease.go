package consumer

import (
	"cmp"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/retry"
)

// keepLeases renews the lease of every held message, from its receipt until SQS has
// acknowledged its settlement, and lets go of messages whose lease has ended. It is called
// by the alarm that it sets.
func (c *Machine) keepLeases(now time.Time) {
	if c.closed {
		return
	}
	due, next := c.leasesDue(now)
	for len(due) > 0 { // the rest is due at another time
		c.renew(due, now)
		due, next = c.leasesDue(now)
	}
	if !next.IsZero() {
		c.alarms.Set(&c.keeping, next)
	}
}

// leasesDue returns the messages to renew now, and when to look again, zero if no message is
// held. It includes the messages that would be due within a tenth of a lease, so that
// heartbeats share requests. It lets go of messages whose lease has ended. A message whose
// heartbeat has failed is not renewed before its time, even if others are: otherwise all
// would be tried again as often as the one whose lease ends first.
func (c *Machine) leasesDue(now time.Time) (due []*Delivery, next time.Time) {
	horizon := now.Add(c.Lease / 10)
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	var ended, tooLong, hung []*Delivery
	urgent := false
	for _, d := range c.held {
		switch at := c.hungFrom(d); {
		case at.IsZero():
		case at.After(now):
			sooner(at)
		default:
			hung = append(hung, d)
		}
		switch {
		case d.heldTooLong(now):
			tooLong = append(tooLong, d)
		case d.lease.Over(now) && !(d.busy() && d.state.settles()):
			if !d.lease.Lost() {
				ended = append(ended, d)
			}
		case d.lease.Lost():
			// Its handler has been told; there is no lease to keep.
		case d.busy():
			sooner(now.Add(c.Lease / 10)) // the request is over then, most likely
			if !d.state.settles() {
				sooner(d.lease.End()) // from then on it must not start; if it runs, its handler is told
			}
		default:
			if ready, at := d.lease.Heartbeat(now, horizon); !ready {
				sooner(at)
				continue
			}
			due = append(due, d)
			urgent = urgent || d.lease.Urgent(now)
		}
	}
	slices.SortFunc(hung, asReceived)
	for _, d := range hung {
		c.hangs(d, now)
	}
	slices.SortFunc(tooLong, asReceived)
	for _, d := range tooLong {
		if d.state.waits() { // it was not given back with another of its group
			c.giveBackHeld(d, now)
		}
	}
	slices.SortFunc(ended, asReceived)
	for _, d := range ended {
		c.lose(d, errLeaseEnded)
	}
	if ended != nil || tooLong != nil {
		return nil, now // first the groups of lost heads are given back
	}
	if !urgent { // no heartbeat has to go out yet: wait until one must
		for _, d := range due {
			sooner(d.lease.RenewAt())
		}
		return nil, next
	}
	for _, d := range due {
		d.lease.BeginRenewal()
	}
	slices.SortFunc(due, func(a, b *Delivery) int { // the most urgent go out first
		return cmp.Or(a.lease.RenewAt().Compare(b.lease.RenewAt()), cmp.Compare(a.ID, b.ID))
	})
	return due, next
}

// unhide has the lease of d renewed again, if d is hidden until its copy is due.
func (c *Machine) unhide(d *Delivery) {
	if d.lease.Hidden() {
		d.lease.Unhide(c.Lease)
		c.planKeeping(d.lease.RenewAt())
	}
}

// heldTooLong reports whether d has waited for nearly twelve hours, the longest time for which
// SQS lets a message be held.
func (d *Delivery) heldTooLong(now time.Time) bool {
	return d.state.waits() && d.lease.Age(now) >= holdAtMost
}

// giveBackHeld gives back d, which has waited for too long.
func (c *Machine) giveBackHeld(d *Delivery, now time.Time) {
	c.unrun(d, now)
	due := now.Add(minAway + spread(minAway, d.ID))
	c.giveBackWaiting(d, Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonUnavailable, Due: due}, now)
}

// renew plans heartbeats for messages that leasesDue has marked. They share requests only
// with each other, because no other message may be renewed yet.
func (c *Machine) renew(due []*Delivery, now time.Time) {
	for _, d := range due {
		c.heartbeats.Add(now, calls.Entry[*Delivery]{Cargo: d})
	}
	c.heartbeats.Flush()
}

// Renew fills in the entries that renew the leases of batch, and returns batch without the
// messages whose lease has ended meanwhile. The shell calls it just before the request goes
// out.
func (c *Machine) Renew(batch []*Delivery, entries *[MaxBatch]Entry) []*Delivery {
	now := c.now
	batch = slices.DeleteFunc(batch, func(d *Delivery) bool { return c.dropPastRenewal(d, now) })
	for i, d := range batch {
		if d.lease.Late(now) {
			c.renewsLate(now)
		}
		d.named = d.Handle
		entries[i] = Entry{Handle: d.Handle, Seconds: d.lease.Renewal(now, c.Lease)}
	}
	return batch
}

// dropPastRenewal settles or gives up d if its lease has ended while it waited for its
// heartbeat, and reports whether it has: a visibility change would now disturb the
// consumer that holds the message.
func (c *Machine) dropPastRenewal(d *Delivery, now time.Time) bool {
	if !d.lease.Over(now) && d.state != stateGone {
		return false
	}
	d.lease.EndRenewal()
	switch {
	case d.state == stateGone:
	case d.state == stateFinished:
		c.move(d, stateSettling)
		c.settle(d, now) // a delete is still worth sending; anything else is given up
	case !d.lease.Lost():
		c.lose(d, errLeaseEnded)
	}
	return true
}

// Renewed takes in the results of a heartbeat for batch that was sent at requested.
func (c *Machine) Renewed(batch []*Delivery, entries *[MaxBatch]Entry, results *[MaxBatch]Failure, requested time.Time) {
	now := c.now
	if len(batch) > 0 {
		c.beatTime.add(now.Sub(requested))
	}
	for i, d := range batch {
		d.lease.EndRenewal()
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
		d.lease.Renewed(requested, length, c.Lease, spread(length/10, d.ID))
	case f.is(BySender):
		// SQS knows nothing of this lease any more.
		c.lose(d, f.Err)
	default:
		d.lease.RenewalFailed(now)
		c.noteDenied("retry", f)
		c.warn("heartbeat", "renewing leases failed; trying again while they last", "error", f.Err)
	}
}
