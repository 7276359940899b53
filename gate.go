package reprise

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// gates are what keeps messages from their handlers: breakers that are not quiet,
// and keys that are paused. In good times there is none, and they cost nothing.
// Part of the core.
type gates struct {
	byKey   map[string]*gate
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
type gate struct {
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
	probing  bool         // Config.Outage.Probe has not returned
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
func (g *gate) state() BreakerState { return BreakerState(g.breaker.State()) }

// admits reports whether one more message may pass.
func (g *gate) admits(now time.Time) bool {
	switch {
	case g.paused:
		return false
	case g.state() == BreakerRamping:
		return g.active < g.breaker.Level() && !now.Before(g.rested)
	case g.state() == BreakerHalfOpen:
		return g.wanted
	}
	return g.state() == BreakerClosed
}

// gateShut reports whether a gate keeps d from its handler.
func (c *core) gateShut(d *delivery, now time.Time) bool {
	g := c.gates.byKey[d.key]
	return g != nil && !g.admits(now)
}

// line puts d where it waits for a worker, or behind its gate.
func (c *core) line(d *delivery, now time.Time) {
	g := c.gates.byKey[d.key]
	if g == nil {
		c.enlist(d)
		return
	}
	d.tried = d.tried || c.memory.Recall(d.msg.ID, now).Unavailable
	another := g.fresh && d.tried && g.holding < c.freshUpTo()
	switch {
	case another || !g.admits(now):
		c.shelve(g, d, now)
	default:
		if g.state() != BreakerClosed {
			d.gate, d.round = g, g.breaker.Round()
			g.active++
			g.wanted, g.fresh = false, false
		}
		if !d.tried {
			g.waitFor = time.Time{}
		}
		c.enlist(d)
	}
}

// shelve holds d behind g. Where each key has its gate, others go on receiving: so what
// is held is bounded there, and the rest is hidden.
func (c *core) shelve(g *gate, d *delivery, now time.Time) {
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
func (c *core) sendAway(d *delivery, g *gate, most time.Duration, now time.Time) {
	away := c.sentAway(d, most, g.cause, now)
	releases := c.releases(d, now)
	known := c.memory.Note(d.msg.ID, now)
	known.Releases = releases + 1
	if known.Asked && known.Due.After(away.due) { // by the handler
		away.due, away.reason = known.Due, retry.ReasonRetryAfter
	}
	known.Due = away.due
	known.Unrun(d.msg.Attempt, d.receives)
	c.skip(d, away, now)
}

// roomToHold says whether one more message may be held behind g: where each key
// has its gate, half of all places for one key, beside the places of others all
// for all keys; of a batch consumer's bytes half.
func (c *core) roomToHold(g *gate) bool {
	if !c.keyed() {
		return true
	}
	all, _ := c.places()
	share := max(1, all/2)
	if c.batches != nil && c.gates.bytes >= c.heldAtMost()/2 {
		return false
	}
	if g.state() == BreakerRamping {
		return g.holding-g.trying < share // these take the places of others
	}
	return c.gates.shelved < all && g.holding < share
}

// sentAway is the verdict on a message that waits for its key, and that there is
// no room to hold: hidden, longer each time up to most, since each time uses up a
// receive.
func (c *core) sentAway(d *delivery, most time.Duration, cause error, now time.Time) verdict {
	releases := c.releases(d, now)
	wait := min(most, minAway<<min(releases, 10))
	wait += spread(wait/4, d.msg.ID)
	return verdict{outcome: OutcomeRelease, reason: retry.ReasonUnavailable, due: now.Add(wait), err: cause, unavailable: true}
}

// stepOut takes d out of those that are ready, or that wait behind a gate.
func (c *core) stepOut(d *delivery) {
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
	c.delist(d, stateWaiting)
	if g := c.leaveGate(d); g != nil {
		c.follow.unrun = append(c.follow.unrun, g)
	}
}

// leaveGate ends d's passage through a gate, and returns that.
func (c *core) leaveGate(d *delivery) *gate {
	g := d.gate
	if g != nil {
		d.gate = nil
		g.active--
	}
	return g
}

// passedUnrun does what follows when a message that g has let through tells nothing: it
// was lost, released, or given up as a bad message.
func (c *core) passedUnrun(g *gate, now time.Time) {
	switch {
	case c.draining:
	case g.state() == BreakerHalfOpen && g.active == 0 && !g.wanted:
		c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
	case g.state() == BreakerRamping:
		c.letThrough(g, now)
	}
}

// recount brings gates.shelved up to date with g. While g is ramping, held messages that
// have not failed take room: otherwise a backlog would be received only to be held. Those
// that have failed take none: otherwise no other message could be received.
func (c *core) recount(g *gate) {
	shelved := g.holding
	if g.state() == BreakerRamping && !g.paused {
		shelved = g.trying
	}
	c.gates.shelved += shelved - g.shelved
	g.shelved = shelved
}

// letThrough lets as many of the held messages pass as g admits. While ramping, those
// that have failed come only when there has been no other for rampPatience: they may be
// what made the breaker open, and none of the rest.
func (c *core) letThrough(g *gate, now time.Time) {
	for n := g.holding; n > 0 && g.admits(now); n-- {
		d := g.held.first
		if d == nil {
			if g.state() == BreakerRamping && !g.patientUntil(now) {
				break
			}
			d = g.tried.first
		}
		c.stepOut(d)
		c.begin(d, now)
	}
	c.awaitTurn(g, now)
}

// patientUntil reports whether those messages that have failed need wait no longer
// for others.
func (g *gate) patientUntil(now time.Time) bool {
	if g.waitFor.IsZero() {
		g.waitFor = now.Add(rampPatience)
	}
	return !now.Before(g.waitFor)
}

// awaitTurn sets g's alarm, while ramping, to when held messages may pass that may not
// now, or to when g has been idle for a while.
func (c *core) awaitTurn(g *gate, now time.Time) {
	if g.state() != BreakerRamping || g.paused || g.active >= g.breaker.Level() {
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
func (c *core) addGate(key string) *gate {
	if c.gates.byKey == nil {
		c.gates.byKey = make(map[string]*gate)
	}
	g := &gate{key: key, breaker: breaker.New(c.cfg.Outage.Threshold)}
	if former := &c.gates.former; !c.keyed() {
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
func (c *core) watch(key string) *gate {
	if len(c.gates.byKey) >= maxGates {
		var oldest *gate
		for _, g := range c.gates.byKey {
			idle := g.state() == BreakerClosed && !g.paused && g.holding == 0 && !g.probing
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

// tidy forgets g if nothing is known by it. While a probe of it is under way that is
// known: there is not to be another beside it.
func (c *core) tidy(g *gate) {
	if g.breaker.Quiet() && !g.paused && g.holding == 0 && !g.probing {
		c.alarms.Stop(&g.look)
		delete(c.gates.byKey, g.key)
		if !c.keyed() {
			c.gates.former = formerGate{g.breaker, c.counts.Deleted, true}
		}
	}
}

// throughBreaker tells the breaker of d how its attempt ended, and returns v, or what
// becomes of d instead since a breaker is open.
func (c *core) throughBreaker(d *delivery, v verdict, o opinion, took time.Duration, now time.Time) verdict {
	let := c.leaveGate(d)
	v.unavailable = o.unavailable
	g := c.gates.byKey[d.key]
	if g == nil && o.unavailable {
		g = c.watch(d.key)
	}
	if g == nil || c.cfg.Outage.Off {
		return v
	}
	if o.unavailable {
		g.cause = o.err
	}
	told := v.outcome == OutcomeDelete || v.outcome != OutcomeLost && o.decision.Action != retry.ActionRelease && o.passedOn == nil && o.decision.Reason != retry.ReasonPermanent
	switch {
	case !told && !o.unavailable:
		if let == g {
			c.follow.unrun = append(c.follow.unrun, g)
		}
	case g.state() == BreakerClosed:
		if g.breaker.Attempted(d.msg.OriginID, o.unavailable, now) {
			c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
		}
		c.tidy(g)
	case let == g:
		c.passedAndEnded(g, d, o.unavailable, took, now)
	}
	blind := g.state() == BreakerOpen || g.state() == BreakerHalfOpen || g.state() == BreakerRamping && (let != g || !g.breaker.Rising())
	if o.unavailable && blind {
		return c.spare(g, d, v, now)
	}
	return v
}

// passedAndEnded takes in the end of an attempt at a message that g has let through.
func (c *core) passedAndEnded(g *gate, d *delivery, unavailable bool, took time.Duration, now time.Time) {
	if g.state() != BreakerRamping {
		c.canaryEnded(g, unavailable, took, now)
		return
	}
	c.ramp(g, now, func(b *breaker.Breaker) {
		b.Ended(d.round, d.msg.OriginID, unavailable, took, c.capacity(), now, c.chance.Float64())
		g.rested = now.Add(b.Rest(took))
	})
}

// ramp changes g's breaker, which is ramping, and does what follows from it.
func (c *core) ramp(g *gate, now time.Time, change func(*breaker.Breaker)) {
	b := g.breaker
	change(&b)
	if b.State() != breaker.Ramping {
		c.turn(g, now, func(old *breaker.Breaker) { *old = b })
		return
	}
	rising := g.breaker.Rising()
	g.breaker = b
	switch {
	case b.Rising() && !rising:
		c.wakeHidden(g, now)
	case rising && !b.Rising():
		c.stopWaking(g.key)
	}
	c.letThrough(g, now)
}

// canaryEnded takes in the end of a probe.
func (c *core) canaryEnded(g *gate, unavailable bool, took time.Duration, now time.Time) {
	switch {
	case !unavailable:
		c.turn(g, now, func(b *breaker.Breaker) { b.Answered(took, now) })
	case g.state() == BreakerHalfOpen:
		c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
	}
}

// spare is the verdict on a message whose attempt failed while its breaker was
// not closed: no attempt is counted, and it is held. What is given up for its age,
// or since its queue would drop it, stays given up.
func (c *core) spare(g *gate, d *delivery, v verdict, now time.Time) verdict {
	if v.outcome == OutcomeLost || v.outcome == OutcomeDeadLetter && (v.reason == retry.ReasonAge || v.reason == retry.ReasonRetention) {
		return v
	}
	var asked time.Time // by the handler
	if v.reason == retry.ReasonRetryAfter {
		asked = v.due
	}
	if c.draining || !c.roomToHold(g) {
		away := c.sentAway(d, maxAway, v.err, now)
		if away.due.Before(asked) {
			away.due = asked
		}
		return c.route(d, away, now)
	}
	return verdict{outcome: OutcomeHold, reason: retry.ReasonUnavailable, due: asked, err: v.err, unavailable: true}
}

// holdAgain takes d back from its handler, to be run again.
func (c *core) holdAgain(d *delivery, v verdict, now time.Time) {
	c.move(d, stateWaiting)
	d.run = new(run)
	d.tried = true
	if !v.due.IsZero() {
		known := c.memory.Note(d.msg.ID, now)
		known.Due, known.Asked = v.due, true // by the handler: it is not woken before
		known.Unrun(d.msg.Attempt, d.receives)
	}
	if g := c.gates.byKey[d.key]; g != nil && !g.admits(now) {
		c.shelve(g, d, now)
	} else {
		c.begin(d, now)
	}
}
