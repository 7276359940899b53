package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// MaxStoryError is how many bytes of an error a story tells.
	MaxStoryError = 1000

	maxAttributes = 10 // that SQS lets one message have

	// refusedFor is how long a queue that refused a copy for a lasting reason is not
	// asked again.
	refusedFor = time.Minute
)

// giveUp sends d to the dead-letter queue as a copy with its story; the original is
// deleted when the copy is confirmed. Where that cannot be, it is hidden as long as SQS
// permits, and that is said aloud: nothing is dropped.
func (c *Machine) giveUp(d *Delivery, now time.Time) {
	switch {
	case d.copied:
		c.put(&c.deletes, d, now)
	case c.facts.DeadLetter.URL != "" && !now.Before(c.facts.refusedUntil):
		c.put(&c.copies, d, now)
	case c.facts.Pending:
		d.refusals++
		c.settleLater(d, now) // whether there is a dead-letter queue will be known soon, or after its lease
	default:
		c.keepUndeliverable(d, now)
	}
}

// keepUndeliverable keeps a message that is given up and has nowhere to go.
func (c *Machine) keepUndeliverable(d *Delivery, now time.Time) {
	problem := "messages are given up, but no dead-letter queue takes them"
	c.health.degrade(problem)
	c.complain("keep", problem+"; they stay hidden until the queue's retention deletes them",
		"message", d.Subject(), "reason", d.verdict.Reason.String(), "error", d.verdict.Err,
		"expires", c.local(d.enqueued()).Add(c.facts.retention()), "remedy", "give the queue a RedrivePolicy, or set Config.DeadLetterURL, and permit sqs:SendMessage on it")
	c.keep(d, retry.MaxVisibility, now)
}

// keep hides a message that is given up, and notes that it is not to be run again.
func (c *Machine) keep(d *Delivery, wait time.Duration, now time.Time) {
	d.verdict.Outcome = OutcomeKeep
	d.verdict.Due = now.Add(wait)
	note := c.memory.Note(d.ID, now)
	note.Spent, note.Reason, note.Err = true, d.verdict.Reason, d.verdict.Err
	c.put(&c.hides, d, now)
}

// Story is why a message is given up. Fields are those of reprise.Story.
type Story struct {
	Reason             retry.Reason
	Attempts, Receives int
	Last               time.Time // by SQS's clock
	Err                error
	Source             string
}

// story is d's Story.
func (c *Machine) story(d *Delivery, now time.Time) *Story {
	s := &Story{
		Reason:   d.verdict.Reason,
		Attempts: d.Attempt,
		Receives: d.receives,
		Last:     c.server(now),
		Err:      d.verdict.Err,
		Source:   c.source(d),
	}
	if !d.ran {
		s.Attempts-- // the run that this receive would have been
	}
	return s
}

// source is the queue that d, which c gives up, came from: c's own, or the one whose
// retry lane that is. Its ARN where that is known, else its URL.
func (c *Machine) source(d *Delivery) string {
	from := c
	if c.retryLaneOf != nil && d.History != nil {
		from = c.retryLaneOf
	}
	if from.facts.ARN != "" {
		return from.facts.ARN
	}
	return from.Queue.URL
}

// copySize is what a copy of d counts against the size of a batch, with a story or
// a history, and with the trace header, which SQS does not count and requests carry.
func copySize(d *Delivery) int {
	return d.Size + d.TraceSize + max(historySize, MaxStoryError+1000)
}

// copyRefused decides what to do about a dead letter that was not taken.
func (c *Machine) copyRefused(d *Delivery, f *Failure, now time.Time) {
	known := c.memory.Note(d.ID, now)
	switch {
	case !f.is(BySender) && f.is(Unacceptable) && !d.apart:
		d.apart = true // another of its batch may be meant
		c.settle(d, now)
	case f.is(BySender|Unacceptable) && !d.bare:
		// Perhaps it has grown too large for the queue: once more, without.
		d.bare, d.apart = true, true
		c.settle(d, now)
	case f.is(BySender | Unacceptable):
		c.keepUnsendable(d, f.Err, retry.MaxVisibility, now)
	case f.is(Lasting):
		c.facts.refusedUntil = now.Add(refusedFor)
		c.noteDenied("dead-letter", f)
		c.complain("dead-letter", "the dead-letter queue takes no messages", "url", c.facts.DeadLetter.URL, "error", f.Err)
		c.settle(d, now)
	case d.lease.Over(now):
		c.lose(d, f.Err)
	case d.refusedLong(now) && known.Kept && !d.bare:
		d.bare = true // which is worth a try the second time: the first it may have been the queue
		c.settle(d, now)
	case d.refusedLong(now):
		known.Kept = true
		c.keepUnsendable(d, f.Err, keptBriefly, now)
	default:
		c.complain("dead-letter", "sending to the dead-letter queue failed; trying again", "url", c.facts.DeadLetter.URL, "error", f.Err)
		d.apart = d.refused.many >= apartFrom
		c.settleLater(d, now)
	}
}

// keepUnsendable keeps a message that is given up, and that the dead-letter queue does
// not take.
func (c *Machine) keepUnsendable(d *Delivery, err error, wait time.Duration, now time.Time) {
	c.complain("unsendable", "the dead-letter queue does not take this message; hidden, to be tried again", "message", d.Subject(), "url", c.facts.DeadLetter.URL, "wait", wait, "error", err)
	if until := now.Add(wait); until.After(c.unsendable.until) {
		c.unsendable.until = until
	}
	c.unsendable.err = err
	c.keep(d, wait, now)
}
