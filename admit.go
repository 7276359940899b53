package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// lane is one message group of a FIFO queue in our hands. One of its messages is
// under way: running or settling. The next begins when SQS has acknowledged that
// the one before is gone, so that nothing can come back behind it.
type lane struct {
	head    *delivery   // under way
	waiting []*delivery // behind it, by sequence number
}

// admit takes a received message into our hands. A message that is here already
// is not run twice: the one that is here adopts the newer receipt handle. The
// caller holds c.mu.
func (c *Consumer) admit(d *delivery, now time.Time) {
	if old := c.held[d.msg.ID]; old != nil {
		d.duplicate = true
		c.adopt(old, d)
		return
	}
	c.held[d.msg.ID] = d
	c.waiting++
	d.msg.Attempt = c.attemptNumber(d, now)
	if c.queue.fifo {
		c.joinLane(d, now)
		return
	}
	c.begin(d, now)
}

// adopt gives old, which is held, the lease and handle of its redelivery d.
func (c *Consumer) adopt(old, d *delivery) {
	old.handle = d.handle
	old.receives = max(old.receives, d.receives)
	old.requested, old.expires, old.renewAt = d.requested, d.expires, d.renewAt
	old.lost = false // but its handler has been interrupted
	if old.inCall && old.phase == phaseSettling {
		old.stale = true // the request under way names the older handle
	}
}

// joinLane puts a message of a FIFO queue behind the messages of its group.
func (c *Consumer) joinLane(d *delivery, now time.Time) {
	l := c.lanes[d.msg.GroupID]
	if l == nil {
		c.lanes[d.msg.GroupID] = &lane{head: d}
		c.begin(d, now)
		return
	}
	at := len(l.waiting)
	for at > 0 && earlier(d.sequence, l.waiting[at-1].sequence) {
		at--
	}
	l.waiting = append(l.waiting, nil)
	copy(l.waiting[at+1:], l.waiting[at:])
	l.waiting[at] = d
}

// earlier compares sequence numbers: decimal numbers too long for an integer.
func earlier(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// begin decides what a message that is next in line needs: a run of the handler,
// or, by what is remembered of it, only a settlement.
func (c *Consumer) begin(d *delivery, now time.Time) {
	known := c.memory.recall(d.msg.ID, now)
	switch {
	case known.done:
		// Its work was done here, only the delete was not acknowledged.
		c.skip(d, verdict{outcome: OutcomeDelete}, now)
		return
	case known.spent:
		c.skip(d, verdict{outcome: OutcomeDeadLetter, reason: known.reason, err: known.err}, now)
		return
	case known.due.Sub(now) > earlyTolerance:
		// Parked, or delivered before its time: hide it again.
		c.skip(d, verdict{outcome: OutcomeRetry, reason: retry.ReasonPolicy, due: known.due}, now)
		return
	}
	first, sent := c.clock.local(d.msg.FirstReceived), c.clock.local(d.msg.Sent)
	if reason, exhausted := c.policy.Exhausted(d.msg.Attempt, first, sent, now); exhausted {
		c.skip(d, verdict{outcome: OutcomeDeadLetter, reason: reason, err: errExhausted}, now)
		return
	}
	if c.draining && !c.timeAllows(now) {
		c.skip(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease}, now)
		return
	}
	c.ready.push(d)
}

// earlyTolerance is how much before its time a message may be run: SQS's clock
// and ours differ in the milliseconds.
const earlyTolerance = 500 * time.Millisecond

// attemptNumber is the number of the run that d would now get. It is exact where
// this process has had every receive of the message so far. Otherwise it is the
// number of runs that fit into the time since the message was first received:
// receives alone prove nothing, for deploys, releases and throttles burn them. On
// FIFO queues failing neighbours burn them too, by the dozen, so that there only
// runs seen here count.
func (c *Consumer) attemptNumber(d *delivery, now time.Time) int {
	known := c.memory.recall(d.msg.ID, now)
	n := known.runs + 1
	if c.queue.fifo || d.receives == known.receives+1 {
		return n
	}
	since := now.Sub(c.clock.local(d.msg.FirstReceived))
	return max(n, c.policy.Attempts(d.msg.OriginID, d.receives, since))
}

// skip settles d without running its handler.
func (c *Consumer) skip(d *delivery, v verdict, now time.Time) {
	c.waiting--
	c.settling++
	d.phase = phaseSettling
	d.verdict = v
	c.settle(d, now)
}

// leaveLane is called when d, of a FIFO queue, is no longer held. If it was done
// with, its group goes on; otherwise the rest of the group is given back, to come
// again behind d.
func (c *Consumer) leaveLane(d *delivery, now time.Time) {
	l := c.lanes[d.msg.GroupID]
	if l == nil || l.head != d {
		return // it waited behind another
	}
	done := d.verdict.outcome == OutcomeDelete || d.verdict.outcome == OutcomeDeadLetter
	if done {
		for i, next := range l.waiting {
			if next.phase == phaseWaiting {
				l.head, l.waiting = next, l.waiting[i+1:]
				c.begin(next, now)
				c.startWorkers()
				return
			}
		}
	}
	delete(c.lanes, d.msg.GroupID)
	due := d.verdict.due
	if due.Before(now) {
		due = now.Add(time.Second)
	}
	for _, sibling := range l.waiting {
		if sibling.phase == phaseWaiting {
			c.skip(sibling, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: due}, now)
		}
	}
}
