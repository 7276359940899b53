package reprise

import "time"

// Every change of a core stands between enter and leave: the end of a handler, a reply,
// a timer, a call of an operator. When the section ends, the epilogue finds out from the
// core which requests, workers and pollers go on. Nobody is woken by hand, so no change
// can forget to.
//
// lock alone is used where nothing is changed that anybody waits for: to look, and to
// note what is to be logged or told.

// enter begins a section that may change what workers and pollers wait for. It takes
// the lock, which leave gives back.
func (c *Consumer) enter() *core { return c.lock() }

// leave ends a section that enter began.
func (c *Consumer) leave() {
	core := &c.guarded
	core.epilogue()
	if c.pool == nil {
		c.arm(core, core.now)
	} else {
		c.pool.goOn(core.now)
	}
	c.unlock()
}

// goOn arms the timers and carries out the effects of all of p's consumers, since a change of
// one can concern the others. The caller holds p.mu.
func (p *Pool) goOn(now time.Time) {
	for c := range p.consumers {
		shell := p.shells[c]
		shell.arm(c, now)
		shell.perform(c)
	}
}

// arm sets the timer to the core's next alarm. It is called with the lock held. If it fires earlier it is left alone, and
// set again when it does: most alarms are stopped, or set to later, before they ring.
func (c *Consumer) arm(core *core, now time.Time) {
	next := core.alarms.Next()
	if next.IsZero() || !c.ringsAt.IsZero() && !next.Before(c.ringsAt) {
		return
	}
	c.ringsAt = next
	c.platform.ring(next.Sub(now))
}

// ring is called when the timer of arm fires. An alarm that panics is not set again, but
// leases go on being renewed.
func (c *Consumer) ring() {
	if !c.survive("timer", c.ringAlarms) {
		core := c.enter()
		defer c.leave()
		core.planKeeping(core.now.Add(afterPanic))
	}
}

// afterPanic is the time from a panic until leases are looked at.
const afterPanic = time.Second

func (c *Consumer) ringAlarms() {
	core := c.enter()
	defer c.leave()
	c.ringsAt = time.Time{}
	core.alarms.Ring(core.now)
	if len(core.untold) > 0 {
		core.want(effect{kind: effectSettled})
	}
}

// lock takes the lock to look, or to change what nobody waits for, and reads the clock for
// the section. unlock gives it back.
func (c *Consumer) lock() *core {
	c.mu.Lock()
	c.guarded.now = c.platform.now()
	return &c.guarded
}

// unlock ends a section that lock began.
func (c *Consumer) unlock() {
	c.perform(&c.guarded)
	c.mu.Unlock()
}

// followUp is the work that a section leaves to its end: what the end of one message
// means for others. It is not done where that message is settled or lost, since it
// settles and loses others in its turn. Part of the core.
type followUp struct {
	gone  []*delivery // of a FIFO queue and no longer held: their groups go on, or are given back
	unrun []*gate     // have let a message through that told nothing: see passedUnrun
}

// catchUp empties the list of work, with what that adds to it.
func (c *core) catchUp() {
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

// epilogue does what the section has left, sends the requests that are due, starts a
// worker if one is wanted, and has the pollers ask that have room.
func (c *core) epilogue() {
	c.catchUp()
	c.sendRequests()
	if c.pool != nil {
		c.pool.epilogue(c, c.now)
		return
	}
	if c.workers < c.dials.concurrency && !c.summoned && c.startable() != nil {
		c.startWorker()
	}
	c.planStart(c.now)
	c.pollOn(c.now)
}

// epilogue starts a worker where one is wanted the most, and wakes the pollers that have
// room: those of c, whose state has changed, and of the others that wait for room. A
// worker has a place from its start to its end, also while it is between two handlers:
// so what is ready in its own queue finds it there. The caller holds p.mu.
func (p *Pool) epilogue(c *core, now time.Time) {
	if p.workers() < p.concurrency {
		if next := p.next(nil, now); next != nil && !next.summoned {
			next.startWorker()
		}
	}
	for other := range p.consumers {
		other.planStart(now)
		if other == c || other.reserved == 0 {
			other.pollOn(now)
		}
	}
}

// startWorker starts a worker of c's. Workers exist only while there is something to
// start, and each starts the next: so a burst of messages whose handlers return at once
// is worked off by few goroutines.
func (c *core) startWorker() {
	c.workers++
	c.summoned = true
	c.want(effect{kind: effectWork})
}

// startsIn is how long Config.Rate, or the linger of a batch, keeps d, which is next,
// from starting.
func (c *core) startsIn(d *delivery, now time.Time) (wait time.Duration) {
	if rate := c.cfg.Rate; rate != 0 {
		ahead := max(0, rateBurst-rateSpacing(rate))
		wait = c.dials.nextStart.Add(-ahead).Sub(now)
	}
	if c.batches != nil && d != c.floor.next {
		wait = max(wait, c.lingers(d, now))
	}
	return wait
}

// planStart has the epilogue come again when it is time for the next handler, if only
// that is missing.
func (c *core) planStart(now time.Time) {
	if c.cfg.Rate == 0 && c.batches == nil {
		return // nothing has to wait for its time
	}
	d := c.nextInLine()
	if d == nil {
		return
	}
	if wait := c.startsIn(d, now); wait > 0 {
		c.alarms.Sooner(&c.startDue, now.Add(wait))
	}
}
