package reprise

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// FIFO says what becomes of a message group of a FIFO queue while one of its
// messages, the head, has failed. Whatever it says, the order within the group
// holds: nothing behind the head runs before the head has succeeded or been given
// up. A head whose attempts or age are used up is dead-lettered, and its group goes
// on.
type FIFO uint8

const (
	// FIFOHold keeps the head and what was received behind it here, under lease, for
	// waits of up to a minute, and runs the head again when it is due. That uses up
	// no receives, of which a FIFO queue has few: every message behind a failing one
	// is received with it. The cost: renewals of the leases; if this process dies,
	// the group waits for the end of them; and memory for as many messages as there
	// are places otherwise (Concurrency plus Prefetch, ten at least). Beyond that
	// number, and for longer waits, the group is blocked.
	FIFOHold FIFO = iota
	// FIFOBlock gives all back to the queue: the head is hidden until it is due, and
	// so is what was received behind it. Nothing is kept, and any consumer can go on
	// with the group. The cost: each wait uses up a receive of every message that
	// comes back, so that maxReceiveCount must be a multiple of MaxAttempts, and
	// attempts are counted only as far as this process has seen them.
	FIFOBlock
	// FIFOSkip dead-letters the head at its first failure, with its story, and the
	// group goes on: no group ever waits. The cost: there are no retries, what comes
	// behind must do without the message, and a redriven one comes out of order. An
	// open breaker and a [Release] are no failures: they hold. Without a dead-letter
	// queue it is FIFOHold.
	FIFOSkip
	fifoChoices
)

var fifoNames = [fifoChoices]string{"hold", "block", "skip"}

// String returns hold, block or skip.
func (f FIFO) String() string { return nameOf(fifoNames[:], uint8(f), "FIFO") }

// maxHold is the longest wait for which a group is held. For about so long,
// renewing leases takes no more calls than hiding and receiving again.
const maxHold = time.Minute

// codeSkipNowhere is the code of the finding that FIFOSkip has nowhere to put what
// it skips.
const codeSkipNowhere = "fifo-skip-without-dead-letter-queue"

// lane is one message group of a FIFO queue in our hands. One of its messages is
// under way: running, settling or waiting for its time. The next begins when SQS
// has acknowledged that the one before is gone, so that nothing can come back
// behind it.
type lane struct {
	head    *delivery   // under way
	waiting []*delivery // behind it, by sequence number
	// returning counts messages of the group that are being given back. Until they
	// are gone, no other may join: it could overtake them.
	returning int
	// ahead counts messages that a batch has done with and that are yet to be
	// deleted: until then, no other begins.
	ahead int
	// broken says that one of those is to come again: nothing begins before it.
	broken bool

	blocked, held int  // its part of Consumer.blocked and Consumer.heldBack
	along         load // its part of collector.behind
}

// joinLane puts a message of a FIFO queue behind the messages of its group. The
// caller holds c.mu.
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
	l.waiting = slices.Insert(l.waiting, at, d)
	c.recountLane(l)
}

