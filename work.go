package reprise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// work runs handlers until nothing is ready.
func (c *Consumer) work() {
	var current *delivery // its handler is running, or is being judged
	var started time.Time
	defer func() {
		defer c.workerEnded()
		if current != nil {
			c.exited(current, started)
		}
	}()
	d := c.arrive()
	for started = time.Now(); d != nil; {
		current = d
		d.run.ctx.start(c.starting(d, c.workCtx), c.cfg.HandlerTimeout)
		err := c.handle(d)
		ended := time.Now()
		o := c.weigh(d, err, ended)
		current = nil
		d, started = c.ended(d, o, started, ended, true)
	}
}

// workerEnded takes a worker off the count. If the user's code has ended its
// goroutine, another goes on.
func (c *Consumer) workerEnded() {
	core := c.enter()
	defer c.leave()
	core.workers--
	if c.pool != nil && core.closed {
		c.pool.closed(core)
	}
}

// exited ends an attempt at d during which the user's code has ended the goroutine
// by runtime.Goexit: it has failed. If the code that judges it does so again, d is
// lost: its lease runs out.
func (c *Consumer) exited(d *delivery, started time.Time) {
	now := time.Now()
	o, judged := opinion{err: errGoexit}, false
	defer func() {
		if !judged {
			c.lock()
			d.loseLease()
			c.unlock()
		}
		c.ended(d, o, started, now, false)
	}()
	o = c.weigh(d, errGoexit, now)
	judged = true
}

// ended settles an attempt of which o is said. If more is set, it also takes the next
// message to run, and returns it with the time: under the same lock, unless somebody has to
// be told of this attempt. Then it does so after telling, since an observer may end the
// goroutine.
func (c *Consumer) ended(d *delivery, o opinion, started, now time.Time, more bool) (next *delivery, then time.Time) {
	quiet := o.err == nil && c.cfg.Observer.Attempt == nil
	core := c.enter()
	v := core.throughBreaker(d, core.judge(d, o, now), o, now.Sub(started), now)
	d.leaveTrail()
	finished, m := d.run, d.msg // of which d has others if it is held
	core.finish(d, v, now.Sub(started), now)
	if more && quiet {
		next = core.nextReady()
	}
	c.leave()
	finished.ctx.end(context.Canceled) // after judging by its cause
	if quiet {
		return next, now
	}
	c.attempted(finished, m, v, o.err, started, now)
	if v.outcome == OutcomeLost {
		c.tellSettled()
	}
	if more {
		next = c.takeReady()
	}
	return next, time.Now()
}

// opinion is what the user's own code, the error's methods and the policy's
// functions, says of an attempt's end.
type opinion struct {
	err         error
	passedOn    error // the cause of the context's end, if err only passes it on
	unavailable bool  // what the handler needs is not there
	decision    retry.Decision
}

// weigh asks the user's code what err means. The caller does not hold c.mu: that
// code may block, panic, or ask for Status.
func (c *Consumer) weigh(d *delivery, err error, ended time.Time) (o opinion) {
	if err == nil {
		return opinion{}
	}
	defer func() {
		if v := recover(); v != nil {
			// A typed nil, most often.
			o = c.weigh(d, &PanicError{Value: fmt.Sprintf("a method of the returned error (%T) panicked: %v", err, v), Stack: debug.Stack()}, ended)
		}
	}()
	o.err = quoted{err, err.Error()}
	if cause := d.run.ctx.cause(); errors.Is(err, context.Canceled) || errors.Is(err, cause) {
		o.passedOn = cause
	}
	core := c.lock()
	policy := core.policy
	c.unlock()
	o.decision = policy.Decide(retry.Failure{
		N:     d.msg.Attempt,
		Seed:  d.seed(),
		Sent:  c.clock.local(d.msg.Sent),
		First: c.clock.local(d.msg.FirstReceived),
		Ended: ended,
		Err:   err,
	})
	if o.decision.Action != retry.ActionRelease && o.decision.Reason != retry.ReasonPermanent {
		o.unavailable = c.isUnavailable(err, o.passedOn)
	}
	return o
}

