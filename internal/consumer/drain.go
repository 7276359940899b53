package consumer

import (
	"slices"
	"time"
)

// Start begins to receive, unless stopped is set: the stop would have to wait for the long
// poll.
func (c *Machine) Start(stopped bool) {
	c.health.set(HealthOK, "")
	c.started = c.now
	if !stopped {
		c.poll()
	}
}

// Stop begins the stop: the consumer receives no more, and gives back the messages that have
// not started, unless there is time to run them. It returns how many messages are held, and
// how many receives may be under way.
func (c *Machine) Stop() (held, receives int) {
	c.draining = true
	c.softEnd, c.hardEnd = c.now.Add(c.SoftBudget), c.now.Add(c.StopBudget)
	c.health.set(HealthStopping, "")
	for _, o := range c.outboxes() {
		o.calls.Hurry(c.hardEnd)
	}
	held, receives = len(c.held), len(c.pollers)
	c.releaseUnstarted(c.now)
	c.settleUnread(c.now)
	return held, receives
}

// settleUnread settles the messages that are given up and wait for the queue's attributes: a stop
// does not wait for them.
func (c *Machine) settleUnread(now time.Time) {
	if !c.facts.Pending {
		return
	}
	var waiting []*Delivery
	for _, d := range c.held {
		if d.state == stateSettling && d.verdict.Outcome == OutcomeDeadLetter {
			waiting = append(waiting, d)
		}
	}
	slices.SortFunc(waiting, asReceived)
	for _, d := range waiting {
		c.settle(d, now)
	}
	c.hides.calls.Flush()
}

// StopHandlers is called when handlers are told to stop: no handler starts from now on.
func (c *Machine) StopHandlers() { c.releaseUnstarted(c.now) }

// Receives returns how many receives are under way while the consumer stops.
func (c *Machine) Receives() int { return len(c.pollers) }

// Close ends the stop: from now on no effect starts, even if messages are left. The handlers that still
// run ignore the end of their contexts.
func (c *Machine) Close() {
	c.closed = true
	for _, d := range c.held {
		if d.state == stateRunning && !d.hung {
			c.countHung(d)
		}
	}
}

// Closed reports whether Close has been called.
func (c *Machine) Closed() bool { return c.closed }

// Left notes that the stop is over, and returns the ids of the messages whose handlers have
// not returned, and of those that were not settled in time, both sorted.
func (c *Machine) Left() (abandoned, unsettled []string) {
	for id, d := range c.held {
		if d.state == stateRunning {
			abandoned = append(abandoned, id)
		} else {
			unsettled = append(unsettled, id)
		}
	}
	slices.Sort(abandoned)
	slices.Sort(unsettled)
	c.health.set(HealthStopped, "")
	return abandoned, unsettled
}

// DeadLettersLeftOut returns how many dead letters since the last [LeftOut] had no
// [DeadLettered].
func (c *Machine) DeadLettersLeftOut() int { return c.deadLetterLog.next() }

// releaseUnstarted gives back the messages that no handler has started on, unless there is
// time to run them.
func (c *Machine) releaseUnstarted(now time.Time) {
	inTime := c.timeAllows(now)
	var unstarted []*Delivery
	for _, d := range c.held {
		if d.state.waits() {
			unstarted = append(unstarted, d)
		}
	}
	slices.SortFunc(unstarted, asReceived)
	for _, d := range unstarted {
		switch {
		case !d.state.waits(): // given back with another of its group
		case d.state == stateScheduled:
			c.skip(d, d.verdict, now) // not before its time
		case !inTime || d.state == stateShelved:
			c.unrun(d, now) // a poll of this stop may bring it again
			c.giveBackWaiting(d, releasedAtStop(nil), now)
		}
	}
	for _, o := range c.outboxes() {
		o.calls.Flush()
	}
}
