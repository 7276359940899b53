package consumer

import "time"

// Every change of a machine stands between Begin and End: the end of a handler, a reply,
// an alarm, a call of an operator. End finds out from the state which requests, workers and
// pollers go on. No change wakes them by itself, so none can forget to.

// Next is when the machine has to be given a section without any other reason: in it the
// shell calls [Machine.Ring]. Zero: never.
func (c *Machine) Next() time.Time { return c.alarms.Next() }

// Ring rings the alarms that are due.
func (c *Machine) Ring() {
	c.alarms.Ring(c.now)
	if len(c.unreported) > 0 {
		c.want(Effect{Kind: TellSettled})
	}
}

// RingFailed is called after a panic in Ring, whose alarm is not set again: leases go on
// being renewed.
func (c *Machine) RingFailed() { c.planKeeping(c.now.Add(afterPanic)) }

// afterPanic is the time from a panic until leases are looked at.
const afterPanic = time.Second

// deferredWork is the work that a section leaves to its end: what the end of one message
// means for others. It is not done where that message is settled or lost, since it
// settles and loses others in its turn.
type deferredWork struct {
	gone          []*Delivery // of a FIFO queue and no longer held: their groups go on, or are given back
	withoutResult []*Gate     // have let a message through that told nothing: see endedWithoutResult
}

// doDeferred empties the list of work, with what that adds to it.
func (c *Machine) doDeferred() {
	f := &c.deferred
	if len(f.gone)+len(f.withoutResult) == 0 {
		return
	}
	now := c.now
	for i, j := 0, 0; i < len(f.withoutResult) || j < len(f.gone); {
		if i < len(f.withoutResult) {
			c.endedWithoutResult(f.withoutResult[i], now)
			i++
		} else {
			c.leaveGroup(f.gone[j], now)
			j++
		}
	}
	clear(f.gone)
	clear(f.withoutResult)
	f.gone, f.withoutResult = f.gone[:0], f.withoutResult[:0]
}

// End ends a section: it does what the section has left, sends the requests that are due, starts a
// worker if one is wanted, and has the pollers ask that have room.
func (c *Machine) End() {
	c.doDeferred()
	c.sendRequests()
	if c.pool != nil {
		c.pool.endSection(c, c.now)
		return
	}
	if c.workers < c.concurrency && !c.workerStarting && c.nextGranted() != nil {
		c.startWorker()
	}
	c.planStart(c.now)
	c.pollOn(c.now)
}