// quoted is an error whose text has been asked for once and for all.
type quoted struct {
	error
	text string
}

func (q quoted) Error() string { return q.text }
func (q quoted) Unwrap() error { return q.error }

// arrive is takeReady for a worker that has just been started.
func (c *Consumer) arrive() *delivery {
	core := c.enter()
	defer c.leave()
	core.summoned = false
	return core.nextReady()
}

// takeReady is nextReady by itself.
func (c *Consumer) takeReady() *delivery {
	core := c.enter()
	defer c.leave()
	return core.nextReady()
}

// nextReady takes the next message to run.
func (c *core) nextReady() *delivery {
	d := c.startable()
	if d != nil {
		c.setOff(d)
		c.charge()
	}
	return d
}

// setOff takes d, which is startable, to its handler.
func (c *core) setOff(d *delivery) {
	now := c.now
	switch d.state {
	case stateAlone:
		c.move(d, stateRunning)
		c.runAlone(now)
	case stateReady:
		c.delist(d, stateRunning)
	default: // in one batch with the head of its group
		c.move(d, stateRunning)
	}
	c.countStart(now)
	d.began = now
	c.handlerMoved(d, d.began)
	if timeout := c.cfg.HandlerTimeout; timeout > 0 {
		c.planKeeping(d.began.Add(timeout + hungAfter)) // see watchHandler
	}
	c.counts.Attempts++
}

// handle runs the handler. A panic of it, and only of it, is caught here.
func (c *Consumer) handle(d *delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	d.run.shown = *d.msg
	d.run.ctx.msg = &d.run.shown
	return c.handler.Handle(&d.run.ctx, &d.run.shown)
}

// judge decides what an attempt's end means.
func (c *core) judge(d *delivery, o opinion, ended time.Time) verdict {
	err, decision := o.err, o.decision
	switch {
	case err == nil:
		return verdict{outcome: OutcomeDelete}
	case d.leaseState.lost():
		return verdict{outcome: OutcomeLost, reason: decision.Reason, err: err}
	case errors.Is(o.passedOn, ErrStopping):
		return c.route(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, err: err}, ended)
	case errors.Is(o.passedOn, ErrLeaseLost):
		// Interrupted, but a redelivery has brought the message back meanwhile.
		due := ended.Add(c.leastRelease(d))
		return c.byGroup(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: due, err: err}, ended)
	}
	v := verdict{reason: decision.Reason, due: decision.At, err: err}
	switch decision.Action {
	case retry.ActionRelease:
		v.outcome = OutcomeRelease
		if least := ended.Add(c.leastRelease(d)); v.due.Before(least) {
			v.due = least
		}
	case retry.ActionDeadLetter:
		v.outcome, v.due = OutcomeDeadLetter, time.Time{}
	default:
		v.outcome = OutcomeRetry
	}
	return c.byGroup(d, v, ended)
}

// atLastReceive is v, unless v would give a message back whose next receive the queue's
// RedrivePolicy forbids: SQS would then move it to the dead-letter queue without
// running it and without a word. Where no copy takes its place it goes there now, with
// its story.
func (c *core) atLastReceive(d *delivery, v verdict) verdict {
	limit := c.facts.plan.MaxReceives
	if limit == 0 || d.receives < limit || !v.comesAgain() {
		return v
	}
	reason := retry.ReasonReceives
	if v.outcome == OutcomeRetry && d.msg.Attempt >= limit {
		reason = retry.ReasonAttempts // each receive was an attempt
	}
	return verdict{outcome: OutcomeDeadLetter, reason: reason, err: d.withLastError(v.err)}
}

const (
	minRelease = time.Second
	maxRelease = 5 * time.Minute
)

// leastRelease is the shortest time for which a handler's Release of d holds:
// each receive counts against the queue's maxReceiveCount, so a message that is
// released again and again comes back more and more slowly.
func (c *core) leastRelease(d *delivery) time.Duration {
	releases := c.releases(d, c.now)
	return min(maxRelease, minRelease<<min(releases, 20))
}

