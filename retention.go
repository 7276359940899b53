package reprise

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/retry"
)

// A queue drops a message when its retention is over, hidden or not, and says
// nothing. A message whose wait would end too late is therefore requeued, or
// dead-lettered while there is time, or at least announced.

// Expiring is a message that its queue will drop before it can be tried again:
// there is no dead-letter queue to put it in, and no copy can take its place.
type Expiring struct {
	Message *Message
	// At is when the queue drops it, on the consumer's clock.
	At time.Time
	// Outcome is what became of the message: OutcomeKeep if it was given up, else
	// why it waits.
	Outcome Outcome
}

// maxLastChance bounds how long before the end of its retention a message must be
// due, so that somebody receives it in time.
const maxLastChance = time.Hour

var errExpires = errors.New("its queue would have dropped it before it could be run again")

// expirations are the messages that are left to expire. Part of the core.
type expirations struct {
	waiting     int // announced since the last of them was dropped
	first, last time.Time
}

// expiry is when the queue drops d, on our clock. Where SQS did not say when it was
// sent, that is never: a zero time.
func (c *core) expiry(d *delivery) time.Time {
	sent := d.enqueued()
	if sent.IsZero() {
		return sent
	}
	return c.clock.local(sent).Add(c.facts.retention())
}

// expiresBefore says that d, if it waits until then, is dropped before anybody can be
// expected to have received it.
func (c *core) expiresBefore(d *delivery, then time.Time) bool {
	expires := c.expiry(d)
	return !expires.IsZero() && then.After(expires.Add(-min(maxLastChance, c.facts.retention()/10)))
}

// withoutCopy completes a verdict that gives d back by visibility: where the queue
// would not let it come again, it goes to the dead-letter queue now, with its story.
func (c *core) withoutCopy(d *delivery, v verdict, now time.Time) verdict {
	v = c.atLastReceive(d, v)
	switch {
	case !v.comesAgain(), v.due.IsZero(): // the latter is there to be received
	case c.facts.deadLetter.url == "" || now.Before(c.facts.refusedUntil):
	case c.expiresBefore(d, v.due):
		if v.err == nil {
			v.err = errExpires
		}
		return verdict{outcome: OutcomeDeadLetter, reason: retry.ReasonRetention, err: d.withLastError(v.err)}
	}
	return v
}

// announceExpiry says so, once, if d, which SQS has just hidden, will be dropped before
// it comes again.
func (c *core) announceExpiry(d *delivery, now time.Time) {
	due := d.verdict.due
	if due.IsZero() || d.verdict.requeue != byVisibility || d.verdict.carried || !c.expiresBefore(d, due) {
		return
	}
	note := c.memory.Note(d.msg.ID, now)
	if note.Announced {
		return
	}
	note.Announced = true
	e := Expiring{Message: d.msg, At: c.expiry(d), Outcome: d.verdict.outcome}
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
	c.complainLater("expires", "a message will be dropped by its queue before it can be tried again",
		"message", e.Message, "expires", e.At, "outcome", e.Outcome.String(), "error", d.verdict.err,
		"remedy", "give the queue a RedrivePolicy, or set Config.DeadLetterURL; or raise MessageRetentionPeriod, which holds for messages that are in the queue already")
	if f := c.cfg.Observer.Expiring; f != nil {
		c.inOrder(func(shell *Consumer) { shell.tell(func() { f(shell.runCtx, e) }) })
	}
}

// problem is what health says of messages that are left to expire; empty if none
// is.
func (e *expirations) problem(now time.Time) string {
	if e.waiting == 0 || now.After(e.last) {
		return ""
	}
	are := "are"
	if e.waiting == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s %s left to expire, the first at %s: the queue drops what expires before it can be tried again, and no dead-letter queue takes it", plural.Of(e.waiting, "message"), are, e.first.UTC().Format(time.RFC3339))
}
