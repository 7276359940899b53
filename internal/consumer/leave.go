package consumer

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
)

// lose lets go of a message that another consumer may hold by now. While its handler runs,
// it only ends the handler's context.
func (c *Machine) lose(d *Delivery, err error) {
	if !d.lease.Lost() && errors.Is(err, errLeaseEnded) {
		c.leaseEnds()
	}
	if d.state == stateRunning {
		if !d.lease.Lost() {
			c.interrupt(d)
		}
		return // d is released when its handler has returned
	}
	now := c.now
	if d.state.settles() && (d.verdict.Outcome == OutcomeDelete || d.copied) {
		// If it is received again, it is deleted without being run.
		c.memory.Note(d.ID, now).Done = true
	}
	d.verdict = Verdict{Outcome: OutcomeLost, Err: err}
	c.release(d, now)
}

// release stops holding d: it is settled, or lost.
func (c *Machine) release(d *Delivery, now time.Time) {
	c.losses.leases.count(d.verdict.Outcome == OutcomeLost || d.lease.Lost())
	if d.verdict.Outcome == OutcomeLost {
		c.counts.Lost++
		c.rememberLost(d, now)
	}
	if d.state.waits() {
		c.unready(d, now)
	}
	c.move(d, stateGone)
	delete(c.held, d.ID)
	c.uncountBytes(d)
	if c.TellSettled {
		c.unreported = append(c.unreported, Settled{Subject: d.Subject(), Outcome: d.verdict.Outcome, Requeued: d.verdict.requeue != carry.Hidden, Reason: d.verdict.Reason, Due: d.verdict.Due, Requests: d.requests, Err: d.lostTo()})
	}
	if c.Queue.FIFO {
		c.deferred.gone = append(c.deferred.gone, d)
	}
}

// unready takes d out of the list in which it waits to be started.
func (c *Machine) unready(d *Delivery, now time.Time) {
	switch d.state {
	case stateScheduled:
		c.awaited(d)
	case stateShelved, stateReady:
		c.stepOut(d)
	case stateAlone:
		c.move(d, stateWaiting)
		c.leaveSolo(d, now)
	}
}

// awaited notes that d no longer waits for its due time.
func (c *Machine) awaited(d *Delivery) {
	if d.state == stateScheduled {
		c.move(d, stateWaiting)
		c.groups.Busy(&d.member)
	}
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
		c.deferred.withoutResult = append(c.deferred.withoutResult, passedGate{gate: g})
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
