package reprise

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// A batch of a FIFO queue's messages takes the head of a group and what is ready to
// go along behind it, in order. What succeeded before the first failure is deleted
// at once, ahead of the rest: the group goes on when SQS has acknowledged all of it.
// The first that failed becomes the head, with its own verdict; what is behind it
// waits again, as if it had not been run. A lost lease is a failure here: what was
// lost is run again by somebody, and must find the rest of its group behind it.

// fillWithGroup takes into b what may go along behind d, the head of its group, as far
// as it fits. It returns false when something did not.
func (c *core) fillWithGroup(b *batch, d *delivery, fits func(*delivery) bool) bool {
	now := c.now
	behind := c.groups.Behind(&d.member)
	n, full := 0, false
	for n < len(behind) && !full && c.mayGoAlong(behind[n].Cargo, now) {
		if full = !fits(behind[n].Cargo); !full {
			c.seat(b, behind[n].Cargo)
			n++
		}
	}
	c.groups.Along(&d.member, n)
	return !full
}

// mayGoAlong says whether s, which waits behind the head of its group, may run in one
// batch with it: as one of which [Consumer.begin] would have nothing to say.
func (c *core) mayGoAlong(s *delivery, now time.Time) bool {
	known := c.memory.Recall(s.msg.ID, now)
	if !s.state.waits() || known.Done || known.Spent || known.Due.After(now) || s.marked() {
		return false
	}
	if g := c.gates.byKey[s.key]; g != nil && (g.paused || g.state() != BreakerClosed) {
		return false
	}
	_, exhausted := c.policy.Exhausted(s.msg.Attempt, c.clock.local(s.msg.FirstReceived), c.clock.local(s.msg.Sent), now)
	return !exhausted
}

// settleGroup ends the attempts of the first group's messages among seats, and returns
// how many they are.
func (c *core) settleGroup(seats []seat, took time.Duration, now time.Time) int {
	group := seats[0].msg.GroupID
	if n := slices.IndexFunc(seats, func(s seat) bool { return s.msg.GroupID != group }); n >= 0 {
		seats = seats[:n]
	}
	at := slices.IndexFunc(seats, func(s seat) bool { return s.opinion.err != nil || s.d.leaseState.lost() })
	if at < 0 {
		at = len(seats) - 1
	}
	for i := range seats[:at] {
		c.groups.Done(&seats[i].d.member)
		c.settleSeat(&seats[i], took, now)
	}
	c.groups.Lead(&seats[at].d.member)
	c.putBack(seats[at+1:], took, now)
	c.settleSeat(&seats[at], took, now)
	return len(seats)
}

// putBack has messages that a batch has run behind a failed one of their group wait
// again, to be run again: this was no attempt.
func (c *core) putBack(seats []seat, took time.Duration, now time.Time) {
	for i := range seats {
		s := &seats[i]
		d := s.d
		s.verdict = verdict{outcome: OutcomeHold, reason: retry.ReasonRelease, err: s.opinion.err}
		c.throughBreaker(d, s.verdict, s.opinion, took, now)
		s.leaveTrail()
		c.counts.Held++
		c.move(d, stateWaiting)
		d.run = new(run)
		c.groups.Again(&d.member)
	}
	for i := range seats {
		if d := seats[i].d; d.leaseState.lost() && d.state.waits() {
			c.lose(d, errLeaseEnded)
		}
	}
}
