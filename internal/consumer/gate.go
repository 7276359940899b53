package consumer

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/gate"
	"github.com/reprise-sqs/reprise/retry"
)

// gates keep messages from their handlers: a gate exists for each breaker that has seen
// failures lately, and for each paused key. While nothing fails there is none, and gates
// cost nothing.
type gates struct {
	byKey   map[string]*Gate
	shelved int        // held messages that do not count against the room for others
	bytes   int        // of all held messages, if the consumer runs batches
	former  formerGate // the latest gate of a consumer without keys
}

// formerGate remembers the gate of a consumer without keys, which exists only while there
// are failures: it knows how usual failures are.
type formerGate struct {
	breaker breaker.Breaker
	deleted int64 // how many messages had been deleted when it was dropped
	known   bool
}

// Gate is that of one key, with the messages that it holds.
type Gate struct {
	gate.Gate
	key     string
	held    fifo         // messages that have not failed
	tried   fifo         // messages that have failed because the dependency was unavailable
	counted int          // how many of them gates.shelved counts
	look    alarms.Alarm // rings when a probe is due, or when more messages may pass
	cause   error        // the latest error that counted as unavailable
}

const (
	maxGates = 1000

	// A key's messages are hidden if there is no room to hold them, longer each time.
	minAway = time.Minute
	maxAway = 10 * time.Minute
)

// gateShut reports whether a gate keeps d from its handler.
func (c *Machine) gateShut(d *Delivery, now time.Time) bool {
	g := c.gates.byKey[d.Key]
	return g != nil && !g.Admits(now)
}

// readyOrShelve makes d ready for a worker, or holds it behind its gate.
func (c *Machine) readyOrShelve(d *Delivery, now time.Time) {
	g := c.gates.byKey[d.Key]
	if g == nil {
		c.addReady(d)
		return
	}
	d.tried = d.tried || c.memory.Recall(d.ID, now).Unavailable
	if !g.AdmitsThis(d.tried, c.freshUpTo(), now) {
		c.shelve(g, d, now)
		return
	}
	if g.Pass(d.tried) {
		d.gate, d.round = g, g.Breaker.Round()
	}
	c.addReady(d)
}

// shelve holds d behind g. If each key has its gate, receiving goes on for other keys: so
// the number of held messages is limited, and the others are hidden.
func (c *Machine) shelve(g *Gate, d *Delivery, now time.Time) {
	if !c.roomToHold(g) {
		c.sendAway(d, g, maxAway, now)
		return
	}
	c.move(d, stateShelved)
	d.shelf = g
	g.Hold(d.tried)
	c.gates.bytes += d.size
	if d.tried {
		g.tried.push(d)
	} else {
		g.held.push(d)
	}
	c.recount(g)
	c.awaitTurn(g, now)
}

// sendAway hides d, which waits, because there is no room to hold it behind g: for a longer
// time each time, up to most.
func (c *Machine) sendAway(d *Delivery, g *Gate, most time.Duration, now time.Time) {
	away := c.sentAway(d, most, g.cause, now)
	releases := c.releases(d, now)
	known := c.memory.Note(d.ID, now)
	known.Releases = releases + 1
	if known.Asked && known.Due.After(away.Due) { // the handler asked for a longer wait
		away.Due, away.Reason = known.Due, retry.ReasonRetryAfter
	}
	known.Due = away.Due
	known.Unrun(d.Attempt, d.receives)
	c.skip(d, away, now)
}

// roomToHold reports whether one more message may be held behind g. Where each key has
// its gate, one key may hold half of the places, all keys together all of them, and all
// keys of a batch consumer together half of the bytes.
func (c *Machine) roomToHold(g *Gate) bool {
	if !c.Keyed {
		return true
	}
	all, _ := c.places()
	share := max(1, all/2)
	if c.batches != nil && c.gates.bytes >= c.heldAtMost()/2 {
		return false
	}
	if g.State() == breaker.Ramping {
		return g.Untried() < share // they count against the room for others
	}
	return c.gates.shelved < all && g.Holding() < share
}

