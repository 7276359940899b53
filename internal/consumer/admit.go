package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// admit takes a received message into our hands. A message that is here already is not
// run twice: the one that is here adopts the newer receipt handle.
func (c *Machine) admit(d *Delivery, now time.Time) {
	if old := c.held[d.ID]; old != nil {
		d.duplicate = true
		c.counts.Duplicates++
		c.adopt(old, d)
		return
	}
	c.held[d.ID] = d
	c.countBytes(d)
	c.waiting++ // as every delivery that is new
	c.memory.ForgetHandle(d.ID)
	d.Attempt = c.attemptNumber(d, now)
	if trail := c.memory.Recall(d.ID, now).Trail; trail != "" {
		d.Trail = trail // that the last attempt left, if it was made here
	}
	if c.Queue.FIFO {
		c.joinGroup(d, now)
		return
	}
	c.begin(d, now)
}

// adopt gives old, which is held, the lease and handle of its redelivery d.
func (c *Machine) adopt(old, d *Delivery) {
	old.Handle = d.Handle
	old.receives = max(old.receives, d.receives)
	old.lease.Adopt(d.lease) // though its handler has been interrupted, or the older handle has hidden it
}

// begin decides what a message that is next in line needs: a run of the handler,
// or, by what is remembered of it, only a settlement.
func (c *Machine) begin(d *Delivery, now time.Time) {
	if !c.groups.Begin(&d.member) {
		return
	}
	known := c.memory.Recall(d.ID, now)
	due := known.Due
	if known.Receives == 0 && d.History != nil { // nothing is known of this copy
		due = d.History.Due
	}
	switch {
	case known.Done:
		// Only the delete was not acknowledged.
		d.copied = known.Copied
		c.skip(d, Verdict{Outcome: OutcomeDelete}, now)
		return
	case known.Spent:
		d.watched = true                               // when it was given up
		c.memory.Note(d.ID, now).Receives = d.receives // which was no attempt
		c.skip(d, Verdict{Outcome: OutcomeDeadLetter, Reason: known.Reason, Err: known.Err}, now)
		return
	case due.After(now):
		note := c.memory.Note(d.ID, now)
		note.Unrun(d.Attempt, d.receives) // this receive was no attempt
		note.Due = due
		if parked := d.parked(note); due.Sub(now) <= shortHold || c.mayHold(d, due, now) {
			c.await(d, parked, now) // it is leased, so it can wait here
		} else {
			c.skip(d, parked, now) // hide it again, and remember it for as long again
		}
		return
	}
	first, sent := c.local(d.FirstReceived), c.local(d.Sent)
	if reason, exhausted := c.policy.Exhausted(d.Attempt, first, sent, now); exhausted {
		c.skip(d, Verdict{Outcome: OutcomeDeadLetter, Reason: reason, Err: d.withLastError(errExhausted)}, now)
		return
	}
	if c.draining && (c.gateShut(d, now) || !c.timeAllows(now)) {
		c.skip(d, releasedAtStop(nil), now)
		return
	}
	if !c.gateShut(d, now) && c.confine(d, now) {
		return
	}
	c.readyOrShelve(d, now)
}

// shortHold is how long a message that is not yet due is held rather than hidden
// again: SQS's clock and ours differ a little.
const shortHold = 2 * time.Second

// await holds d until v.due. If it has to leave before, at a stop for example, it is settled
// as v says.
func (c *Machine) await(d *Delivery, v Verdict, now time.Time) {
	d.verdict = v
	c.move(d, stateScheduled)
	c.groups.Hold(&d.member)
	c.alarms.After(now.Add(v.Due.Sub(now)), func(now time.Time) {
		switch {
		case d.state != stateScheduled:
		case d.lease.Over(now):
			c.lose(d, errLeaseEnded) // a machine that slept: another may have it by now
		default:
			c.awaited(d)
			c.begin(d, now)
		}
	})
}

// awaited notes that d does not wait for its time any longer.
func (c *Machine) awaited(d *Delivery) {
	if d.state == stateScheduled {
		c.move(d, stateWaiting)
		c.groups.Busy(&d.member)
	}
}

// attemptNumber is the number of the run that d would now get. It is exact where
// this process has had every receive of the message so far, and at the first
// receive of a copy, whose history counts the runs before it. Otherwise it is the
// number of runs that fit into the time since then: receives alone prove nothing,
// for deploys, releases and throttles burn them.
//
// What fits is no proof either. A message whose last attempt fails goes to the
// dead-letter queue, if there is one: as long as it comes, it has an attempt left.
func (c *Machine) attemptNumber(d *Delivery, now time.Time) int {
	known := c.memory.Recall(d.ID, now)
	n := max(known.Runs, d.made()) + 1
	if d.receives == known.Receives+1 {
		return n
	}
	fit := d.Fit
	if limit := c.policy.MaxAttempts; limit > 0 && c.facts.DeadLetter.URL != "" {
		fit = min(fit, limit)
	}
	return max(n, fit)
}

// parked is the verdict on d, which is not yet due: what is remembered of its wait
// stays.
func (d *Delivery) parked(known *memory.Note) Verdict {
	v := Verdict{Outcome: OutcomePark, Reason: retry.ReasonPolicy, Due: known.Due, unavailable: known.Unavailable}
	if known.Asked {
		v.Reason = retry.ReasonRetryAfter
	}
	if d.History != nil {
		v.unavailable = v.unavailable || d.History.Unavailable
	}
	return v
}

// skip settles d without running its handler.
func (c *Machine) skip(d *Delivery, v Verdict, now time.Time) {
	v = c.route(d, v, now)
	c.unready(d, now)
	c.move(d, stateSettling)
	d.verdict = v
	c.settle(d, now)
}

// unready takes d out of wherever it waits to be started.
func (c *Machine) unready(d *Delivery, now time.Time) {
	switch d.state {
	case stateScheduled:
		c.awaited(d)
	case stateShelved, stateReady:
		c.stepOut(d)
	case stateAlone:
		c.move(d, stateWaiting)
		c.leaveSolo(d, now)
	}
}
