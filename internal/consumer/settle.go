package consumer

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/retry"
)

var (
	errExhausted  = errors.New("its attempts or its age were used up before this receive")
	errLeaseEnded = errors.New("the lease ended before SQS acknowledged the settlement")
)

const (
	minSettleBackoff = 100 * time.Millisecond
	maxSettleBackoff = 5 * time.Second

	// unsettledMany is the number of refusals of one settlement, in a row, that degrades the
	// health.
	unsettledMany = 5
)

// settle begins to carry out d's verdict. Only one request about a message is under way at a
// time: while a heartbeat is under way, the settlement waits for its end. Otherwise SQS
// could carry out the heartbeat last, and replace hours of backoff by one lease.
func (c *Machine) settle(d *Delivery, now time.Time) {
	if c.closed {
		return // the stop budget has ended: the Report names d as unsettled
	}
	if d.lease.Renewing() {
		c.move(d, stateFinished)
		return
	}
	c.reconsider(d, now)
	c.watchGivingUp(d, now)
	switch d.verdict.Outcome {
	case OutcomeDelete:
		c.put(&c.deletes, d, now)
	case OutcomeDeadLetter:
		c.giveUp(d, now)
	default:
		if d.verdict.requeue != byVisibility {
			c.requeue(d, now)
			return
		}
		c.put(&c.hides, d, now)
	}
}

// hideOf returns the entry that hides d.
func (c *Machine) hideOf(d *Delivery, now time.Time) Entry {
	d.named = d.Handle
	seconds := c.hideFor(d, now)
	d.hiddenUntil = now.Add(time.Duration(seconds) * time.Second)
	return Entry{Handle: d.Handle, Seconds: seconds}
}

// dropExpired takes the messages out of batch whose lease has ended: another consumer may
// hold them, and a change of their visibility would disturb it.
func (c *Machine) dropExpired(batch []*Delivery, now time.Time) []*Delivery {
	held := batch[:0]
	for _, d := range batch {
		if d.lease.Over(now) {
			c.move(d, stateSettling)
			c.lose(d, errLeaseEnded)
			continue
		}
		held = append(held, d)
	}
	return held
}

// hideFor returns the visibility timeout, in seconds, after which d is due. If the wait is
// longer than SQS's 12 hours, the message is parked: it becomes visible earlier, and the
// consumer that receives it hides it again.
func (c *Machine) hideFor(d *Delivery, now time.Time) int32 {
	due := d.verdict.Due
	if due.IsZero() {
		return 0 // at once: see releasedAtStop
	}
	requested := now.Add(-d.lease.Age(now))
	if by := d.verdict.carriedBy; d.verdict.requeue == byVisibility && by.After(now) {
		seconds, _ := retry.Visibility(requested, now, by)
		return seconds
	}
	seconds, short := retry.Visibility(requested, now, due)
	if short && d.verdict.requeue == byVisibility {
		visible := now.Add(time.Duration(seconds) * time.Second)
		missing := due.Sub(visible)
		if missing <= retry.AllowedShortfall(due.Sub(now)) {
			// Close enough: shorten the wait a little rather than park the message.
			d.verdict.Due = visible
			c.memory.Note(d.ID, now).Due = visible
		}
	}
	return seconds
}

// confirm is called when SQS has carried out what o asked for d.
func (c *Machine) confirm(o *Outbox, d *Delivery, now time.Time) {
	switch {
	case o == &c.copies, o == &c.requeues:
		// SQS has the copy: now, and only now, delete the original. If the original is
		// received again, it is only deleted.
		d.copied = true
		note := c.memory.Note(d.ID, now)
		note.Done, note.Copied, note.Due = true, true, time.Time{}
		if d.lease.Hidden() { // for as long as the copy waits: not beside it
			d.lease.Unhide(c.Lease)
			c.planKeeping(d.lease.RenewAt())
		}
		c.put(&c.deletes, d, now)
		return
	case o == &c.hides && d.verdict.requeue != byVisibility:
		d.lease.Hide(now, d.hiddenUntil, spread(d.hiddenUntil.Sub(now)/10, d.ID))
		c.requeue(d, now)
		return
	}
	c.health.settled(now)
	if d.verdict.Outcome != OutcomeKeep {
		c.health.mended()
	}
	switch d.verdict.Outcome {
	case OutcomeDelete:
		c.counts.Deleted++
		switch {
		case d.lease.Lost() || d.lease.Over(now):
			// The delete may have had no effect: another consumer may have received it.
			c.memory.Note(d.ID, now).Done = true
		case d.ran: // otherwise the note that it is done stays, as for a dead letter
			c.memory.Forget(d.ID)
		}
		if !d.copied { // the work of a copied message is not done yet
			c.deleted(d)
		}
	case OutcomeDeadLetter:
		c.counts.DeadLettered++
		c.logDeadLetter(d, now)
		// The note that it is done stays: a receive under way may bring it again.
	case OutcomeRetry:
		c.counts.Retried++
		c.rememberHandle(d, now)
	case OutcomeRelease:
		c.counts.Released++
		c.rememberHandle(d, now)
	case OutcomePark:
		c.counts.Parked++
		c.rememberHandle(d, now)
	case OutcomeKeep:
		c.counts.Kept++
	}
	c.announceExpiry(d, now)
	if d.verdict.comesAgain() {
		c.watchInFlight(now)
	}
	if d.verdict.requeue != byVisibility {
		c.counts.Requeued++
	}
	if d.verdict.requeue == becauseInFlight {
		c.budget.Spilled()
	}
	c.release(d, now)
}

