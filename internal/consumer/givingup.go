package consumer

import "time"

// givingUpAt is what Status and the observer are told at now.
func (c *Machine) givingUpAt(now time.Time) GivingUp {
	s := c.giveUps.Summary(now)
	return GivingUp{
		Since: s.Since, At: now, GivenUp: s.GivenUp, Succeeded: s.Succeeded, Total: s.Total,
		PerMinute: s.PerMinute, Reason: s.Reason, Problem: s.Problem,
	}
}

const (
	// In each interval so many dead letters have a line of their own in the log; of the
	// others their number is logged.
	deadLetterLines = 10
	// DeadLetterInterval is how long that is.
	DeadLetterInterval = 10 * time.Second
)

// watchGivingUp takes in d's verdict, whose settlement begins. It is not left until SQS
// has acknowledged that: deletes and dead letters travel in batches of their own, so
// that many of one kind would seem to come in a row.
func (c *Machine) watchGivingUp(d *Delivery, now time.Time) {
	if d.watched {
		return // it is settled once more
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

// gaveUp takes in that d is given up.
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

// checkQuiet ends what has gone quiet, or looks again later.
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

// endGivingUp reports that it is over.
func (c *Machine) endGivingUp(now time.Time) {
	c.alarms.Stop(&c.quiet)
	e := c.givingUpAt(now)
	e.Over = true
	c.giveUps.End()
	c.tell(e)
}

// givingUp is what Status says; nil in good times.
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
				return // the end of Run says it
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

// next begins another interval, and returns how many had no line in this.
func (l *deadLetterLog) next() (leftOut int) {
	leftOut = l.leftOut
	*l = deadLetterLog{}
	return leftOut
}
