package consumer

import (
	"math"
	"time"
)

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

// timeAllows reports whether handlers that would start now can be expected to end before
// handlers are cancelled. Releasing a message uses up one of its receives; starting and then
// cancelling it uses up a receive and the work.
func (c *Machine) timeAllows(now time.Time) bool {
	if c.taskTime.mean == 0 || c.paused {
		return false // no handler has ended yet, so its time is unknown; or none may start
	}
	turns := 1 + (c.waiting+c.running)/c.capacity()
	expected := c.taskTime.mean * time.Duration(turns)
	if c.pool != nil {
		expected = c.taskTime.mean + c.pool.ahead()
	}
	return now.Add(2 * expected).Before(c.softEnd)
}

// full reports whether as many handlers run as c's own concurrency permits. If its pool is
// the limit, its messages wait for other consumers' handlers instead.
func (c *Machine) full() bool {
	if c.pool != nil && c.concurrency >= c.pool.concurrency {
		return false
	}
	return c.handlers() >= c.concurrency
}

// countStart counts a handler's start against the rate.
func (c *Machine) countStart(now time.Time) {
	if c.Rate == 0 {
		return
	}
	if c.nextAt.Before(now) {
		c.nextAt = now
	}
	c.nextAt = c.nextAt.Add(rateSpacing(c.Rate))
}

func rateSpacing(rate float64) time.Duration {
	return time.Duration(float64(time.Second) / rate)
}

// places returns how many messages may be held at once (all), and how many of them may wait
// (waiting): fewer if there is a rate.
func (c *Machine) places() (all, waiting int) {
	all = c.capacity() + c.Prefetch
	if c.Rate == 0 {
		return all, all
	}
	ahead := math.Ceil(c.Rate * rateAhead.Seconds())
	return all, int(min(float64(all), max(ahead, float64(c.batchSize()))))
}
