package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/retry"
)

var errExpires = errors.New("its queue would have dropped it before it could be run again")

// expirations are the messages that the queue will drop before they can be tried again.
type expirations struct {
	waiting     int // announced since the last of them was dropped
	first, last time.Time
}

// expiresBefore reports whether the queue would drop d, if it waits until then, before a
// consumer is likely to receive it.
func (c *Machine) expiresBefore(d *Delivery, then time.Time) bool {
	return c.facts.queue().ExpiresBefore(c.kept(d), then)
}

// backBy returns until when d, which a copy replaces, is hidden at most: until it is due, but so that its queue does not
// drop it if this process dies before SQS has the copy.
func (c *Machine) backBy(d *Delivery, now time.Time) time.Time {
	due, q := d.verdict.Due, c.facts.queue()
	switch {
	case q.BeyondUnread(due.Sub(now)):
		return now.Add(carry.UnreadWait)
	case c.expiresBefore(d, due):
		return q.LastChance(c.kept(d))
	}
	return due
}

// withoutCopy completes a verdict that gives d back by visibility: if the queue would not
// deliver d again, d goes to the dead-letter queue now, with its story. While the queue's
// attributes are about to be read, d is hidden for minutes only, and decided on again then.
func (c *Machine) withoutCopy(d *Delivery, v Verdict, now time.Time) Verdict {
	v = c.atLastReceive(d, v)
	switch {
	case !v.comesAgain(), v.Due.IsZero(): // without a Due it becomes visible at once
	case c.facts.DeadLetter.URL == "" || now.Before(c.facts.refusedUntil):
	case c.expiresBefore(d, v.Due):
		if v.Err == nil {
			v.Err = errExpires
		}
		return c.insteadOf(d, v, retry.ReasonRetention)
	}
	if c.facts.Pending && v.comesAgain() && c.facts.queue().BeyondUnread(v.Due.Sub(now)) {
		v.carriedBy, v.untilRead = now.Add(carry.UnreadWait), true
	}
	return v
}

// carriedBy returns until when d may be hidden though it is due later; zero: until it is due. What was learnt since the verdict
// counts: other consumers do not know when d is due.
func (c *Machine) carriedBy(d *Delivery) time.Time {
	v := &d.verdict
	learnt := v.untilRead && !c.facts.unread && !c.expiresBefore(d, v.Due)
	if v.requeue != carry.Hidden || learnt {
		return time.Time{}
	}
	return v.carriedBy
}

// announceExpiry reports, once for each message, that the queue will drop d, which SQS has
// just hidden, before it can be received again.
func (c *Machine) announceExpiry(d *Delivery, now time.Time) {
	due := d.verdict.Due
	if due.IsZero() || d.verdict.requeue != carry.Hidden || !d.verdict.carriedBy.IsZero() {
		return
	}
	if d.verdict.comesAgain() && c.facts.queue().BeyondUnread(due.Sub(now)) {
		if due.After(c.unsure) {
			c.unsure = due
		}
		c.complain("unsure", "a message is hidden until it is due, though the queue's retention is not known: the queue may drop it before",
			"message", d.Subject(), "due", due, "error", d.verdict.Err, "remedy", "permit sqs:GetQueueAttributes on the queue, or permit copies")
	}
	if !c.expiresBefore(d, due) {
		return
	}
	note := c.memory.Note(d.ID, now)
	if note.Announced || note.LookAgain {
		return
	}
	note.Announced = true
	e := Expiring{Subject: d.Subject(), At: c.facts.queue().Expires(c.kept(d)), Outcome: d.verdict.Outcome}
	c.counts.Expiring++
	left := &c.expiring
	if now.After(left.last) {
		*left = expirations{first: e.At}
	}
	left.waiting++
	if e.At.Before(left.first) {
		left.first = e.At
	}
	if e.At.After(left.last) {
		left.last = e.At
	}
	c.complain("expires", "a message will be dropped by its queue before it can be tried again",
		"message", e.Subject, "expires", e.At, "outcome", e.Outcome.String(), "error", d.verdict.Err,
		"remedy", "give the queue a RedrivePolicy, or set Config.DeadLetterURL; or raise MessageRetentionPeriod, which holds for messages that are in the queue already")
	c.tell(e)
}

// unsureProblem describes, for the health, that messages may expire; empty if none is known to.
func (c *Machine) unsureProblem(now time.Time) string {
	if !c.unsure.After(now) {
		return ""
	}
	return fmt.Sprintf("the queue's retention is not known, because its attributes cannot be read: messages are hidden for up to %v, and the queue may drop them before", c.unsure.Sub(now).Round(time.Second))
}

// problem describes, for the health, the messages that will expire; empty if there is none.
func (e *expirations) problem(now time.Time) string {
	if e.waiting == 0 || now.After(e.last) {
		return ""
	}
	are := "are"
	if e.waiting == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s %s left to expire, the first at %s: the queue will drop them before they can be tried again, and no dead-letter queue accepts them", plural.Of(e.waiting, "message"), are, e.first.UTC().Format(time.RFC3339))
}

// atLastReceive returns v, unless v would give a message back whose next receive the queue's
// RedrivePolicy forbids: SQS would then move it to the dead-letter queue without a run and
// without a story. If no copy replaces it, it goes there now, with its story.
func (c *Machine) atLastReceive(d *Delivery, v Verdict) Verdict {
	if !v.comesAgain() || !c.facts.queue().LastReceive(d.receives) {
		return v
	}
	// The policy's attempts are not used up: it would have given the message up itself.
	return c.insteadOf(d, v, retry.ReasonReceives)
}

// insteadOf returns the verdict that gives d up, which v would have given back. If that is not because an attempt has
// failed, the error of the last attempt is told too.
func (c *Machine) insteadOf(d *Delivery, v Verdict, reason retry.Reason) Verdict {
	err := v.Err
	if v.Outcome != OutcomeRetry {
		err = c.withLastError(d, err)
	}
	return Verdict{Outcome: OutcomeDeadLetter, Reason: reason, Err: err, released: v.Outcome == OutcomeRelease}
}
