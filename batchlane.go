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

// fillWithGroup takes into b what may go along behind d, the head of its group, as
// far as it fits. It returns false when something did not. The caller holds c.mu.
func (c *Consumer) fillWithGroup(b *batch, d *delivery, fits func(*delivery) bool) bool {
	l := c.lanes[d.msg.GroupID]
	now := time.Now()
	n, full := 0, false
	for _, s := range l.waiting {
		if !c.mayGoAlong(s, now) {
			break
		}
		if full = !fits(s); full {
			break
		}
		c.seat(b, s)
		n++
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
	c.recountLane(l)
	return !full
}

// mayGoAlong says whether s, which waits behind the head of its lane, may run in one
// batch with it: as one of which [Consumer.begin] would have nothing to say.
func (c *Consumer) mayGoAlong(s *delivery, now time.Time) bool {
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

// settleGroup ends the attempts of the first group's messages among seats, and
// returns how many they are. The caller holds c.mu.
func (c *Consumer) settleGroup(seats []seat, took time.Duration, now time.Time) int {
	group := seats[0].msg.GroupID
	if n := slices.IndexFunc(seats, func(s seat) bool { return s.msg.GroupID != group }); n >= 0 {
		seats = seats[:n]
	}
	l := c.lanes[group]
	at := slices.IndexFunc(seats, func(s seat) bool { return s.opinion.err != nil || s.d.leaseState.lost() })
	if at < 0 {
		at = len(seats) - 1
	}
	for i := range seats[:at] {
		seats[i].d.ahead = true
		l.ahead++
		c.settleSeat(&seats[i], took, now)
	}
	l.head = seats[at].d
	c.putBack(l, seats[at+1:], took, now)
	c.settleSeat(&seats[at], took, now)
	return len(seats)
}

// putBack has messages that a batch has run behind a failed one of their group wait
// again, to be run again: this was no attempt. The caller holds c.mu.
func (c *Consumer) putBack(l *lane, seats []seat, took time.Duration, now time.Time) {
	again := make([]*delivery, 0, len(seats))
	for i := range seats {
		s := &seats[i]
		d := s.d
		s.verdict = verdict{outcome: OutcomeHold, reason: retry.ReasonRelease, err: s.opinion.err}
		c.throughBreaker(d, s.verdict, s.opinion, took, now)
		s.leaveTrail()
		c.counts.Held++
		c.move(d, stateWaiting)
		d.run = new(run)
		again = append(again, d)
	}
	l.waiting = slices.Concat(again, l.waiting)
	c.recountLane(l)
	for _, d := range again {
		if d.leaseState.lost() && d.state.waits() {
			c.lose(d, errLeaseEnded)
		}
	}
}

// goneAhead is called when d, which was done with ahead of the head of its lane, is
// no longer held. If it is to come again all the same, the rest of its group is given
// back, to come behind it. The caller holds c.mu.
func (c *Consumer) goneAhead(l *lane, d *delivery, now time.Time) {
	l.ahead--
	l.broken = l.broken || d.verdict.outcome != OutcomeDelete
	soon := now.Add(time.Second)
	switch head := l.head; {
	case l.broken && head == nil:
		siblings := l.waiting
		l.waiting = nil
		c.giveBackSiblings(l, siblings, soon, now)
	case l.broken && head.state == stateScheduled:
		c.skip(head, head.verdict, now) // and with it what is behind it
	case l.broken && head.state.waits():
		c.skip(head, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: soon}, now)
	case l.broken || l.ahead > 0:
	case head == nil:
		c.nextInLane(l, now)
	case head.stalled && head.state.waits():
		head.stalled = false
		c.begin(head, now)
	}
}
