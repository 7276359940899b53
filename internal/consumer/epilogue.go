package consumer

import "time"

// Every change of a machine stands between Begin and End: the end of a handler, a reply,
// an alarm, a call of an operator. At the end, the epilogue finds out from the state which
// requests, workers and pollers go on. Nobody is woken by hand, so no change can forget to.

// Next is when the machine has to be given a section without any other reason: in it the
// shell calls [Machine.Ring]. Zero: never.
func (c *Machine) Next() time.Time { return c.alarms.Next() }

// Ring rings the alarms that are due.
func (c *Machine) Ring() {
	c.alarms.Ring(c.now)
	if len(c.untold) > 0 {
		c.want(Effect{Kind: TellSettled})
	}
}

// RingFailed is called after a panic in Ring, whose alarm is not set again: leases go on
// being renewed.
func (c *Machine) RingFailed() { c.planKeeping(c.now.Add(afterPanic)) }

// afterPanic is the time from a panic until leases are looked at.
const afterPanic = time.Second

// followUp is the work that a section leaves to its end: what the end of one message
// means for others. It is not done where that message is settled or lost, since it
// settles and loses others in its turn.
type followUp struct {
	gone  []*Delivery // of a FIFO queue and no longer held: their groups go on, or are given back
	unrun []*Gate     // have let a message through that told nothing: see passedUnrun
}

// catchUp empties the list of work, with what that adds to it.
func (c *Machine) catchUp() {
	f := &c.follow
	if len(f.gone)+len(f.unrun) == 0 {
		return
	}
	now := c.now
	for i, j := 0, 0; i < len(f.unrun) || j < len(f.gone); {
		if i < len(f.unrun) {
			c.passedUnrun(f.unrun[i], now)
			i++
		} else {
			c.leaveGroup(f.gone[j], now)
			j++
		}
	}
	clear(f.gone)
	clear(f.unrun)
	f.gone, f.unrun = f.gone[:0], f.unrun[:0]
}

// End ends a section: it does what the section has left, sends the requests that are due, starts a
// worker if one is wanted, and has the pollers ask that have room.
func (c *Machine) End() {
	c.catchUp()
	c.sendRequests()
	if c.pool != nil {
		c.pool.epilogue(c, c.now)
		return
	}
	if c.workers < c.concurrency && !c.summoned && c.nextGranted() != nil {
		c.startWorker()
	}
	c.planStart(c.now)
	c.pollOn(c.now)
}
