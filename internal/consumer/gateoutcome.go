package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// throughBreaker tells d's breaker how the attempt ended. It returns v or, if the breaker is
// open, the verdict that replaces it.
func (c *Machine) throughBreaker(d *Delivery, v Verdict, o Opinion, took time.Duration, now time.Time) Verdict {
	let := c.leaveGate(d)
	v.unavailable = o.Unavailable
	g := c.gates.byKey[d.Key]
	if g == nil && o.Unavailable {
		g = c.watch(d.Key)
	}
	if g == nil || c.BreakerOff {
		return v
	}
	if o.Unavailable {
		g.cause = o.Err
	}
	told := v.Outcome == OutcomeDelete || v.Outcome != OutcomeLost && o.Decision.Action != retry.ActionRelease && o.Cut == CutNone && o.Decision.Reason != retry.ReasonPermanent
	switch {
	case !told && !o.Unavailable:
		if let == g {
			c.deferred.withoutResult = append(c.deferred.withoutResult, passedGate{g, v.Reason == retry.ReasonPermanent})
		}
	case g.State() == breaker.Closed:
		switch g.Breaker.Attempted(d.OriginID, o.Unavailable, now) {
		case breaker.Open:
			c.turn(g, now, func(b *breaker.Breaker) { b.Open(now, c.chance.Float64()) })
		case breaker.Ramping:
			c.turn(g, now, func(b *breaker.Breaker) { b.Relapse(took, c.capacity(), now) })
		}
		c.dropIdleGate(g)
	case let == g:
		c.passedAndEnded(g, d, o.Unavailable, took, now)
	}
	blind := g.State() == breaker.Open || g.State() == breaker.HalfOpen || g.State() == breaker.Ramping && (let != g || !g.Breaker.Rising())
	if o.Unavailable && blind {
		return c.heldInOutage(g, d, v, now)
	}
	return v
}

// passedAndEnded takes in the end of an attempt at a message that g let through.
func (c *Machine) passedAndEnded(g *Gate, d *Delivery, unavailable bool, took time.Duration, now time.Time) {
	if g.State() != breaker.Ramping {
		c.canaryEnded(g, unavailable, took, now)
		return
	}
	if d.tried && !unavailable {
		g.TriedSucceeded()
	}
	c.ramp(g, now, func(b *breaker.Breaker) {
		b.Ended(d.round, d.OriginID, unavailable, took, c.capacity(), now, c.chance.Float64())
		g.Rest(now.Add(b.Rest(took)))
	})
}

// heldInOutage returns the verdict on a message whose attempt failed while its breaker was
// not closed: no attempt is counted, and the message is held. A message that is given up for
// its age, or because its queue would drop it, stays given up.
func (c *Machine) heldInOutage(g *Gate, d *Delivery, v Verdict, now time.Time) Verdict {
	if v.Outcome == OutcomeLost || v.Outcome == OutcomeDeadLetter && (v.Reason == retry.ReasonAge || v.Reason == retry.ReasonRetention) {
		return v
	}
	var asked time.Time // the wait that the handler asked for
	if v.Reason == retry.ReasonRetryAfter {
		asked = v.Due
	}
	if c.draining || !c.roomToHold(g) {
		away := c.sentAway(d, maxAway, v.Err, now)
		if away.Due.Before(asked) { // the end of the outage does not cut it short
			away.Due, away.Reason = asked, retry.ReasonRetryAfter
		}
		return c.route(d, away, now)
	}
	return Verdict{Outcome: OutcomeHold, Reason: retry.ReasonUnavailable, Due: asked, Err: v.Err}
}

// rampAgain is how long a message that fails while its gate is ramping waits for its next run, if the gate lets
// more pass: otherwise a few that always fail would run as often as they can, until the level is at its lowest.
const rampAgain = time.Second

// holdAgain takes d back from its handler, to be run again.
func (c *Machine) holdAgain(d *Delivery, v Verdict, now time.Time) {
	c.move(d, stateWaiting)
	d.tried = true
	if !v.Due.IsZero() {
		known := c.memory.Note(d.ID, now)
		known.Due, known.Asked = v.Due, true // the handler asked for it: it is not woken before
		known.Unrun(d.Attempt, d.receives)
	}
	g := c.gates.byKey[d.Key]
	switch {
	case g != nil && !g.Admits(now):
		c.shelve(g, d, now)
	case g != nil && g.State() == breaker.Ramping && v.Due.IsZero():
		again := c.sentAway(d, maxAway, v.Err, now) // if it has to leave before
		again.Due = now.Add(rampAgain)
		c.unrun(d, now)
		c.await(d, again, now)
	default:
		c.begin(d, now)
	}
}
