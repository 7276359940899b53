package consumer

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// gates are what keeps messages from their handlers: breakers that are not quiet,
// and keys that are paused. In good times there is none, and they cost nothing.
type gates struct {
	byKey   map[string]*Gate
	shelved int        // messages held that take no room of those that may start
	bytes   int        // of all messages held, of a batch consumer
	former  formerGate // of the whole consumer
}

// formerGate is what is remembered of the gate of a whole consumer, which comes and
// goes with failures: how usual these are.
type formerGate struct {
	breaker breaker.Breaker
	deleted int64 // the messages that were deleted until it went
	known   bool
}

// gate stands before the handlers of one key's messages, or of all.
type Gate struct {
	key     string
	breaker breaker.Breaker
	paused  bool

	held    fifo // of messages that have not failed
	tried   fifo // of those that have, for want of the dependency
	holding int  // in either
	trying  int  // in tried
	shelved int  // of them, those counted in gates.shelved

	active   int          // messages let through since the breaker's last turn and not yet ended
	wanted   bool         // half-open: the next message that comes is the canary
	fresh    bool         // only one that has not failed
	waitFor  time.Time    // ramping: messages that have failed wait until then for others
	rested   time.Time    // ramping: no handler is started before
	probing  bool         // Settings.Outage.Probe has not returned
	canaries int          // sent so far
	look     alarms.Alarm // rings when g is to be looked at: for its probe, or who may pass
	cause    error        // the latest failure for want of the dependency
}

const (
	maxGates = 1000

	// A key's messages that there is no room to hold are hidden, longer each time.
	minAway = time.Minute
	maxAway = 10 * time.Minute

	// rampPatience is for how long, while ramping, messages that have failed wait
	// for others to come and go first.
	rampPatience = time.Second
	// rampIdle is how long nothing runs, while ramping, before more may run at once
	// and hidden messages are woken.
	rampIdle = 2 * time.Second
)

// state is the state of g's breaker.
func (g *Gate) state() breaker.State { return g.breaker.State() }

// admits reports whether one more message may pass.
func (g *Gate) admits(now time.Time) bool {
	switch {
	case g.paused:
		return false
	case g.state() == breaker.Ramping:
		return g.active < g.breaker.Level() && !now.Before(g.rested)
	case g.state() == breaker.HalfOpen:
		return g.wanted
	}
	return g.state() == breaker.Closed
}

// gateShut reports whether a gate keeps d from its handler.
func (c *Machine) gateShut(d *Delivery, now time.Time) bool {
	g := c.gates.byKey[d.Key]
	return g != nil && !g.admits(now)
}

// readyOrShelve puts d where it waits for a worker, or behind its gate.
func (c *Machine) readyOrShelve(d *Delivery, now time.Time) {
	g := c.gates.byKey[d.Key]
	if g == nil {
		c.addReady(d)
		return
	}
	d.tried = d.tried || c.memory.Recall(d.ID, now).Unavailable
	another := g.fresh && d.tried && g.holding < c.freshUpTo()
	switch {
	case another || !g.admits(now):
		c.shelve(g, d, now)
	default:
		if g.state() != breaker.Closed {
			d.gate, d.round = g, g.breaker.Round()
			g.active++
			g.wanted, g.fresh = false, false
		}
		if !d.tried {
			g.waitFor = time.Time{}
		}
		c.addReady(d)
	}
}

// shelve holds d behind g. Where each key has its gate, others go on receiving: so what
// is held is bounded there, and the rest is hidden.
func (c *Machine) shelve(g *Gate, d *Delivery, now time.Time) {
	if !c.roomToHold(g) {
		c.sendAway(d, g, maxAway, now)
		return
	}
	c.move(d, stateShelved)
	d.shelf = g
	g.holding++
	c.gates.bytes += d.size
	if d.tried {
		g.trying++
		g.tried.push(d)
	} else {
		g.held.push(d)
	}
	c.recount(g)
	c.awaitTurn(g, now)
}

// sendAway hides d, which waits, for a while, since there is no room to hold it behind
// g: longer each time, up to most.
func (c *Machine) sendAway(d *Delivery, g *Gate, most time.Duration, now time.Time) {
	away := c.sentAway(d, most, g.cause, now)
	releases := c.releases(d, now)
	known := c.memory.Note(d.ID, now)
	known.Releases = releases + 1
	if known.Asked && known.Due.After(away.Due) { // by the handler
		away.Due, away.Reason = known.Due, retry.ReasonRetryAfter
	}
	known.Due = away.Due
	known.Unrun(d.Attempt, d.receives)
	c.skip(d, away, now)
}

// roomToHold reports whether one more message may be held behind g. Where each key has
// its gate, one key may hold half of the places, all keys together all of them; of a
// batch consumer's bytes half.
func (c *Machine) roomToHold(g *Gate) bool {
	if !c.Keyed {
		return true
	}
	all, _ := c.places()
	share := max(1, all/2)
	if c.batches != nil && c.gates.bytes >= c.heldAtMost()/2 {
		return false
	}
	if g.state() == breaker.Ramping {
		return g.holding-g.trying < share // these take the places of others
	}
	return c.gates.shelved < all && g.holding < share
}

