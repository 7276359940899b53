package reprise

import "time"

// effect is something that the shell does for the core: it makes a request, runs a handler
// or calls an observer. When a section ends, the shell starts its effects in their order,
// each in a goroutine. The result of an effect is the input of a later section.
type effect struct {
	kind    effectKind
	n       int         // of effectReceive: how many messages; of effectProbe: its number
	poller  *poller     // of effectReceive
	outbox  *outbox     // of effectSend
	batch   []*delivery // of effectSend and effectHeartbeat
	gate    *gate       // of effectProbe
	waking  *waking     // of effectWake
	started time.Time   // of effectProbe
}

type effectKind uint8

const (
	effectWork        effectKind = iota // run handlers until nothing is ready
	effectReceive                       // receive messages
	effectSend                          // send a batch of an outbox
	effectHeartbeat                     // renew the leases of a batch
	effectWake                          // make hidden messages visible
	effectCount                         // read how many messages the queue has in flight
	effectLearn                         // read the queue's attributes, which could not be read before
	effectProbe                         // call Config.Outage.Probe
	effectAfterDelete                   // run Config.AfterDelete for what waits for it
	effectReport                        // tell the log and observers what is to be told in order
	effectSettled                       // tell the observer of settled messages
	effectEmptied                       // let the drain go on: nothing is held any more
)

// want adds e to the effects of the section. After the end of the stop budget it does
// nothing.
func (c *core) want(e effect) {
	if !c.closed {
		c.effects = append(c.effects, e)
	}
}

// perform carries out the effects that core, which is c's, has left. It is called with the
// lock held, and only starts goroutines.
func (c *Consumer) perform(core *core) {
	for i := range core.effects {
		c.platform.carryOut(core.effects[i])
	}
	clear(core.effects)
	core.effects = core.effects[:0]
}

// platform is what a consumer runs on: the system, or a simulation of it. Its methods are
// called with the consumer's lock held.
type platform interface {
	now() time.Time
	ring(in time.Duration) // calls Consumer.ring once after this time; replaces the call before
	carryOut(effect)       // starts the effect and does not wait for it
}

// system is the platform of the world outside: its clock, one timer, and goroutines.
type system struct {
	*Consumer
	timer *time.Timer // nil: it was never set
}

func (s *system) now() time.Time { return time.Now() }

func (s *system) ring(in time.Duration) {
	if s.timer == nil {
		s.timer = time.AfterFunc(in, s.Consumer.ring)
	} else {
		s.timer.Reset(in)
	}
}

func (s *system) carryOut(e effect) {
	c := s.Consumer
	switch e.kind {
	case effectWork:
		c.handling.run(c.mu, c.workFunc)
	case effectReceive:
		c.task("poller", func() { c.receive(e.poller, e.n) })
	case effectSend:
		c.task(e.outbox.name, func() { c.deliver(e.outbox, e.batch) })
	case effectHeartbeat:
		c.task("heartbeat", func() { c.heartbeat(e.batch) })
	case effectWake:
		c.task("waker", func() { c.makeVisible(e.waking) })
	case effectCount:
		c.task("reader of the queue's counts", c.readInFlight)
	case effectLearn:
		c.task("reader of the queue's attributes", c.learnAgain)
	case effectProbe:
		// Not awaited by drain: like a handler, it may ignore its context.
		c.crew.run(c.mu, func() { c.runProbe(e.gate, e.n, e.started) })
	case effectAfterDelete:
		// Not among the tasks that a stop waits for without an end: it is the
		// user's code.
		c.crew.run(c.mu, c.afterDelete)
	case effectReport:
		c.task("log", c.reportInOrder)
	case effectSettled:
		c.task("observer", c.tellSettled)
	case effectEmptied:
		select {
		case c.emptied <- struct{}{}:
		default: // it is told already
		}
	}
}

// reports are what is to be told to the log and to observers, one after the other,
// outside the lock. Part of the core.
type reports struct {
	untold  []func(*Consumer)
	telling bool // somebody is about it
}

// inOrder adds f to the reports. The shell calls them without the lock, in their order.
func (c *core) inOrder(f func(*Consumer)) {
	c.reports.untold = append(c.reports.untold, f)
	if !c.reports.telling && !c.closed {
		c.reports.telling = true
		c.want(effect{kind: effectReport})
	}
}

// reportInOrder tells all that is to be told.
func (c *Consumer) reportInOrder() {
	exited := true // by the user's code, until we return
	defer func() {
		if exited {
			c.lock().want(effect{kind: effectReport}) // the rest
			c.unlock()
		}
	}()
	for f := c.nextReport(); f != nil; f = c.nextReport() {
		f(c)
	}
	exited = false
}

func (c *Consumer) nextReport() func(*Consumer) {
	core := c.lock()
	defer c.unlock()
	if len(core.reports.untold) == 0 {
		core.reports = reports{}
		return nil
	}
	f := core.reports.untold[0]
	core.reports.untold = core.reports.untold[1:]
	return f
}
