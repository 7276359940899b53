package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/groups"
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

// codeSkipNowhere is the code of the finding that FIFOSkip has nowhere to put what
// it skips.
const codeSkipNowhere = "fifo-skip-without-dead-letter-queue"

// joinGroup takes d, a message of a FIFO queue, into its group.
func (c *core) joinGroup(d *delivery, now time.Time) {
	d.member.Cargo, d.member.Size = d, d.size
	c.inGroup(c.groups.Join(&d.member, d.msg.GroupID, now), now)
}

// inGroup does what follows for the messages of a group. Those that are gone, which is
// about to be said of them, are left out.
func (c *core) inGroup(a groups.Answer[*delivery], now time.Time) {
	back := verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: a.Until}
	if a.Recall != nil {
		switch d := a.Recall.Cargo; {
		case d.state == stateScheduled:
			c.skip(d, d.verdict, now) // not before its time
		case d.state.waits():
			c.skip(d, back, now)
		}
	}
	for _, m := range a.Return {
		if d := m.Cargo; d.state.waits() {
			c.skip(d, back, now)
		}
	}
	if a.Begin != nil && a.Begin.Cargo.state.waits() {
		c.begin(a.Begin.Cargo, now)
	}
}

// giveBackWaiting gives back d, which waits, as v says, and what waits behind it in its
// group.
func (c *core) giveBackWaiting(d *delivery, v verdict, now time.Time) {
	if a := c.groups.GiveBack(&d.member, v.due); len(a.Return) > 0 {
		c.inGroup(a, now)
		return
	}
	c.skip(d, v, now)
}

// leaveGroup does what follows for its group when d is no longer held.
func (c *core) leaveGroup(d *delivery, now time.Time) {
	v := &d.verdict
	again := v.due
	if c.budget.High(now) {
		again = time.Time{} // what is visible behind a hidden head is not in flight
	}
	c.inGroup(c.groups.Gone(&d.member, v.outcome == OutcomeDelete || v.outcome == OutcomeDeadLetter, again, now), now)
}

// byGroup completes a verdict that gives d back, by what Config.FIFO says of its group.
func (c *core) byGroup(d *delivery, v verdict, now time.Time) verdict {
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

// mayHold says whether d, the head of its group, and what is behind it may be held here
// until it is due.
func (c *core) mayHold(d *delivery, due, now time.Time) bool {
	wait := due.Sub(now)
	if !c.queue.fifo || c.cfg.FIFO == FIFOBlock || c.draining || c.budget.High(now) || elapsed(d.requested, now)+wait >= holdAtMost || c.expiresBefore(d, due) {
		return false
	}
	all, _ := c.places()
	return c.groups.MayHold(&d.member, wait, max(all, maxBatch))
}

// holdGroup takes d back from its handler, to be run again when it is due; what is
// behind it waits with it.
func (c *core) holdGroup(d *delivery, v verdict, now time.Time) {
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
