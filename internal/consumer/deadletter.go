package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// MaxStoryError is how many bytes of an error's text a story contains at most.
	MaxStoryError = 1000

	// refusedFor is how long no copy is sent to a queue that refused one for a lasting
	// reason.
	refusedFor = time.Minute
)

// giveUp sends a copy of d with its story to the dead-letter queue; the original is deleted
// when SQS has confirmed the copy. If no copy can be sent, d is hidden for as long as SQS
// permits, and an error is logged: no message is dropped.
func (c *Machine) giveUp(d *Delivery, now time.Time) {
	switch {
	case d.copied:
		c.put(&c.deletes, d, now)
	case c.facts.DeadLetter.URL != "" && !now.Before(c.facts.refusedUntil):
		c.put(&c.copies, d, now)
	case c.facts.Pending && c.draining:
		c.complain("keep", "a message is given up, and it is not known whether there is a dead-letter queue, because the queue's attributes cannot be read; it is hidden, and run again by the consumer that receives it next",
			"message", d.Subject(), "reason", d.verdict.Reason.String(), "error", d.verdict.Err, "wait", keptBriefly)
		c.keep(d, keptBriefly, now)
	case c.facts.Pending:
		d.refusals++
		c.settleLater(d, now) // the queue's attributes are not read yet: look again later
	default:
		c.keepUndeliverable(d, now)
	}
}

// keepUndeliverable keeps a message that is given up while there is no dead-letter queue.
func (c *Machine) keepUndeliverable(d *Delivery, now time.Time) {
	until := now.Add(retry.MaxVisibility)
	if expires := c.facts.queue().Expires(c.kept(d)); !expires.IsZero() && expires.Before(until) {
		until = expires // it is dropped then
	}
	if until.After(c.untaken) {
		c.untaken = until
	}
	c.complain("keep", untakenProblem+"; they stay hidden until the queue's retention deletes them",
		"message", d.Subject(), "reason", d.verdict.Reason.String(), "error", d.verdict.Err,
		"expires", c.facts.queue().Expires(c.kept(d)), "remedy", "give the queue a RedrivePolicy, or set Config.DeadLetterURL, and permit sqs:SendMessage on it")
	c.keep(d, retry.MaxVisibility, now)
}

const untakenProblem = "messages are given up, but no dead-letter queue takes them"

// untakenNow describes, for the health, the messages that are given up and hidden for want of a dead-letter
// queue; empty if there are none.
func (c *Machine) untakenNow(now time.Time) string {
	if !c.untaken.After(now) {
		return ""
	}
	return fmt.Sprintf("%s; they are hidden, the last until %s", untakenProblem, c.untaken.UTC().Format(time.RFC3339))
}

// keep hides a message that is given up, and notes that it is not to be run again.
func (c *Machine) keep(d *Delivery, wait time.Duration, now time.Time) {
	d.verdict.Outcome = OutcomeKeep
	d.verdict.Due = now.Add(wait)
	note := c.memory.Note(d.ID, now)
	note.Spent, note.Reason, note.Err = true, d.verdict.Reason, d.verdict.Err
	if !d.ran {
		note.Unrun(d.Attempt, d.receives)
	}
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

// story returns d's Story.
func (c *Machine) story(d *Delivery, now time.Time) *Story {
	return &Story{
		Reason:   d.verdict.Reason,
		Attempts: d.attempts(),
		Receives: d.receives,
		Last:     c.server(now),
		Err:      d.verdict.Err,
		Source:   c.source(d),
	}
}

// source names the queue that d, which c gives up, came from: c's own, or the queue whose
// retry lane that is. It is an ARN if that is known, else a URL.
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
