package consumer

import "time"

// givingUpAt returns what Status and the observer are told at now.
func (c *Machine) givingUpAt(now time.Time) GivingUp {
	s := c.giveUps.Summary(now)
	return GivingUp{
		Since: s.Since, At: now, GivenUp: s.GivenUp, Succeeded: s.Succeeded, Total: s.Total,
		PerMinute: s.PerMinute, Reason: s.Reason, Problem: s.Problem,
	}
}

const (
	// deadLetterLines is how many dead letters are logged one by one in each
	// DeadLetterInterval; for the others, only their number is logged.
	deadLetterLines = 10
	// DeadLetterInterval is the interval of deadLetterLines.
	DeadLetterInterval = 10 * time.Second
)

// watchGivingUp counts d's verdict when its settlement begins. It does not wait until SQS has
// acknowledged it: deletes and dead letters are sent in batches of their own, so that many
// of one kind would seem to come in a row.
func (c *Machine) watchGivingUp(d *Delivery, now time.Time) {
	if d.watched {
		return // its settlement is tried again
	}
	switch d.verdict.Outcome {
	case OutcomeDelete:
		if d.watched = true; d.ran && c.giveUps.Succeeded(now) {
			c.endGivingUp(now)
		}
	case OutcomeDeadLetter, OutcomeKeep:
		d.watched = true
		c.gaveUp(d, now)
	}
}

// gaveUp counts that d is given up.
func (c *Machine) gaveUp(d *Delivery, now time.Time) {
	problem := ""
	if d.verdict.Err != nil {
		problem = Shorten(d.verdict.Err.Error(), MaxStoryError)
	}
	if !c.giveUps.GaveUp(d.OriginID, d.verdict.Reason, problem, now) {
		return
	}
	_, end := c.giveUps.Gone(now)
	c.alarms.Set(&c.quiet, end)
	c.tell(c.givingUpAt(now))
}

// checkQuiet reports the end of the giving up if no message has been given up for a while;
// otherwise it checks again later.
func (c *Machine) checkQuiet(now time.Time) {
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

// endGivingUp reports that the giving up is over.
func (c *Machine) endGivingUp(now time.Time) {
	c.alarms.Stop(&c.quiet)
	e := c.givingUpAt(now)
	e.Over = true
	c.giveUps.End()
	c.tell(e)
}

// givingUp returns what Status shows; nil unless most messages are given up.
func (c *Machine) givingUp(now time.Time) *GivingUp {
	if quiet, _ := c.giveUps.Gone(now); !c.giveUps.Begun() || quiet {
		return nil
	}
	said := c.givingUpAt(now)
	return &said
}

// logDeadLetter logs one line for d, or counts it.
func (c *Machine) logDeadLetter(d *Delivery, now time.Time) {
	l := &c.deadLetterLog
	if l.lines == deadLetterLines {
		l.leftOut++
		return
	}
	if l.lines++; l.lines == 1 {
		c.alarms.After(now.Add(DeadLetterInterval), func(time.Time) {
			if c.closed {
				return // the end of Run logs the number
			}
			if leftOut := l.next(); leftOut > 0 {
				c.tell(LeftOut(leftOut))
			}
		})
	}
	c.tell(DeadLettered{d.Subject(), d.verdict.Reason, d.verdict.Err, c.facts.DeadLetter.Name})
}

// deadLetterLog counts the lines of one interval.
type deadLetterLog struct{ lines, leftOut int }

// next begins another interval, and returns how many dead letters had no line in the last
// one.
func (l *deadLetterLog) next() (leftOut int) {
	leftOut = l.leftOut
	*l = deadLetterLog{}
	return leftOut
}
