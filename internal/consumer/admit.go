package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// admit begins to hold a received message. A message that is held already is not run
// twice: its delivery takes over the newer receipt handle.
func (c *Machine) admit(d *Delivery, now time.Time) {
	if old := c.held[d.ID]; old != nil {
		d.duplicate = true
		c.counts.Duplicates++
		c.adopt(old, d)
		return
	}
	c.held[d.ID] = d
	c.countBytes(d)
	c.waiting++ // every delivery begins in stateWaiting
	c.memory.ForgetHandle(d.ID)
	d.Attempt = c.attemptNumber(d, now)
	if trail := c.memory.Recall(d.ID, now).Trail; trail != "" {
		d.Trail = trail // of the last attempt, if this process made it
	}
	if c.Queue.FIFO {
		c.joinGroup(d, now)
		return
	}
	c.begin(d, now)
}

// adopt gives old, which is held, the lease and the receipt handle of its redelivery d.
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
	if known.Receives == 0 && d.History != nil { // the memory knows nothing of this copy
		due = d.History.Due
	}
	switch {
	case known.Done:
		// Its work is done; only its delete was not acknowledged.
		d.copied = known.Copied
		c.skip(d, Verdict{Outcome: OutcomeDelete}, now)
		return
	case known.Spent:
		d.watched = true                               // giveUps counted it when it was given up
		c.memory.Note(d.ID, now).Receives = d.receives // this receive was no attempt
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

// shortHold is the longest wait for which a message that is not yet due is held rather
// than hidden again: SQS's clock and ours differ a little.
const shortHold = 2 * time.Second

// await holds d until v.Due. If d has to leave earlier, for example at a stop, it is
// settled as v says.
func (c *Machine) await(d *Delivery, v Verdict, now time.Time) {
	d.verdict = v
	c.move(d, stateScheduled)
	c.groups.Hold(&d.member)
	c.alarms.After(now.Add(v.Due.Sub(now)), func(now time.Time) {
		switch {
		case d.state != stateScheduled:
		case d.lease.Over(now):
			c.lose(d, errLeaseEnded) // the computer slept: another consumer may have it by now
		default:
			c.awaited(d)
			c.begin(d, now)
		}
	})
}

// awaited notes that d no longer waits for its due time.
func (c *Machine) awaited(d *Delivery) {
	if d.state == stateScheduled {
		c.move(d, stateWaiting)
		c.groups.Busy(&d.member)
	}
}

// attemptNumber returns the number of the run that d would get now. It is exact if this
// process has had every receive of the message so far, and at the first receive of a copy,
// whose history counts the runs before it. Otherwise it is the number of runs that fit
// into the time since then: receives alone prove nothing, because deploys, releases and
// throttles use them up.
//
// The number that fits is no proof either. A message whose last attempt fails goes to the
// dead-letter queue, if there is one: as long as it is received, it has an attempt left.
func (c *Machine) attemptNumber(d *Delivery, now time.Time) int {
	known := c.memory.Recall(d.ID, now)
	n := max(known.Runs, d.made()) + 1
	if d.receives == known.Receives+1 {
		return n
	}
	fit := d.PossibleAttempts
	if limit := c.policy.MaxAttempts; limit > 0 && c.facts.DeadLetter.URL != "" {
		fit = min(fit, limit)
	}
	return max(n, fit)
}

// parked returns the verdict on d, which is not yet due. It keeps the remembered due time.
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

// unready takes d out of the list in which it waits to be started.
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
