package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

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
	if !f.is(OfEntry | Rejected) {
		c.mayHaveHidden(o, d, now)
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
		c.warn("settle", "settling failed; trying again while the lease lasts", "action", o.name, "error", f.Err)
	}
	c.settleLater(d, now)
}

// mayHaveHidden notes that o's request, of which it is not known that SQS has carried it out for d's newest
// receipt handle, may have hidden d for less than its lease: another consumer may have d then.
func (c *Machine) mayHaveHidden(o *Outbox, d *Delivery, now time.Time) {
	back := d.superseded() && clocks.Passed(d.hiddenUntil, now) // to us: the newer lease stands
	if o == &c.hides && d.hiddenUntil.Before(d.lease.End()) && !back {
		d.lease.Shorten(d.hiddenUntil, c.Lease)
	}
}

// copyRefused decides what to do about a dead letter that SQS did not accept.
func (c *Machine) copyRefused(d *Delivery, f *Failure, now time.Time) {
	known := c.memory.Note(d.ID, now)
	switch {
	case !f.is(BySender) && f.is(Unacceptable) && !d.apart:
		d.apart = true // SQS may have refused another message of its batch
		c.settle(d, now)
	case f.is(BySender|Unacceptable) && !d.bare:
		// The story may make it too large for the queue: try once more without it.
		d.bare, d.apart = true, true
		c.settle(d, now)
	case f.is(BySender | Unacceptable):
		c.keepUnsendable(d, f.Err, retry.MaxVisibility, now)
	case f.is(Lasting):
		c.facts.refusedUntil = now.Add(refusedFor)
		c.doubtFacts()
		c.noteDenied("dead-letter", f)
		c.complain("dead-letter", "the dead-letter queue accepts no messages", "url", c.facts.DeadLetter.URL, "error", f.Err)
		c.settle(d, now)
	case d.lease.Over(now):
		c.lose(d, f.Err)
	case d.refusedLong(now) && known.Kept && !d.bare:
		d.bare = true // only the second time: the first time the queue may have been the cause
		c.settle(d, now)
	case d.refusedLong(now):
		known.Kept = true
		c.keepUnsendable(d, f.Err, keptBriefly, now)
	default:
		c.warn("dead-letter", "sending to the dead-letter queue failed; trying again", "url", c.facts.DeadLetter.URL, "error", f.Err)
		d.apart = d.refused.many >= apartFrom
		c.settleLater(d, now)
	}
}

// keepUnsendable keeps a message that is given up, and that the dead-letter queue does not
// accept.
func (c *Machine) keepUnsendable(d *Delivery, err error, wait time.Duration, now time.Time) {
	c.complain("unsendable", "the dead-letter queue does not accept this message; it is hidden and will be tried again", "message", d.Subject(), "url", c.facts.DeadLetter.URL, "wait", wait, "error", err)
	if until := now.Add(wait); until.After(c.unsendable.until) {
		c.unsendable.until = until
	}
	c.unsendable.err = err
	c.keep(d, wait, now)
}

// requeueRefused decides what to do about a copy that the queue did not accept.
func (c *Machine) requeueRefused(d *Delivery, f *Failure, now time.Time) {
	switch {
	case f.is(Damaged):
		c.cannotCopy(d, f.Err.Error(), "make sure that neither handlers nor a proxy change the message's attributes")
		c.fallBack(d, now)
	case !f.is(BySender) && f.is(Unacceptable) && !d.apart:
		d.apart = true // SQS may have refused another message of its batch
		c.settle(d, now)
	case f.is(BySender | Unacceptable), d.refusedLong(now) && (d.othersTaken() || c.stuck > maxStuck):
		if !d.bare && d.TraceSize > 0 {
			d.bare, d.apart = true, true
			c.settle(d, now)
			return
		}
		c.doubtFacts() // its MaximumMessageSize may be lower now
		c.cannotCopy(d, f.Err.Error(), "find out why the queue refuses a message that it has delivered")
		c.fallBack(d, now)
	case f.is(Lasting):
		c.facts.noCopiesUntil = now.Add(refusedFor)
		c.doubtFacts()
		problem := "the queue accepts no copies of its own messages: " + f.Err.Error()
		if c.hasRetryLane() {
			problem = "the retry lane accepts no messages: " + f.Err.Error()
		}
		c.health.degrade(problem)
		c.complain("requeue", problem, "remedy", "permit sqs:SendMessage on the queue")
		c.find(plan.Finding{
			Severity: plan.Error,
			Code:     codeRequeueRefused,
			Problem:  problem + ". Messages are given up at their last permitted receive, and waits beyond 12 hours are forgotten by a restart.",
			Remedy:   "permit sqs:SendMessage on the queue, or set Config.Via to ViaVisibility.",
		})
		c.fallBack(d, now)
	case d.lease.Over(now):
		c.lose(d, f.Err)
	default:
		c.warn("requeue", "sending a copy to the queue failed; trying again while the original is hidden", "error", f.Err)
		d.apart = d.refused.many >= apartFrom
		c.settleLater(d, now)
	}
}

// fallBack gives d back without a copy or, at its last permitted receive, gives it up.
func (c *Machine) fallBack(d *Delivery, now time.Time) {
	d.bare, d.apart = false, false // the dead-letter queue may accept what this queue refuses
	if d.verdict.alone && !c.draining && !d.lease.Over(now) {
		c.unhide(d) // it may run before it is due, and for longer
		c.move(d, stateWaiting)
		c.isolate(d, now)
		return
	}
	d.verdict.requeue = carry.Hidden
	d.verdict = c.withoutCopy(d, d.verdict, now)
	switch {
	case d.verdict.Outcome == OutcomeDeadLetter:
		c.spend(d, now)
		c.settle(d, now)
	case d.lease.Hidden() && !c.hiddenBriefly(d, now):
		c.confirm(&c.hides, d, now) // it is hidden already: that was the first step
	default:
		c.settle(d, now)
	}
}

// hiddenBriefly reports whether d, which no copy replaces, can be hidden for longer than it is: it was
// not to be dropped before it was copied. Other consumers do not know when it is due.
func (c *Machine) hiddenBriefly(d *Delivery, now time.Time) bool {
	if !c.carriedBy(d).IsZero() {
		return false // for minutes again, until the attributes can be read
	}
	seconds, _ := retry.Visibility(now.Add(-d.lease.Age(now)), now, d.verdict.Due)
	return now.Add(time.Duration(seconds) * time.Second).After(d.hiddenUntil.Add(2 * time.Second)) // each is rounded to a second
}
