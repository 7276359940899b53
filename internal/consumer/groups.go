package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/retry"
)

// joinGroup adds d, a message of a FIFO queue, to its group.
func (c *Machine) joinGroup(d *Delivery, now time.Time) {
	d.member.Cargo, d.member.Size = d, d.size
	c.inGroup(c.groups.Join(&d.member, d.GroupID, now), now)
}

// inGroup carries out what a says about the messages of a group. It leaves out those that
// have gone meanwhile.
func (c *Machine) inGroup(a groups.Answer[*Delivery], now time.Time) {
	back := Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, Due: a.Until}
	if a.Recall != nil {
		switch d := a.Recall.Cargo; {
		case d.state == stateScheduled:
			c.skip(d, d.verdict, now) // not before its time
		case d.state.waits():
			c.unrun(d, now)
			c.skip(d, back, now)
		}
	}
	for _, m := range a.Return {
		if d := m.Cargo; d.state.waits() {
			c.unrun(d, now)
			c.skip(d, back, now)
		}
	}
	if a.Begin != nil && a.Begin.Cargo.state.waits() {
		c.begin(a.Begin.Cargo, now)
	}
}

// giveBackWaiting gives back d, which waits, as v says, and the messages that wait behind it
// in its group.
func (c *Machine) giveBackWaiting(d *Delivery, v Verdict, now time.Time) {
	if a := c.groups.GiveBack(&d.member, v.Due); len(a.Return) > 0 {
		c.inGroup(a, now)
		return
	}
	c.skip(d, v, now)
}

// leaveGroup is called when d is no longer held: its group goes on, or is given back.
func (c *Machine) leaveGroup(d *Delivery, now time.Time) {
	v := &d.verdict
	again := v.Due
	if c.budget.High(now) {
		again = time.Time{} // the others become visible: behind a hidden head they are not in flight
	}
	c.inGroup(c.groups.Gone(&d.member, v.Outcome == OutcomeDelete || v.Outcome == OutcomeDeadLetter, again, now), now)
}

// byGroup completes a verdict that gives d back, as Settings.FIFO says.
func (c *Machine) byGroup(d *Delivery, v Verdict, now time.Time) Verdict {
	switch {
	case !c.Queue.FIFO || !v.comesAgain():
	case v.Outcome == OutcomeRetry && c.FIFO == FIFOSkip && c.facts.DeadLetter.URL != "":
		return Verdict{Outcome: OutcomeDeadLetter, Reason: retry.ReasonSkip, Err: v.Err}
	case c.mayHold(d, v.Due, now):
		v.Outcome = OutcomeHold
		return v
	}
	return c.route(d, v, now)
}

// holdGroup takes d back from its handler, and runs it again when it is due; the messages
// behind it wait with it.
func (c *Machine) holdGroup(d *Delivery, v Verdict, now time.Time) {
	c.counts.Held++
	next := d.Attempt
	if v.Outcome = OutcomeRelease; v.Reason != retry.ReasonRelease {
		v.Outcome = OutcomeRetry
		next++
	}
	d.verdict = v
	c.remember(d, now)
	d.Attempt = next
	c.move(d, stateWaiting)
	c.await(d, v, now)
}
