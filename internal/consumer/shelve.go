package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

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
	g.pass(d)
	c.addReady(d)
}

// pass lets d through.
func (g *Gate) pass(d *Delivery) {
	if g.Pass(d.tried) {
		d.gate, d.round = g, g.Breaker.Round()
	}
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
	c.deferred.shelved = c.deferred.shelved || c.draining // no probe would let it through
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

// sentAway returns the verdict on a message that waits for its key, if there is no room to
// hold it: it is hidden, for a longer time each time, up to most, because each time uses up
// a receive.
func (c *Machine) sentAway(d *Delivery, most time.Duration, cause error, now time.Time) Verdict {
	releases := c.releases(d, now)
	wait := min(most, minAway<<min(releases, 10))
	wait += spread(wait/4, d.ID)
	return Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonUnavailable, Due: now.Add(wait), Err: cause, unavailable: true}
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
