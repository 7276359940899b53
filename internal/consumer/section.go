package consumer

import "time"

// Every change of a machine stands between Begin and End: the end of a handler, a reply,
// an alarm, a call of an operator. End finds out from the state which requests, workers and
// pollers go on. No change wakes them by itself, so none can forget to.

// Next returns when the shell must begin a section and call [Machine.Ring] in it, if it has
// no other reason to begin one earlier. Zero: never.
func (c *Machine) Next() time.Time { return c.alarms.Next() }

// Ring rings the alarms that are due.
func (c *Machine) Ring() {
	c.alarms.Ring(c.now)
	if len(c.unreported) > 0 {
		c.want(Effect{Kind: TellSettled})
	}
}

// deferredWork is work that waits for the end of the section: the consequences that the end
// of one message has for others. It is not done when that message is settled or lost,
// because it may settle and lose others, which have consequences in turn.
type deferredWork struct {
	gone          []*Delivery // of a FIFO queue and no longer held: their groups go on, or are given back
	withoutResult []passedGate
	shelved       bool // messages are held behind a gate during a stop: they are given back
}

// passedGate is a gate that has let a message through whose end shows nothing: see endedWithoutResult.
type passedGate struct {
	gate *Gate
	bad  bool // it was given up as a bad message
}

// doDeferred does the deferred work, and the work that it adds.
func (c *Machine) doDeferred() {
	f, now := &c.deferred, c.now
	for i, j := 0, 0; i < len(f.withoutResult) || j < len(f.gone) || f.shelved; {
		switch {
		case i < len(f.withoutResult):
			c.endedWithoutResult(f.withoutResult[i].gate, f.withoutResult[i].bad, now)
			i++
		case j < len(f.gone):
			c.leaveGroup(f.gone[j], now)
			j++
		default:
			f.shelved = false
			c.releaseUnstarted(now)
		}
	}
	clear(f.gone)
	clear(f.withoutResult)
	f.gone, f.withoutResult = f.gone[:0], f.withoutResult[:0]
}

// End ends a section: it does the deferred work, sends the requests that are due, starts a
// worker if one is needed, and lets pollers receive that have room.
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

// endSection starts a worker for the machine whose turn it is, and lets pollers receive that
// have room: those of c, whose state has changed, and those of other machines that have no
// receive under way. A worker has its place from its start to its end, also between two
// handlers, so that it can go on with the next message of its own queue.
func (p *Pool) endSection(c *Machine, now time.Time) {
	if p.workers() < p.concurrency {
		if next := p.next(nil, now); next != nil && !next.workerStarting {
			next.startWorker()
		}
	}
	for other := range p.Each {
		other.planStart(now)
		if other == c || other.reserved == 0 {
			other.pollOn(now)
		}
	}
}
