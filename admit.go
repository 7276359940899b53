package reprise

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// lane is one message group of a FIFO queue in our hands. One of its messages is
// under way: running or settling. The next begins when SQS has acknowledged that
// the one before is gone, so that nothing can come back behind it.
type lane struct {
	head    *delivery   // under way
	waiting []*delivery // behind it, by sequence number
	// returning counts messages of the group that are being given back. Until they
	// are gone, no other may join: it could overtake them.
	returning int
}

// admit takes a received message into our hands. A message that is here already
// is not run twice: the one that is here adopts the newer receipt handle. The
// caller holds c.mu.
func (c *Consumer) admit(d *delivery, now time.Time) {
	if old := c.held[d.msg.ID]; old != nil {
		d.duplicate = true
		c.counts.Duplicates++
		c.adopt(old, d)
		return
	}
	c.held[d.msg.ID] = d
	c.waiting++
	c.memory.unpark(d.msg.ID)
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
	old.lost = false   // but its handler has been interrupted
	old.hidden = false // by the older handle
	if old.inCall {
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
	if l.returning > 0 {
		c.giveBackSiblings(l, []*delivery{d}, now.Add(time.Second), now)
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
	due := known.due
	if known.receives == 0 && d.history != nil { // nothing is known of this copy
		due = d.history.due
	}
	switch {
	case known.done:
		// Its work was done here, only the delete was not acknowledged.
		c.skip(d, verdict{outcome: OutcomeDelete}, now)
		return
	case known.spent:
		c.skip(d, verdict{outcome: OutcomeDeadLetter, reason: known.reason, err: known.err}, now)
		return
	case due.Sub(now) > shortHold:
		// Parked, or delivered before its time: hide it again, and remember it for
		// as long again. This receive was no attempt.
		note := c.memory.note(d.msg.ID, now)
		note.unrun(d)
		note.due = due
		c.skip(d, d.parked(note), now)
		return
	case due.After(now):
		// SQS's clock and ours differ a little: it is leased, so it can wait here.
		time.AfterFunc(due.Sub(now), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if d.phase == phaseWaiting {
				c.begin(d, time.Now())
				c.startWorkers()
			}
		})
		return
	}
	first, sent := c.clock.local(d.msg.FirstReceived), c.clock.local(d.msg.Sent)
	if reason, exhausted := c.policy.Exhausted(d.msg.Attempt, first, sent, now); exhausted {
		c.skip(d, verdict{outcome: OutcomeDeadLetter, reason: reason, err: d.withLastError(errExhausted)}, now)
		return
	}
	if c.draining && (c.gateShut(d) || !c.timeAllows(now)) {
		c.skip(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease}, now)
		return
	}
	if !c.gateShut(d) && c.confine(d, now) {
		return
	}
	c.line(d, now)
}

// shortHold is how long a message that is not yet due is held rather than hidden
// again.
const shortHold = 2 * time.Second

// attemptNumber is the number of the run that d would now get. It is exact where
// this process has had every receive of the message so far, and at the first
// receive of a copy, whose history counts the runs before it. Otherwise it is the
// number of runs that fit into the time since then: receives alone prove nothing,
// for deploys, releases and throttles burn them. On FIFO queues failing neighbours
// burn them too, by the dozen, so that there only runs seen here count.
//
// What fits is no proof either. A message whose last attempt fails goes to the
// dead-letter queue, if there is one: as long as it comes, it has an attempt left.
func (c *Consumer) attemptNumber(d *delivery, now time.Time) int {
	known := c.memory.recall(d.msg.ID, now)
	n := max(known.runs, d.made()) + 1
	if c.queue.fifo || d.receives == known.receives+1 {
		return n
	}
	fit := d.fit
	if limit := c.policy.MaxAttempts; limit > 0 && c.facts.deadLetter.url != "" {
		fit = min(fit, limit)
	}
	return max(n, fit)
}

// parked is the verdict on d, which is not yet due: what is remembered of its wait
// stays.
func (d *delivery) parked(known *recollection) verdict {
	v := verdict{outcome: OutcomePark, reason: retry.ReasonPolicy, due: known.due, unavailable: known.unavailable}
	if known.asked {
		v.reason = retry.ReasonRetryAfter
	}
	if d.history != nil {
		v.unavailable = v.unavailable || d.history.Unavailable
	}
	return v
}

// skip settles d without running its handler.
func (c *Consumer) skip(d *delivery, v verdict, now time.Time) {
	v = c.route(d, v, now)
	c.unready(d, now)
	c.waiting--
	c.settling++
	d.phase = phaseSettling
	d.verdict = v
	c.settle(d, now)
}

// unready takes d out of those that wait to be started.
func (c *Consumer) unready(d *delivery, now time.Time) {
	c.stepOut(d, now)
	c.leaveFloor(d, now)
}

// leaveLane is called when d, of a FIFO queue, is no longer held. If it was done
// with, its group goes on; otherwise the rest of the group is given back, to come
// again behind d. The same holds for what waits behind a message that is lost
// while it waits itself.
func (c *Consumer) leaveLane(d *delivery, now time.Time) {
	l := c.lanes[d.msg.GroupID]
	if l == nil {
		return
	}
	if l.head != d {
		if at := slices.Index(l.waiting, d); at >= 0 {
			behind := l.waiting[at+1:]
			l.waiting = l.waiting[:at]
			c.giveBackSiblings(l, behind, now.Add(time.Second), now)
		} else {
			l.returning--
		}
		c.endLane(d.msg.GroupID, l)
		return
	}
	l.head = nil
	done := d.verdict.outcome == OutcomeDelete || d.verdict.outcome == OutcomeDeadLetter
	if done {
		for i, next := range l.waiting {
			if next.phase == phaseWaiting {
				l.head = next
				l.returning += i // released by a drain, and not yet gone
				l.waiting = l.waiting[i+1:]
				c.begin(next, now)
				c.startWorkers()
				return
			}
		}
	}
	due := d.verdict.due
	if due.Before(now) {
		due = now.Add(time.Second)
	}
	siblings := l.waiting
	l.waiting = nil
	c.giveBackSiblings(l, siblings, due, now)
	c.endLane(d.msg.GroupID, l)
}

// giveBackSiblings releases messages that waited in l until due. What comes of
// the group before they are gone is given back too: it could overtake them.
func (c *Consumer) giveBackSiblings(l *lane, siblings []*delivery, due, now time.Time) {
	l.returning += len(siblings)
	for _, s := range siblings {
		if s.phase == phaseWaiting {
			c.skip(s, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: due}, now)
		}
	}
}

// endLane forgets a lane in which nothing is left.
func (c *Consumer) endLane(group string, l *lane) {
	if l.head == nil && l.returning == 0 && len(l.waiting) == 0 {
		delete(c.lanes, group)
	}
}
