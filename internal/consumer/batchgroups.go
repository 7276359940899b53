package consumer

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// A batch of a FIFO queue's messages contains the head of a group and the messages behind
// it that may run with it, in order. The messages before the first failure are deleted at
// once; the group goes on when SQS has acknowledged all of their deletes. The first message
// that failed becomes the head, with its own verdict. The messages behind it wait again, as
// if they had not been run. A lost lease counts as a failure here: some consumer will run
// the lost message again, and the rest of its group must come after it.

// fillWithGroup adds to batch the messages that may run with d, the head of their group, as
// far as they fit.
func (c *Machine) fillWithGroup(batch *[]End, d *Delivery, fits func(*Delivery) bool) {
	now := c.now
	behind := c.groups.Behind(&d.member)
	n := 0
	for n < len(behind) && c.mayGoAlong(behind[n].Cargo, now) && fits(behind[n].Cargo) {
		c.setOff(behind[n].Cargo)
		*batch = append(*batch, End{Delivery: behind[n].Cargo})
		n++
	}
	c.groups.Along(&d.member, n)
}

// mayGoAlong reports whether s, which waits behind the head of its group, may run in one
// batch with it: it may if [Machine.begin] would make it ready at once.
func (c *Machine) mayGoAlong(s *Delivery, now time.Time) bool {
	known := c.memory.Recall(s.ID, now)
	if !s.state.waits() || s.lease.Over(now) || known.Done || known.Spent || known.Due.After(now) || s.marked() {
		return false
	}
	if g := c.gates.byKey[s.Key]; g != nil && (g.Paused || g.State() != breaker.Closed) {
		return false
	}
	_, exhausted := c.policy.Exhausted(s.Attempt, c.local(s.FirstReceived), c.local(s.Sent), now)
	return !exhausted
}

// settleGroup ends the attempts at those messages among ends that are of the first
// message's group, and returns how many they are.
func (c *Machine) settleGroup(ends []End, took time.Duration, now time.Time) int {
	group := ends[0].Delivery.GroupID
	if n := slices.IndexFunc(ends, func(s End) bool { return s.Delivery.GroupID != group }); n >= 0 {
		ends = ends[:n]
	}
	at := slices.IndexFunc(ends, func(s End) bool { return s.Opinion.Err != nil || s.Delivery.lease.Lost() })
	if at < 0 {
		at = len(ends) - 1
	}
	for i := range ends[:at] {
		c.groups.Done(&ends[i].Delivery.member)
		c.endOf(&ends[i], took, now)
	}
	c.groups.Lead(&ends[at].Delivery.member)
	c.putBack(ends[at+1:], took, now)
	c.endOf(&ends[at], took, now)
	return len(ends)
}

// putBack makes messages wait again that a batch has run behind a failed message of their
// group. They will be run again: this run was no attempt.
func (c *Machine) putBack(ends []End, took time.Duration, now time.Time) {
	for i := range ends {
		s := &ends[i]
		d := s.Delivery
		s.Verdict = Verdict{Outcome: OutcomeHold, Reason: retry.ReasonRelease, Err: s.Opinion.Err}
		c.handlerMoved(d, now)
		c.throughBreaker(d, s.Verdict, s.Opinion, took, now)
		d.leaveTrail(s.Trail)
		s.Subject = d.Subject()
		c.counts.Held++
		c.move(d, stateWaiting)
		c.groups.Again(&d.member)
	}
	for i := range ends {
		if d := ends[i].Delivery; d.lease.Lost() && d.state.waits() {
			c.lose(d, errLeaseEnded)
		}
	}
}