// earlier compares sequence numbers: decimal numbers too long for an integer.
func earlier(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// inLane completes a verdict that gives d back, by what Config.FIFO says of its
// group. The caller holds c.mu.
func (c *Consumer) inLane(d *delivery, v verdict, now time.Time) verdict {
	switch {
	case !c.queue.fifo || !v.comesAgain():
	case v.outcome == OutcomeRetry && c.cfg.FIFO == FIFOSkip && c.facts.deadLetter.url != "":
		return verdict{outcome: OutcomeDeadLetter, reason: retry.ReasonSkip, err: v.err}
	case c.mayHold(d, v.due, now):
		v.outcome = OutcomeHold
		return v
	}
	return c.route(d, v, now)
}

// mayHold says whether d, the head of its lane, and what is behind it may be held
// here until it is due. The caller holds c.mu.
func (c *Consumer) mayHold(d *delivery, due, now time.Time) bool {
	wait := due.Sub(now)
	if !c.queue.fifo || c.cfg.FIFO == FIFOBlock || c.draining || wait > maxHold || c.budget.High(now) || elapsed(d.requested, now)+wait >= holdAtMost || c.expiresBefore(d, due) {
		return false
	}
	all, _ := c.places()
	return c.heldBack+1+len(c.lanes[d.msg.GroupID].waiting) <= max(all, maxBatch)
}

// holdGroup takes d back from its handler, to be run again when it is due; what is
// behind it waits with it. The caller holds c.mu.
func (c *Consumer) holdGroup(d *delivery, v verdict, now time.Time) {
	c.counts.Held++
	again := *d.msg // who was told of the last attempt has the old one
	if v.outcome = OutcomeRelease; v.reason != retry.ReasonRelease {
		v.outcome = OutcomeRetry
		again.Attempt++
	}
	d.verdict = v
	c.remember(d, now)
	d.msg, d.run, d.ran = &again, new(run), false
	c.move(d, stateWaiting)
	c.await(d, v, now)
}

// recountLane brings Consumer.blocked and Consumer.heldBack up to date with l. The
// former is bounded by the heads: SQS hands out no more of a group while what it
// has handed out together, ten at most, is in flight. The caller holds c.mu.
func (c *Consumer) recountLane(l *lane) {
	if l == nil {
		return // not on a FIFO queue
	}
	blocked, held := len(l.waiting), 0
	if l.head != nil && l.head.state == stateScheduled {
		blocked++
		held = blocked
	}
	c.blocked += blocked - l.blocked
	c.heldBack += held - l.held
	l.blocked, l.held = blocked, held
	if c.batches != nil {
		c.batches.recount(l)
	}
}

// leaveLane does what follows for its group when d is no longer held. If it was done
// with, its group goes on; otherwise the rest of the group is given back, to come
// again behind d. The same holds for what waits behind a message that is lost
// while it waits itself. The caller holds c.mu.
func (c *Consumer) leaveLane(d *delivery, now time.Time) {
	l := c.lanes[d.msg.GroupID]
	if l == nil {
		return
	}
	if d.ahead {
		c.goneAhead(l, d, now)
		c.endLane(d.msg.GroupID, l)
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
	if done && !l.broken && c.nextInLane(l, now) {
		return
	}
	due := d.verdict.due
	if due.Before(now) || c.budget.High(now) {
		// Visible behind a hidden head they cannot be received, and are not in flight.
		due = now.Add(time.Second)
	}
	siblings := l.waiting
	l.waiting = nil
	c.giveBackSiblings(l, siblings, due, now)
	c.endLane(d.msg.GroupID, l)
}

// nextInLane begins the next message of l, whose head is gone. It returns false if
// there is none. The caller holds c.mu.
func (c *Consumer) nextInLane(l *lane, now time.Time) bool {
	for i, next := range l.waiting {
		if next.state.waits() {
			l.head = next
			l.returning += i // released by a drain, and not yet gone
			l.waiting = l.waiting[i+1:]
			c.recountLane(l)
			c.begin(next, now)
			return true
		}
	}
	return false
}

// giveBackFrom releases d, which waits behind the head of its lane, until due, and
// with it what waits behind d: that must not overtake it. The caller holds c.mu.
func (c *Consumer) giveBackFrom(d *delivery, due, now time.Time) {
	l := c.lanes[d.msg.GroupID]
	at := slices.Index(l.waiting, d)
	siblings := l.waiting[at:]
	l.waiting = l.waiting[:at]
	c.giveBackSiblings(l, siblings, due, now)
	c.recountLane(l)
}

// giveBackSiblings releases messages that waited in l until due. What comes of
// the group before they are gone is given back too: it could overtake them. The
// caller holds c.mu.
func (c *Consumer) giveBackSiblings(l *lane, siblings []*delivery, due, now time.Time) {
	l.returning += len(siblings)
	for _, s := range siblings {
		if s.state.waits() {
			c.skip(s, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: due}, now)
		}
	}
}

// endLane forgets a lane in which nothing is left. The caller holds c.mu.
func (c *Consumer) endLane(group string, l *lane) {
	c.recountLane(l)
	if l.head == nil && l.returning+l.ahead == 0 && len(l.waiting) == 0 {
		delete(c.lanes, group)
	}
}

// checkChoice reports a Config.FIFO that the queue does not permit. The caller does
// not hold c.mu.
func (c *Consumer) checkChoice(facts *queueFacts) {
	if !c.queue.fifo || c.cfg.FIFO != FIFOSkip || facts.deadLetter.url != "" {
		return
	}
	c.found(plan.Finding{
		Severity: plan.Error,
		Code:     codeSkipNowhere,
		Problem:  "Config.FIFO is to skip what fails, but there is no dead-letter queue to put it in: failed messages are retried, and their groups wait.",
		Remedy:   "give the queue a RedrivePolicy, or set Config.DeadLetterURL.",
	})
}
