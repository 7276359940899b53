package consumer

import (
	"cmp"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/gate"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// ProbeTimeout is when the context of a probe ends.
const ProbeTimeout = gate.ProbeTimeout

const (
	// whilePaused is how often a paused consumer checks whether it can start a canary.
	whilePaused = 5 * time.Second

	// holdAtMost is how long a message that has not started is held. After twelve hours
	// SQS would give it to another consumer.
	holdAtMost = retry.MaxVisibility - 15*time.Minute
)

// turn changes g's breaker, and applies the consequences.
func (c *Machine) turn(g *Gate, now time.Time, change func(*breaker.Breaker)) {
	previous, since := g.State(), g.Breaker.Since()
	g.Turn(change)
	for _, d := range c.held {
		if d.gate == g {
			d.gate = nil
			if d.state == stateReady && c.batches != nil {
				c.groups.Ready(&d.member)
			}
		}
	}
	state := g.State()
	if state != breaker.Closed {
		since = g.Breaker.Since()
	}
	c.gateTurned(g, now)
	if state != previous {
		c.tell(Outage{Key: g.key, State: state, Previous: previous, At: now, Since: since, NextProbe: g.Breaker.NextProbe(), Held: g.Holding(), Err: g.cause})
	}
	switch {
	case state == breaker.Open && previous == breaker.Ramping, state == breaker.Ramping && previous == breaker.Closed:
		g.woken = time.Time{}
		c.stopWaking(g.key)
	case state == breaker.Closed:
		c.wakeHidden(g, now)
	}
}

// wakeHidden wakes the messages that were hidden because g's dependency was unavailable. It
// is called when the dependency bears some load: waking uses up a receive of each message.
func (c *Machine) wakeHidden(g *Gate, now time.Time) {
	g.woken = now
	for _, d := range c.held { // those that are being hidden at the moment are woken once they are
		if d.state.settles() && d.Key == g.key && d.verdict.unavailable && d.verdict.Reason != retry.ReasonRetryAfter {
			d.outageOver = true
		}
	}
	c.wake(func(r *memory.Note) bool { return r.Unavailable && !r.Asked && r.Key == g.key }, now)
}

// gateTurned brings g's alarm and the messages of g's key into line with g's state.
func (c *Machine) gateTurned(g *Gate, now time.Time) {
	c.recount(g)
	switch {
	case g.Paused:
		c.alarms.Stop(&g.look)
	case g.State() == breaker.Open:
		c.alarms.Set(&g.look, g.Breaker.NextProbe())
	case g.State() == breaker.HalfOpen:
		c.alarms.Set(&g.look, now.Add(g.CanaryPatience(c.taskTime.mean)))
	default:
		c.alarms.Stop(&g.look)
	}
	if g.Shut() || g.State() == breaker.Ramping {
		for d := c.ready.first; d != nil; {
			next := d.next
			if d.Key == g.key {
				c.removeReady(d, stateWaiting)
				c.leaveGate(d)
				c.shelve(g, d, now)
			}
			d = next
		}
	}
	if d := c.solo.next; d != nil && c.solo.owner == c && d.Key == g.key && g.Shut() { // others need not wait for it
		c.unready(d, now)
		c.shelve(g, d, now)
	}
	if !g.Shut() {
		c.letThrough(g, now)
	}
	c.dropIdleGate(g)
}

// lookAt is called by g's alarm.
func (c *Machine) lookAt(g *Gate, now time.Time) {
	if c.closed || c.draining || c.gates.byKey[g.key] != g || g.Paused {
		return
	}
	byProbe := c.HasProbe && !g.Probing()
	if c.paused && !byProbe {
		c.alarms.Set(&g.look, now.Add(whilePaused)) // no canary could run
		return
	}
	switch g.State() {
	case breaker.Open:
		if byProbe {
			number := g.Probe()
			c.turn(g, now, (*breaker.Breaker).Probe)
			c.want(Effect{Kind: Probe, Gate: g, N: number, Started: now})
			return
		}
		c.turn(g, now, (*breaker.Breaker).Probe)
		c.sendCanary(g, now)
	case breaker.HalfOpen:
		if g.Probing() && g.Active() == 0 {
			c.complain("probe", "Config.Outage.Probe has not returned, long after its context ended; messages are run in its place", "key", g.key)
		}
		// The probe or the canary has not ended: start another canary, now or when one has ended without a result.
		if !g.MoreCanaries(c.concurrency) {
			c.alarms.Set(&g.look, now.Add(g.CanaryPatience(c.taskTime.mean)))
			return
		}
		c.sendCanary(g, now)
	case breaker.Ramping:
		if g.IdleRamp(now) {
			c.ramp(g, now, func(b *breaker.Breaker) { b.Idle(c.capacity(), now) })
			return
		}
		c.letThrough(g, now)
	}
}

// sendCanary lets one message pass, to see how its attempt ends: one that has failed already, so
// that no other message has to fail, unless g wants or prefers one that has not. If none such is held,
// the next one that is received passes.
func (c *Machine) sendCanary(g *Gate, now time.Time) {
	if g.WantCanary(c.freshUpTo()) {
		// minAway is enough: while nothing is received, hiding it for longer does not help.
		c.sendAway(cmp.Or(c.candidate(&g.tried, now), g.tried.first), g, minAway, now)
	}
	lists := []*fifo{&g.tried, &g.held}
	switch {
	case g.WantsFresh():
		lists = lists[1:]
	case g.PrefersFresh():
		slices.Reverse(lists)
	}
	for _, list := range lists {
		for d := c.candidate(list, now); d != nil && g.Wanted(); d = c.candidate(list, now) {
			c.stepOut(d)
			c.begin(d, now) // it may have to be given up: then g still wants another
		}
	}
	c.alarms.Set(&g.look, now.Add(g.CanaryPatience(c.taskTime.mean)))
}

// candidate returns the message that has been in list longest and may run now.
func (c *Machine) candidate(list *fifo, now time.Time) *Delivery {
	d := list.first
	for d != nil && c.memory.Recall(d.ID, now).Due.After(now) {
		d = d.next
	}
	return d
}

// shut reports whether an outage keeps the whole consumer from receiving. canary is how many
// messages it may receive all the same: one, if the next message is to be the canary.
func (c *Machine) shut() (shut bool, canary int) {
	g := c.gates.byKey[""]
	if g == nil || c.Keyed {
		return false, 0
	}
	if g.State() == breaker.HalfOpen && g.Wanted() && c.reserved == 0 {
		return true, 1
	}
	return g.State() == breaker.Open || g.State() == breaker.HalfOpen, 0
}

// Key returns the key of g's messages: empty for all messages of a consumer without keys.
func (g *Gate) Key() string { return g.key }

// ProbeEnded takes in the result of a probe of g that began at the given time: nil if the
// dependency is available. n is the number in the effect: if a canary has started since, the
// result is out of date and ignored.
func (c *Machine) ProbeEnded(g *Gate, n int, began time.Time, err error) {
	if counts := g.ProbeEnded(n); counts && !c.closed && g.State() == breaker.HalfOpen {
		if err != nil {
			g.cause = err
		}
		c.canaryEnded(g, err != nil, c.now.Sub(began), c.now)
	}
	c.dropIdleGate(g)
}

// letThrough lets as many of the held messages pass as g admits.
func (c *Machine) letThrough(g *Gate, now time.Time) {
	for n := g.Holding(); n > 0 && g.Admits(now); n-- {
		d := g.held.first
		if g.TurnOfTried() {
			d = g.tried.first
		}
		if d == nil {
			if g.State() == breaker.Ramping && !g.AwaitOthers(now) {
				break
			}
			d = g.tried.first
		}
		c.stepOut(d)
		c.begin(d, now)
	}
	c.awaitTurn(g, now)
}

// endedWithoutResult is called when the end of a message that g has let through shows
// nothing about the dependency: it was lost, released, or given up as a bad message. After a
// bad message the next canary starts at once: where all messages are bad, as after a bad deploy,
// the breaker would otherwise stay open, and let one pass a quarter of a minute.
func (c *Machine) endedWithoutResult(g *Gate, bad bool, now time.Time) {
	switch {
	case c.draining:
	case g.State() == breaker.HalfOpen && g.Active() == 0 && !g.Wanted() && bad && !c.paused && !g.Paused:
		c.sendCanary(g, now)
	case g.State() == breaker.HalfOpen && g.Active() == 0 && !g.Wanted():
		c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
	case g.State() == breaker.Ramping:
		c.letThrough(g, now)
	}
}

// canaryEnded takes in the end of a probe or of a canary's run.
func (c *Machine) canaryEnded(g *Gate, unavailable bool, took time.Duration, now time.Time) {
	switch {
	case !unavailable:
		c.turn(g, now, func(b *breaker.Breaker) { b.Answered(took, now) })
	case g.State() == breaker.HalfOpen:
		c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
	}
}

// ramp changes g's breaker, which is ramping, and applies the consequences.
func (c *Machine) ramp(g *Gate, now time.Time, change func(*breaker.Breaker)) {
	rising := g.Breaker.Rising()
	b, ramping := g.Ramp(change)
	switch {
	case !ramping:
		c.turn(g, now, func(old *breaker.Breaker) { *old = b })
		return
	case b.Rising() && !rising:
		c.wakeHidden(g, now)
	case rising && !b.Rising():
		c.stopWaking(g.key)
	}
	c.letThrough(g, now)
}
