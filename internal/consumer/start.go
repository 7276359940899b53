package consumer

import "time"

// addReady appends d to the messages that are ready to be started. For a batch handler, a
// message that a gate has let through goes first, and does not linger.
func (c *Machine) addReady(d *Delivery) {
	c.move(d, stateReady)
	if c.batches == nil {
		c.ready.push(d)
		return
	}
	if d.gate != nil {
		c.ready.pushFront(d)
	} else {
		c.ready.push(d)
		c.groups.Ready(&d.member)
	}
	c.batches.ready.add(1, d.size)
}

// removeReady removes d from the messages that are ready, and changes its state.
func (c *Machine) removeReady(d *Delivery, to state) {
	c.move(d, to)
	c.ready.remove(d)
	if c.batches == nil {
		return
	}
	c.batches.ready.add(-1, -d.size)
	c.groups.Busy(&d.member)
}

// nextGranted returns the message to start next; nil if none may start.
func (c *Machine) nextGranted() *Delivery {
	d := c.nextDue(c.now)
	if d == nil || c.pool != nil && !c.pool.grants(c) {
		return nil
	}
	return d
}

// nextDue returns the message that c would start next without its pool, in which other
// consumers may go first; nil if there is none, or its time has not come.
func (c *Machine) nextDue(now time.Time) *Delivery {
	if d := c.nextQueued(); d != nil && c.startsIn(d, now) <= 0 {
		return d
	}
	return nil
}

// nextQueued is nextDue whether or not its time has come.
func (c *Machine) nextQueued() *Delivery {
	s := c.solo
	switch {
	case c.closed || c.paused || c.full():
		return nil
	case s.taken.IsZero():
		return c.ready.first
	case s.owner == c && s.running == nil && c.aloneHere():
		return s.next
	}
	return nil
}

// startWorker starts a worker of c's. Workers exist only while there are messages to start,
// and each starts the next: so few goroutines run a burst of messages whose handlers return
// at once.
func (c *Machine) startWorker() {
	c.workers++
	c.workerStarting = true
	c.want(Effect{Kind: Work})
}

// startsIn returns how long Settings.Rate or the linger of a batch keeps d, which is next,
// from starting; zero or less: it may start now.
func (c *Machine) startsIn(d *Delivery, now time.Time) (wait time.Duration) {
	if rate := c.Rate; rate != 0 {
		ahead := max(0, rateBurst-rateSpacing(rate))
		wait = c.nextAt.Add(-ahead).Sub(now)
	}
	if c.batches != nil && d != c.solo.next {
		wait = max(wait, c.lingers(d, now))
	}
	return wait
}

// planStart sets the alarm for the start of the next handler, if only its time is missing.
func (c *Machine) planStart(now time.Time) {
	if c.Rate == 0 && c.batches == nil {
		return // nothing has to wait for its time
	}
	d := c.nextQueued()
	if d == nil {
		return
	}
	if wait := c.startsIn(d, now); wait > 0 {
		c.alarms.Sooner(&c.startDue, now.Add(wait))
	}
}