// releases is how often in a row d was released, as far as is known.
func (c *core) releases(d *delivery, now time.Time) int {
	n := c.memory.Recall(d.msg.ID, now).Releases
	if d.history != nil {
		n = max(n, d.history.Releases)
	}
	return n
}

// finish ends d's time in its handler and begins its settlement.
func (c *core) finish(d *delivery, v verdict, took time.Duration, now time.Time) {
	c.handlerMoved(d, now)
	c.leaveFloor(d, now)
	if v.outcome == OutcomeHold && v.reason == retry.ReasonUnavailable {
		c.holdAgain(d, v, now)
		return
	}
	c.taskTime.add(took)
	if v.outcome == OutcomeHold {
		c.holdGroup(d, v, now)
		return
	}
	d.verdict = v
	d.ran = true
	if v.outcome == OutcomeLost {
		if v.reason == retry.ReasonPermanent { // not to be run again here
			known := c.memory.Note(d.msg.ID, now)
			known.Spent, known.Reason, known.Err = true, v.reason, v.err
			known.Runs, known.Receives = max(known.Runs, d.msg.Attempt), d.receives
		}
		c.release(d, now)
		return
	}
	c.move(d, stateSettling)
	if v.err != nil {
		c.remember(d, now)
	}
	c.settle(d, now)
}

// remember notes a failed attempt, or a release, for when the message comes
// again.
func (c *core) remember(d *delivery, now time.Time) {
	known := c.memory.Note(d.msg.ID, now)
	known.Receives = d.receives
	known.Trail = d.msg.Trail
	switch d.verdict.outcome {
	case OutcomeRelease:
		if c.draining {
			return
		}
		known.Runs = max(known.Runs, d.msg.Attempt-1)
		known.Releases = c.releases(d, now) + 1
		known.Due = d.verdict.due
	case OutcomeRetry:
		known.Runs = max(known.Runs, d.msg.Attempt)
		known.Releases = 0
		known.Due = d.verdict.due
		known.Unavailable = d.verdict.unavailable
	case OutcomeDeadLetter:
		known.Runs = max(known.Runs, d.msg.Attempt)
		known.Spent, known.Reason, known.Err = true, d.verdict.reason, d.verdict.err
	}
}

// rememberLost notes a message that was lost, so that its next receive is not a
// riddle: one that waited here was not run, and none was lost to a crash.
func (c *core) rememberLost(d *delivery, now time.Time) {
	known := c.memory.Note(d.msg.ID, now)
	known.Seen = d.receives
	known.Trail = d.msg.Trail
	if d.state.waits() {
		known.Runs, known.Receives = max(known.Runs, d.msg.Attempt-1), d.receives
	}
}

// attempted reports the end of an attempt, by a Handler. Nothing is logged for a
// success.
func (c *Consumer) attempted(r *run, m *Message, v verdict, err error, started, ended time.Time) {
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		core := c.lock()
		core.counts.Panics++
		c.unlock()
		c.log.Error("handler panicked", "message", m, "panic", panicked.Value, "stack", string(panicked.Stack))
	}
	c.tellAttempt(r, m, v, err, started, ended)
}

// tellAttempt tells the observer of an attempt's end, and the log if it failed.
func (c *Consumer) tellAttempt(r *run, m *Message, v verdict, err error, started, ended time.Time) {
	if err != nil && c.log.Enabled(c.runCtx, slog.LevelDebug) {
		c.log.Debug("attempt failed", "message", m, "outcome", v.outcome.String(), "reason", v.reason.String(), "due", v.due, "took", ended.Sub(started), "error", err)
	}
	if f := c.cfg.Observer.Attempt; f != nil {
		c.tell(func() {
			f(c.afterwards(r), Attempt{
				Message:  m,
				Started:  started,
				Duration: ended.Sub(started),
				Err:      err,
				Outcome:  v.outcome,
				Reason:   v.reason,
				Due:      v.due,
			})
		})
	}
}
