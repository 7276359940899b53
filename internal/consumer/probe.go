package consumer

import (
	"cmp"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// ProbeTimeout is when the context of a probe ends.
const ProbeTimeout = 30 * time.Second

const (
	// freshEvery: one of this number of canaries is a message that has not failed.
	freshEvery = 4
	// freshPatience is how long to wait for such a message while others are held.
	freshPatience = 2 * time.Second
	// A canary may run for twice as long as handlers take, within these bounds; then
	// another one starts: a canary that hangs must not hide the end of an outage.
	shortCanary = 15 * time.Second
	longCanary  = 2 * time.Minute
	// whilePaused is how often a paused consumer checks whether it can start a canary.
	whilePaused = 5 * time.Second

	// holdAtMost is how long a message that has not started is held. After twelve hours
	// SQS would give it to another consumer.
	holdAtMost = retry.MaxVisibility - 15*time.Minute
)

// turn changes g's breaker, and applies the consequences. Messages that g had let through no
// longer count: they may hang for hours.
func (c *Machine) turn(g *Gate, now time.Time, change func(*breaker.Breaker)) {
	previous, since := g.state(), g.breaker.Since()
	change(&g.breaker)
	g.active, g.wanted, g.fresh = 0, false, false
	g.waitFor, g.rested = time.Time{}, time.Time{}
	for _, d := range c.held {
		if d.gate == g {
			d.gate = nil
			if d.state == stateReady && c.batches != nil {
				c.groups.Ready(&d.member)
			}
		}
	}
	state := g.state()
	if state != breaker.Closed {
		since = g.breaker.Since()
	}
	c.gateTurned(g, now)
	if state != previous {
		c.tell(Outage{Key: g.key, State: state, Previous: previous, At: now, Since: since, NextProbe: g.breaker.NextProbe(), Held: g.holding, Err: g.cause})
	}
	switch {
	case state == breaker.Open && previous == breaker.Ramping:
		c.stopWaking(g.key)
	case state == breaker.Closed:
		c.wakeHidden(g, now)
	}
}

// wakeHidden wakes the messages that were hidden because g's dependency was unavailable. It
// is called when the dependency bears some load: waking uses up a receive of each message.
func (c *Machine) wakeHidden(g *Gate, now time.Time) {
	c.wake(func(r *memory.Note) bool { return r.Unavailable && !r.Asked && r.Key == g.key }, now)
}

// gateTurned brings g's alarm and the messages of g's key into line with g's state.
func (c *Machine) gateTurned(g *Gate, now time.Time) {
	c.recount(g)
	switch {
	case g.state() == breaker.Open && !g.paused:
		c.alarms.Set(&g.look, g.breaker.NextProbe())
	case g.state() == breaker.HalfOpen && !g.paused:
		c.alarms.Set(&g.look, now.Add(c.canaryPatience(g)))
	default:
		c.alarms.Stop(&g.look)
	}
	if g.paused || g.state() == breaker.Open || g.state() == breaker.HalfOpen {
		for d := c.ready.first; d != nil; {
			next := d.next
			if d.Key == g.key {
				c.removeReady(d, stateWaiting)
				c.leaveGate(d)
				c.shelve(g, d, now)
			}
			d = next
		}
	} else {
		c.letThrough(g, now)
	}
	c.dropIdleGate(g)
}

// lookAt is called by g's alarm.
func (c *Machine) lookAt(g *Gate, now time.Time) {
	if c.closed || c.draining || c.gates.byKey[g.key] != g || g.paused {
		return
	}
	byProbe := c.HasProbe && !g.probing
	if c.paused && !byProbe {
		c.alarms.Set(&g.look, now.Add(whilePaused)) // no canary could run
		return
	}
	switch g.state() {
	case breaker.Open:
		g.probing = g.probing || byProbe
		c.turn(g, now, (*breaker.Breaker).Probe)
		if byProbe {
			c.want(Effect{Kind: Probe, Gate: g, N: g.canaries, Started: now})
			return
		}
		c.sendCanary(g, now)
	case breaker.HalfOpen:
		if g.probing && g.active == 0 {
			c.complain("probe", "Config.Outage.Probe has not returned, long after its context ended; messages are run in its place", "key", g.key)
		}
		// The probe or the canary has not ended: start another canary, if that leaves
		// half of the places to others.
		if g.active*2 < max(2, c.concurrency) {
			c.sendCanary(g, now)
		}
	case breaker.Ramping:
		if g.holding == 0 && g.active == 0 && g.breaker.Promising() {
			c.ramp(g, now, func(b *breaker.Breaker) { b.Idle(c.capacity(), now) })
			return
		}
		c.letThrough(g, now)
	}
}

// sendCanary lets one message pass, to see how its attempt ends. It takes a message that has
// failed already, so that no other message has to fail. Every freshEvery times it takes one
// that has not failed, or receives one: those that failed may be bad messages. If as many
// are held as possible, and all of them have failed, it always takes one that has not, and
// hides one of the others to make room: otherwise a producer of so many bad messages could
// keep all others waiting for ever.
func (c *Machine) sendCanary(g *Gate, now time.Time) {
	g.canaries++
	g.wanted = true
	g.fresh = g.canaries%freshEvery == 0
	if g.held.first == nil && g.holding >= c.freshUpTo() {
		g.fresh = true
		// Only behind others: while nothing is received, a longer wait is of no use.
		c.sendAway(cmp.Or(c.candidate(&g.tried, now), g.tried.first), g, minAway, now)
	}
	lists := []*fifo{&g.tried, &g.held}
	if g.fresh {
		lists = lists[1:]
	}
	for _, list := range lists {
		for d := c.candidate(list, now); d != nil && g.wanted; d = c.candidate(list, now) {
			c.stepOut(d)
			c.begin(d, now) // it may have to be given up: then g still wants another
		}
	}
	patience := c.canaryPatience(g)
	if g.wanted && g.holding > 0 {
		patience = freshPatience
	}
	c.alarms.Set(&g.look, now.Add(patience))
}

// canaryPatience returns how long a probe or a canary may run before another canary starts.
func (c *Machine) canaryPatience(g *Gate) time.Duration {
	if g.probing {
		return ProbeTimeout + shortCanary
	}
	return min(longCanary, max(shortCanary, 2*c.taskTime.mean))
}

// freshUpTo returns up to how many held messages another one may be received as the canary.
func (c *Machine) freshUpTo() int {
	all, _ := c.places()
	return 2 * all
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
	if g.state() == breaker.HalfOpen && g.wanted && c.reserved == 0 {
		return true, 1
	}
	return g.state() == breaker.Open || g.state() == breaker.HalfOpen, 0
}

// Key returns the key of g's messages: empty for all messages of a consumer without keys.
func (g *Gate) Key() string { return g.key }

// ProbeEnded takes in the result of a probe of g that began at the given time: nil if the
// dependency is available. n is the number in the effect: if a canary has started since, the
// result is out of date and ignored.
func (c *Machine) ProbeEnded(g *Gate, n int, began time.Time, err error) {
	g.probing = false
	if !c.closed && g.state() == breaker.HalfOpen && g.canaries == n {
		if err != nil {
			g.cause = err
		}
		c.canaryEnded(g, err != nil, c.now.Sub(began), c.now)
	}
	c.dropIdleGate(g)
}