// sentAway returns the verdict on a message that waits for its key, if there is no room to
// hold it: it is hidden, for a longer time each time, up to most, because each time uses up
// a receive.
func (c *Machine) sentAway(d *Delivery, most time.Duration, cause error, now time.Time) Verdict {
	releases := c.releases(d, now)
	wait := min(most, minAway<<min(releases, 10))
	wait += spread(wait/4, d.ID)
	return Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonUnavailable, Due: now.Add(wait), Err: cause, unavailable: true}
}

// stepOut takes d out of the messages that are ready, or out of those behind its gate.
func (c *Machine) stepOut(d *Delivery) {
	if g := d.shelf; g != nil {
		c.move(d, stateWaiting)
		d.shelf = nil
		g.Unhold(d.tried)
		c.gates.bytes -= d.size
		if d.tried {
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

// leaveGate notes that the run for which a gate let d through is over, and returns the gate;
// nil if there was none.
func (c *Machine) leaveGate(d *Delivery) *Gate {
	g := d.gate
	if g != nil {
		d.gate = nil
		g.Ended()
	}
	return g
}

// endedWithoutResult is called when the end of a message that g has let through shows
// nothing about the dependency: it was lost, released, or given up as a bad message.
func (c *Machine) endedWithoutResult(g *Gate, now time.Time) {
	switch {
	case c.draining:
	case g.State() == breaker.HalfOpen && g.Active() == 0 && !g.Wanted():
		c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
	case g.State() == breaker.Ramping:
		c.letThrough(g, now)
	}
}

// recount brings gates.shelved up to date with g.
func (c *Machine) recount(g *Gate) {
	shelved := g.Shelved()
	c.gates.shelved += shelved - g.counted
	g.counted = shelved
}

// letThrough lets as many of the held messages pass as g admits.
func (c *Machine) letThrough(g *Gate, now time.Time) {
	for n := g.Holding(); n > 0 && g.Admits(now); n-- {
		d := g.held.first
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

// awaitTurn sets g's alarm while g is ramping.
func (c *Machine) awaitTurn(g *Gate, now time.Time) {
	if at := g.NextTurn(now); !at.IsZero() {
		c.alarms.Set(&g.look, at)
	}
}

// addGate makes the gate of a key.
func (c *Machine) addGate(key string) *Gate {
	if c.gates.byKey == nil {
		c.gates.byKey = make(map[string]*Gate)
	}
	b := breaker.New(c.Threshold)
	if former := &c.gates.former; !c.Keyed {
		if former.known {
			b = former.breaker
		}
		b.Succeeded(int(min(c.counts.Deleted-former.deleted, math.MaxInt32)))
	}
	g := &Gate{Gate: gate.New(b), key: key}
	g.look.Do = func(now time.Time) { c.lookAt(g, now) }
	c.gates.byKey[key] = g
	return g
}

// watch returns a gate for a key whose messages begin to fail; nil if there are maxGates
// already, and none of them can be dropped.
func (c *Machine) watch(key string) *Gate {
	if len(c.gates.byKey) >= maxGates {
		var oldest *Gate
		for _, g := range c.gates.byKey {
			idle := g.State() == breaker.Closed && g.Idle()
			if idle && (oldest == nil || g.Breaker.LastFailure().Before(oldest.Breaker.LastFailure())) {
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

// dropIdleGate drops g if it is idle and its breaker has seen no failure lately.
func (c *Machine) dropIdleGate(g *Gate) {
	if g.Breaker.Quiet() && g.Idle() {
		c.alarms.Stop(&g.look)
		delete(c.gates.byKey, g.key)
		if !c.Keyed {
			c.gates.former = formerGate{g.Breaker, c.counts.Deleted, true}
		}
	}
}
