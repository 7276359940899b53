package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/retry"
)

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
	case d.lease.Over(now):
		c.lose(d, errLeaseEnded) // the process was suspended: another consumer may have it by now
		return
	case known.Spent:
		d.watched = true                               // giveUps counted it when it was given up
		c.memory.Note(d.ID, now).Receives = d.receives // this receive was no attempt
		c.skip(d, Verdict{Outcome: OutcomeDeadLetter, Reason: known.Reason, Err: known.Err}, now)
		return
	case due.After(now) && !c.outlasted(d, known):
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
		c.skip(d, Verdict{Outcome: OutcomeDeadLetter, Reason: reason, Err: c.withLastError(d, errExhausted)}, now)
		return
	}
	if c.draining && (c.gateShut(d, now) || !c.timeAllows(now)) {
		c.unrun(d, now)
		c.skip(d, releasedAtStop(nil), now)
		return
	}
	if !c.gateShut(d, now) && c.confine(d, now) {
		return
	}
	c.readyOrShelve(d, now)
}

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

// mayHold reports whether d, the head of its group, and the messages behind it may be held
// here until d is due.
func (c *Machine) mayHold(d *Delivery, due, now time.Time) bool {
	wait := due.Sub(now)
	if !c.Queue.FIFO || c.FIFO == FIFOBlock || c.draining || c.budget.High(now) || d.lease.Age(now)+wait >= holdAtMost || c.expiresBefore(d, due) {
		return false
	}
	all, _ := c.places()
	return c.groups.MayHold(&d.member, wait, max(all, MaxBatch))
}

// confine dead-letters d if it kills processes, and makes it run alone if it seems to. It
// returns false if d may run like any other message.
func (c *Machine) confine(d *Delivery, now time.Time) bool {
	if d.marked() {
		if c.deaths(d, 0, now) >= c.deadly(d) {
			c.tell(Crasher{d.Subject()})
			c.skip(d, Verdict{Outcome: OutcomeDeadLetter, Reason: retry.ReasonCrash, Err: errCrashes}, now)
			return true
		}
		c.isolate(d, now)
		return true
	}
	if !c.suspicious(d, now) || !d.suspect && !c.solo.countSuspect(now) {
		return false
	}
	d.suspect = true // without a copy it may begin many times
	c.complain("suspect", "a message seems to crash the worker; it is run alone", "message", d.Subject())
	v := Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, alone: true, Err: errSuspect}
	if c.via(d, v, now) == carry.Hidden || !c.copyable(d, now) {
		c.isolate(d, now) // without a mark: only the queue's own maxReceiveCount ends it
		return true
	}
	c.skip(d, v, now)
	return true
}

// isolate makes d, which waits, run alone. If another message runs or waits to run alone, d
// is given back for a while. So is a marked message if others may start for longer than
// queueAlone: each crash while it waits here would count against it. If d should have been copied,
// and SQS has refused that, its gate may have been closed since.
func (c *Machine) isolate(d *Delivery, now time.Time) {
	s := c.solo
	switch {
	case c.gateShut(d, now):
		c.readyOrShelve(d, now)
	case s.next != nil || s.running != nil || d.marked() && s.rest.Sub(now) > queueAlone:
		c.giveBackForNow(d, now)
	default:
		c.move(d, stateAlone)
		s.next, s.owner = d, c
		c.claimSolo(now)
	}
}

// giveBackForNow gives d back while another message runs alone: for twice as long each time,
// because a marked message is copied each time, and a copy may become two if the reply is lost. So
// also if it only came before the others had had their time: copied as often as that, single messages
// became eleven where a twentieth of the replies is lost.
func (c *Machine) giveBackForNow(d *Delivery, now time.Time) {
	releases := c.releases(d, now)
	known := c.memory.Note(d.ID, now)
	known.Releases = releases + 1
	if d.marked() { // its receive was no attempt, and killed no process; a suspect without a mark must stay one
		known.Unrun(d.Attempt, d.receives)
	}
	wait := min(queueAloneAtMost, queueAlone<<min(releases, 10))
	c.skip(d, Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, Due: now.Add(wait + spread(wait, d.ID)), Err: errSuspect}, now)
}
