package consumer

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/retry"
)

// Prepare fills in the entries of the request for batch, and returns batch without the
// messages whose lease has ended: another consumer may have them, and a request would
// disturb it. The shell calls Prepare just before the request goes out: so receipt handles
// are the newest, and the time that has passed is part of the backoff.
func (c *Machine) Prepare(o *Outbox, batch []*Delivery, entries *[MaxBatch]Entry) []*Delivery {
	if o.leased {
		batch = c.dropExpired(batch, c.now)
	}
	if o == &c.hides {
		batch = c.dropOutdated(batch, c.now)
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
			entries[i] = Entry{History: c.historyFor(d, c.now), Seconds: c.facts.queue().Delay(c.waitOf(d, d.verdict, c.now), d.verdict.requeue), Bare: d.bare}
		}
	}
	return batch
}

// hideOf returns the entry that hides d.
func (c *Machine) hideOf(d *Delivery, now time.Time) Entry {
	d.named = d.Handle
	seconds := c.hideFor(d, now)
	d.hiddenUntil = now.Add(time.Duration(seconds) * time.Second)
	return Entry{Handle: d.Handle, Seconds: seconds}
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
	if by := c.carriedBy(d); !by.IsZero() {
		seconds, _ := retry.Visibility(requested, now, by)
		return seconds
	}
	if d.verdict.requeue != carry.Hidden {
		due = c.backBy(d, now)
	}
	seconds, visible, parked := carry.Hide(requested, now, due)
	if d.verdict.requeue == carry.Hidden && !parked && visible.Before(due) {
		d.verdict.Due = visible
		c.memory.Note(d.ID, now).Due = visible
	}
	return seconds
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

// dropOutdated takes the messages out of batch whose verdict is outdated, and settles them
// otherwise: hidden, they might not be received again.
func (c *Machine) dropOutdated(batch []*Delivery, now time.Time) []*Delivery {
	return slices.DeleteFunc(batch, func(d *Delivery) bool {
		if !c.outdated(d, now) {
			return false
		}
		c.move(d, stateSettling)
		c.settle(d, now)
		return true
	})
}

// Acknowledge takes in the results of the request for batch: messages that SQS confirmed are
// no longer held, those that it refused are sent again later.
func (c *Machine) Acknowledge(o *Outbox, batch []*Delivery, results *[MaxBatch]Failure) {
	now := c.now
	if slices.ContainsFunc(results[:len(batch)], func(f Failure) bool { return f.Err == nil }) {
		c.answered = now
	}
	if c.TellSettled {
		c.unreported = slices.Grow(c.unreported, len(batch)) // at once, not by doubling
	}
	for i, d := range batch {
		c.move(d, stateSettling)
		f := &results[i]
		switch {
		case f.Err == nil && d.superseded() && (o == &c.deletes || o == &c.hides):
			c.mayHaveHidden(o, d, now)
			c.settle(d, now) // SQS may have confirmed it for the older receipt handle only
		case f.Err == nil:
			o.taken++
			c.confirm(o, d, now)
		default:
			c.refused(o, d, f, now)
		}
	}
	o.calls.Ended()
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
		c.unhide(d) // for as long as the copy waits: not beside it
		c.put(&c.deletes, d, now)
		return
	case o == &c.hides && d.verdict.requeue != carry.Hidden:
		d.lease.Hide(now, d.hiddenUntil)
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
		case d.lease.Lost() || d.lease.Over(now) || d.doubtful || d.marked():
			// The delete may have had no effect: another consumer may have received it, or a marked message may
			// bear its mark only because earlier deletes had none.
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
		c.rememberHandle(d, now)
	}
	c.announceExpiry(d, now)
	if d.verdict.comesAgain() {
		c.watchInFlight(now)
	}
	if d.verdict.requeue != carry.Hidden {
		c.counts.Requeued++
	}
	if d.verdict.requeue == carry.Crowded {
		c.budget.Spilled()
	}
	c.release(d, now)
}