// sentAway is the verdict on a message that waits for its key, and that there is
// no room to hold: hidden, longer each time up to most, since each time uses up a
// receive.
func (c *Machine) sentAway(d *Delivery, most time.Duration, cause error, now time.Time) Verdict {
	releases := c.releases(d, now)
	wait := min(most, minAway<<min(releases, 10))
	wait += spread(wait/4, d.ID)
	return Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonUnavailable, Due: now.Add(wait), Err: cause, unavailable: true}
}

// stepOut takes d out of those that are ready, or that wait behind a gate.
func (c *Machine) stepOut(d *Delivery) {
	if g := d.shelf; g != nil {
		c.move(d, stateWaiting)
		d.shelf = nil
		g.holding--
		c.gates.bytes -= d.size
		if d.tried {
			g.trying--
			g.tried.remove(d)
		} else {
			g.held.remove(d)
		}
		c.recount(g)
		return
	}
	c.removeReady(d, stateWaiting)
	if g := c.leaveGate(d); g != nil {
		c.deferred.withoutResult = append(c.deferred.withoutResult, g)
	}
}

// leaveGate ends d's passage through a gate, and returns that.
func (c *Machine) leaveGate(d *Delivery) *Gate {
	g := d.gate
	if g != nil {
		d.gate = nil
		g.active--
	}
	return g
}

// endedWithoutResult does what follows when a message that g has let through tells nothing: it
// was lost, released, or given up as a bad message.
func (c *Machine) endedWithoutResult(g *Gate, now time.Time) {
	switch {
	case c.draining:
	case g.state() == breaker.HalfOpen && g.active == 0 && !g.wanted:
		c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
	case g.state() == breaker.Ramping:
		c.letThrough(g, now)
	}
}

// recount brings gates.shelved up to date with g. While g is ramping, held messages that
// have not failed take room: otherwise a backlog would be received only to be held. Those
// that have failed take none: otherwise no other message could be received.
func (c *Machine) recount(g *Gate) {
	shelved := g.holding
	if g.state() == breaker.Ramping && !g.paused {
		shelved = g.trying
	}
	c.gates.shelved += shelved - g.shelved
	g.shelved = shelved
}

// letThrough lets as many of the held messages pass as g admits. While ramping, those
// that have failed come only when there has been no other for rampPatience: they may be
// what made the breaker open, and none of the rest.
func (c *Machine) letThrough(g *Gate, now time.Time) {
	for n := g.holding; n > 0 && g.admits(now); n-- {
		d := g.held.first
		if d == nil {
			if g.state() == breaker.Ramping && !g.awaitOthers(now) {
				break
			}
			d = g.tried.first
		}
		c.stepOut(d)
		c.begin(d, now)
	}
	c.awaitTurn(g, now)
}

// awaitOthers begins the time for which messages that have failed wait for others, if it
// has not begun, and reports whether it is over.
func (g *Gate) awaitOthers(now time.Time) bool {
	if g.waitFor.IsZero() {
		g.waitFor = now.Add(rampPatience)
	}
	return !now.Before(g.waitFor)
}

// awaitTurn sets g's alarm, while ramping, to when held messages may pass that may not
// now, or to when g has been idle for a while.
func (c *Machine) awaitTurn(g *Gate, now time.Time) {
	if g.state() != breaker.Ramping || g.paused || g.active >= g.breaker.Level() {
		return
	}
	if g.holding == 0 {
		if g.breaker.Promising() {
			c.alarms.Set(&g.look, now.Add(rampIdle))
		}
		return
	}
	at := g.rested
	if g.held.first == nil && g.waitFor.After(at) {
		at = g.waitFor
	}
	if at.Before(now) {
		at = now
	}
	c.alarms.Set(&g.look, at)
}

// addGate makes the gate of a key.
func (c *Machine) addGate(key string) *Gate {
	if c.gates.byKey == nil {
		c.gates.byKey = make(map[string]*Gate)
	}
	g := &Gate{key: key, breaker: breaker.New(c.Threshold)}
	if former := &c.gates.former; !c.Keyed {
		if former.known {
			g.breaker = former.breaker
		}
		g.breaker.Succeeded(int(min(c.counts.Deleted-former.deleted, math.MaxInt32)))
	}
	g.look.Do = func(now time.Time) { c.lookAt(g, now) }
	c.gates.byKey[key] = g
	return g
}

// watch returns the gate of a key whose messages begin to fail; nil if as many
// keys as can be are watched, and all of them more urgent.
func (c *Machine) watch(key string) *Gate {
	if len(c.gates.byKey) >= maxGates {
		var oldest *Gate
		for _, g := range c.gates.byKey {
			idle := g.state() == breaker.Closed && !g.paused && g.holding == 0 && !g.probing
			if idle && (oldest == nil || g.breaker.LastFailure().Before(oldest.breaker.LastFailure())) {
				oldest = g
			}
		}
		if oldest == nil {
			return nil
		}
		delete(c.gates.byKey, oldest.key)
	}
	return c.addGate(key)
}

// dropIdleGate forgets g if nothing is known by it. While a probe of it is under way that is
// known: there is not to be another beside it.
func (c *Machine) dropIdleGate(g *Gate) {
	if g.breaker.Quiet() && !g.paused && g.holding == 0 && !g.probing {
		c.alarms.Stop(&g.look)
		delete(c.gates.byKey, g.key)
		if !c.Keyed {
			c.gates.former = formerGate{g.breaker, c.counts.Deleted, true}
		}
	}
}
