package reprise

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// GivingUp says that many different messages are given up, for whatever reason, and
// hardly one succeeds: mostly the handler or what it calls is misconfigured, and
// nothing is wrong with the messages. See [Observer].GivingUp and [Status].GivingUp.
type GivingUp struct {
	// Over says that it has ended: messages succeed again, or none has been given up
	// for ten minutes. Of a Status it is false.
	Over bool
	// Since is when the first of these messages was given up; At is when this was
	// found to begin or to end, or when the Status was taken.
	Since, At time.Time
	// GivenUp and Succeeded count the messages of the last hour that were given up and
	// that succeeded, the last 50 at most.
	GivenUp, Succeeded int
	// Total counts the messages given up since Since.
	Total int
	// PerMinute is the rate at which messages have been given up of late.
	PerMinute float64
	// Reason is the most frequent reason, Problem the text of the latest error.
	Reason  retry.Reason
	Problem string
}

// givingUpAt is what Status and the observer are told at now.
func (c *core) givingUpAt(now time.Time) GivingUp {
	s := c.giveUps.Summary(now)
	return GivingUp{
		Since: s.Since, At: now, GivenUp: s.GivenUp, Succeeded: s.Succeeded, Total: s.Total,
		PerMinute: s.PerMinute, Reason: s.Reason, Problem: s.Problem,
	}
}

// String is one sentence for an operator.
func (g GivingUp) String() string {
	text := fmt.Sprintf("messages are given up and hardly one succeeds: %d of the last %d, %.3g a minute, %d since %s, mostly for the reason %v",
		g.GivenUp, g.GivenUp+g.Succeeded, g.PerMinute, g.Total, g.Since.UTC().Format(time.RFC3339), g.Reason)
	if g.Problem != "" {
		text += ": " + g.Problem
	}
	return text
}

const (
	// In each interval so many dead letters have a line of their own in the log; of the
	// others their number is logged.
	deadLetterLines    = 10
	deadLetterInterval = 10 * time.Second
)

// watchGivingUp takes in d's verdict, whose settlement begins. It is not left until SQS
// has acknowledged that: deletes and dead letters travel in batches of their own, so
// that many of one kind would seem to come in a row.
func (c *core) watchGivingUp(d *delivery, now time.Time) {
	if d.watched {
		return // it is settled once more
	}
	switch d.verdict.outcome {
	case OutcomeDelete:
		if d.watched = true; d.ran && c.giveUps.Succeeded(now) {
			c.endGivingUp(now)
		}
	case OutcomeDeadLetter, OutcomeKeep:
		d.watched = true
		c.gaveUp(d, now)
	}
}

// gaveUp takes in that d is given up.
func (c *core) gaveUp(d *delivery, now time.Time) {
	problem := ""
	if d.verdict.err != nil {
		problem = shorten(d.verdict.err.Error(), maxStoryError)
	}
	if !c.giveUps.GaveUp(d.msg.OriginID, d.verdict.reason, problem, now) {
		return
	}
	_, end := c.giveUps.Gone(now)
	c.alarms.Set(&c.quiet, end)
	c.announceGivingUp(c.givingUpAt(now))
}

// perhapsQuiet ends what has gone quiet, or looks again later.
func (c *core) perhapsQuiet(now time.Time) {
	if !c.giveUps.Begun() || c.closed {
		return
	}
	ends, at := c.giveUps.Gone(now)
	if !ends {
		c.alarms.Set(&c.quiet, at)
		return
	}
	c.endGivingUp(now)
}

// endGivingUp says that it is over.
func (c *core) endGivingUp(now time.Time) {
	c.alarms.Stop(&c.quiet)
	e := c.givingUpAt(now)
	e.Over = true
	c.giveUps.End()
	c.announceGivingUp(e)
}

// givingUp is what Status says; nil in good times.
func (c *core) givingUp(now time.Time) *GivingUp {
	if quiet, _ := c.giveUps.Gone(now); !c.giveUps.Begun() || quiet {
		return nil
	}
	said := c.givingUpAt(now)
	return &said
}

// announceGivingUp tells the log and the observer of e, in order.
func (c *core) announceGivingUp(e GivingUp) {
	c.inOrder(func(shell *Consumer) {
		if e.Over {
			c.log.Info("messages are no longer given up by the many", "given_up", e.Total, "since", e.Since, "lasted", e.At.Sub(e.Since).Round(time.Second))
		} else {
			c.log.Warn("many messages are given up and hardly one succeeds: mostly the handler or what it calls is misconfigured",
				"given_up", e.GivenUp, "succeeded", e.Succeeded, "per_minute", e.PerMinute, "reason", e.Reason.String(), "error", e.Problem)
		}
		if f := c.cfg.Observer.GivingUp; f != nil {
			shell.tell(func() { f(shell.runCtx, e) })
		}
	})
}

// logDeadLetter logs one line for d, or counts it.
func (c *core) logDeadLetter(d *delivery, now time.Time) {
	l := &c.deadLetterLog
	if l.lines == deadLetterLines {
		l.leftOut++
		return
	}
	if l.lines++; l.lines == 1 {
		c.alarms.After(now.Add(deadLetterInterval), func(time.Time) {
			if c.closed {
				return // the end of Run says it
			}
			if leftOut := l.next(); leftOut > 0 {
				c.inOrder(func(*Consumer) { c.logLeftOut(leftOut) })
			}
		})
	}
	m, reason, err, target := d.msg, d.verdict.reason, d.verdict.err, c.facts.deadLetter.name
	c.inOrder(func(*Consumer) {
		c.log.Warn("message dead-lettered", "message", m, "reason", reason.String(), "error", err, "to", target)
	})
}

// logLeftOut logs how many dead letters had no line.
func (c *settings) logLeftOut(n int) {
	c.log.Warn("more messages dead-lettered, without a line for each", "count", n, "within", deadLetterInterval)
}

// deadLetterLog counts the lines of one interval. Part of the core.
type deadLetterLog struct{ lines, leftOut int }

// next begins another interval, and returns how many had no line in this.
func (l *deadLetterLog) next() (leftOut int) {
	leftOut = l.leftOut
	*l = deadLetterLog{}
	return leftOut
}