// refused decides what to do about a settlement that SQS did not carry out.
func (c *Machine) refused(o *Outbox, d *Delivery, f *Failure, now time.Time) {
	if c.closed {
		return // the end of the stop budget has cancelled it: the Report names d
	}
	c.noteRefusal(o, d, f, now)
	switch o {
	case &c.copies:
		c.copyRefused(d, f, now)
		return
	case &c.requeues:
		c.requeueRefused(d, f, now)
		return
	}
	if d.verdict.Outcome == OutcomeDelete || d.copied {
		// If it is received again, it is deleted without being run.
		c.memory.Note(d.ID, now).Done = true
	}
	back := d.superseded() && clocks.Passed(d.hiddenUntil, now) // to us: the newer lease stands
	if o == &c.hides && !f.is(OfEntry|Rejected) && d.hiddenUntil.Before(d.lease.End()) && !back {
		d.lease.Shorten(d.hiddenUntil, c.Lease) // it may have been hidden
	}
	if d.superseded() && f.is(BySender) {
		c.settle(d, now) // the older handle was refused, the newer one is good
		return
	}
	if f.is(BySender) || d.lease.Over(now) {
		// The handle is no longer good, or not certain to be: on a standard queue
		// SQS would obey it and disturb the consumer that holds the message now.
		c.lose(d, f.Err)
		return
	}
	if o == &c.deletes {
		c.noteDenied("delete", f)
	} else {
		c.noteDenied("retry", f)
	}
	if d.refusals > 1 || !f.is(OfEntry) {
		c.complain("settle", "settling failed; trying again while the lease lasts", "action", o.name, "error", f.Err)
	}
	c.settleLater(d, now)
}

// settleLater tries d's settlement again after a backoff. While the request was under way,
// the lease could not be renewed: if a heartbeat is due, it is sent first.
func (c *Machine) settleLater(d *Delivery, now time.Time) {
	if clocks.Passed(d.lease.RenewAt(), now) {
		c.planKeeping(now)
	}
	wait := min(maxSettleBackoff, minSettleBackoff<<min(d.refusals-1, 10))
	wait -= spread(wait/2, d.ID)
	c.alarms.After(now.Add(wait), func(now time.Time) {
		if d.state == stateSettling && !c.closed {
			c.settle(d, now)
		}
	})
}

// lose lets go of a message that another consumer may hold by now. While its handler runs,
// it only ends the handler's context.
func (c *Machine) lose(d *Delivery, err error) {
	if d.state == stateRunning {
		if !d.lease.Lost() {
			d.lease.Lose()
			c.want(Effect{Kind: Interrupt, Delivery: d})
		}
		return // d is released when its handler has returned
	}
	now := c.now
	if d.state.settles() && (d.verdict.Outcome == OutcomeDelete || d.copied) {
		// If it is received again, it is deleted without being run.
		c.memory.Note(d.ID, now).Done = true
	}
	d.verdict = Verdict{Outcome: OutcomeLost, Err: err}
	c.release(d, now)
}

// release stops holding d: it is settled, or lost.
func (c *Machine) release(d *Delivery, now time.Time) {
	if d.verdict.Outcome == OutcomeLost {
		c.counts.Lost++
		c.rememberLost(d, now)
	}
	if d.state.waits() {
		c.unready(d, now)
	}
	c.move(d, stateGone)
	delete(c.held, d.ID)
	c.uncountBytes(d)
	if c.TellSettled {
		c.unreported = append(c.unreported, Settled{Subject: d.Subject(), Outcome: d.verdict.Outcome, Requeued: d.verdict.requeue != byVisibility, Reason: d.verdict.Reason, Due: d.verdict.Due, Requests: d.requests, Err: d.lostTo()})
	}
	if c.Queue.FIFO {
		c.deferred.gone = append(c.deferred.gone, d)
	}
}
