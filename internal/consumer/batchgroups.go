package consumer

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// A batch of a FIFO queue's messages takes the head of a group and what is ready to
// go along behind it, in order. What succeeded before the first failure is deleted
// at once, ahead of the rest: the group goes on when SQS has acknowledged all of it.
// The first that failed becomes the head, with its own verdict; what is behind it
// waits again, as if it had not been run. A lost lease is a failure here: what was
// lost is run again by somebody, and must find the rest of its group behind it.

// fillWithGroup takes into batch what may go along behind d, the head of its group, as far
// as it fits. It returns false when something did not.
func (c *Machine) fillWithGroup(batch *[]End, d *Delivery, fits func(*Delivery) bool) bool {
	now := c.now
	behind := c.groups.Behind(&d.member)
	n, full := 0, false
	for n < len(behind) && !full && c.mayGoAlong(behind[n].Cargo, now) {
		if full = !fits(behind[n].Cargo); !full {
			c.setOff(behind[n].Cargo)
			*batch = append(*batch, End{Delivery: behind[n].Cargo})
			n++
		}
	}
	c.groups.Along(&d.member, n)
	return !full
}

// mayGoAlong reports whether s, which waits behind the head of its group, may run in one
// batch with it: as one of which [Machine.begin] would have nothing to say.
func (c *Machine) mayGoAlong(s *Delivery, now time.Time) bool {
	known := c.memory.Recall(s.ID, now)
	if !s.state.waits() || known.Done || known.Spent || known.Due.After(now) || s.marked() {
		return false
	}
	if g := c.gates.byKey[s.Key]; g != nil && (g.paused || g.state() != breaker.Closed) {
		return false
	}
	_, exhausted := c.policy.Exhausted(s.Attempt, c.local(s.FirstReceived), c.local(s.Sent), now)
	return !exhausted
}

// settleGroup ends the attempts of the first group's messages among ends, and returns
// how many they are.
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

// putBack has messages that a batch has run behind a failed one of their group wait
// again, to be run again: this was no attempt.
func (c *Machine) putBack(ends []End, took time.Duration, now time.Time) {
	for i := range ends {
		s := &ends[i]
		d := s.Delivery
		s.Verdict = Verdict{Outcome: OutcomeHold, Reason: retry.ReasonRelease, Err: s.Opinion.Err}
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
