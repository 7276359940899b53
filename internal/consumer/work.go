package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Arrive is [Machine.Take] for a worker that has just been started.
func (c *Machine) Arrive() *Delivery {
	c.workerStarting = false
	return c.Take()
}

// WorkerEnded notes that a worker has ended. If the user's code has ended its goroutine, the
// end of the section starts another.
func (c *Machine) WorkerEnded() { c.workers-- }

// Escaped notes that the user's code ends each goroutine that tries to judge the attempt at
// d. The message is lost: its lease is left to end.
func (c *Machine) Escaped(d *Delivery) { d.lease.Lose() }

// Panicked counts a handler's panic.
func (c *Machine) Panicked() { c.counts.Panics++ }

// Ended takes in the end of the attempt at d, which the user's code judges by o, and begins
// the settlement. trail is what Observer.Starting returned; empty: the trail before it
// stays. It returns the verdict, and d as the log and observers are told of it.
func (c *Machine) Ended(d *Delivery, o Opinion, trail string, took time.Duration, now time.Time) (Verdict, Subject) {
	v := c.throughBreaker(d, c.judge(d, o, now), o, took, now)
	d.leaveTrail(trail)
	told := d.Subject()
	c.finish(d, v, took, now)
	return v, told
}

// Take takes the next message to run, for a worker; nil if none may start.
func (c *Machine) Take() *Delivery {
	c.loseEnded()
	d := c.nextGranted()
	if d != nil {
		c.setOff(d)
		c.charge()
	}
	return d
}

// loseEnded gives up the messages that would start next although their lease has ended. Usually an alarm does that in
// time. But if the computer slept, a handler may end before the alarm rings, and give them its place.
func (c *Machine) loseEnded() {
	if s := c.solo; s.next != nil && s.owner == c && s.next.lease.Over(c.now) {
		c.lose(s.next, errLeaseEnded)
	}
	c.firstInTime()
}

// firstInTime returns the first message that is ready and whose lease has not ended; those before it are lost.
func (c *Machine) firstInTime() *Delivery {
	for c.ready.first != nil && c.ready.first.lease.Over(c.now) {
		c.lose(c.ready.first, errLeaseEnded)
	}
	return c.ready.first
}

// setOff moves d, which nextGranted has returned, to its handler.
func (c *Machine) setOff(d *Delivery) {
	now := c.now
	switch d.state {
	case stateAlone:
		c.move(d, stateRunning)
		if g := c.gates.byKey[d.Key]; g != nil && g.Admits(now) {
			g.pass(d) // its end says as much about the dependency as that of others
		}
		c.runAlone(now)
	case stateReady:
		c.removeReady(d, stateRunning)
	default: // in one batch with the head of its group
		c.move(d, stateRunning)
	}
	c.countStart(now)
	d.began = now
	c.handlerMoved(d, d.began)
	if timeout := c.HandlerTimeout; timeout > 0 {
		c.planKeeping(d.began.Add(timeout).Add(hungAfter)) // see hungFrom
	}
	c.counts.Attempts++
}

// judge decides what an attempt's end means.
func (c *Machine) judge(d *Delivery, o Opinion, ended time.Time) Verdict {
	err, decision := o.Err, o.Decision
	switch {
	case err == nil:
		return Verdict{Outcome: OutcomeDelete}
	case d.lease.Lost():
		return Verdict{Outcome: OutcomeLost, Reason: decision.Reason, Err: err}
	case o.Cut == CutStopping:
		return c.route(d, releasedAtStop(err), ended)
	case o.Cut == CutLeaseLost:
		// The lease was lost, but the message has been received again meanwhile.
		due := ended.Add(c.leastRelease(d))
		return c.byGroup(d, Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, Due: due, Err: err}, ended)
	}
	v := Verdict{Reason: decision.Reason, Due: decision.At, Err: err}
	switch decision.Action {
	case retry.ActionRelease:
		v.Outcome = OutcomeRelease
		if least := ended.Add(c.leastRelease(d)); v.Due.Before(least) {
			v.Due = least
		}
	case retry.ActionDeadLetter:
		v.Outcome, v.Due = OutcomeDeadLetter, time.Time{}
	default:
		v.Outcome = OutcomeRetry
	}
	return c.byGroup(d, v, ended)
}

// finish frees d's place in its handler and begins d's settlement.
func (c *Machine) finish(d *Delivery, v Verdict, took time.Duration, now time.Time) {
	c.handlerMoved(d, now)
	c.leaveSolo(d, now)
	if v.Outcome == OutcomeHold && v.Reason == retry.ReasonUnavailable {
		c.holdAgain(d, v, now)
		return
	}
	c.taskTime.add(took)
	if v.Outcome == OutcomeHold {
		c.holdGroup(d, v, now)
		return
	}
	d.verdict = v
	d.ran = true
	if v.Outcome == OutcomeLost {
		if v.Reason == retry.ReasonPermanent { // this process must not run it again
			known := c.memory.Note(d.ID, now)
			known.Spent, known.Reason, known.Err = true, v.Reason, v.Err
			known.Runs, known.Receives = max(known.Runs, d.Attempt), d.receives
		}
		c.release(d, now)
		return
	}
	c.move(d, stateSettling)
	if v.Err != nil {
		c.remember(d, now)
	}
	c.settle(d, now)
}
