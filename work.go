package reprise

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// startWorkers starts a worker if one is wanted. Workers exist only while there
// is something to start, and each starts the next: so a burst of messages whose
// handlers return at once is worked off by few goroutines. The caller holds c.mu.
func (c *Consumer) startWorkers() {
	if c.ready.head == nil || c.workers >= c.cfg.Concurrency || c.closed {
		return
	}
	c.workers++
	go c.work()
}

// work runs handlers until nothing is ready.
func (c *Consumer) work() {
	var current *delivery // its handler is running
	defer func() {
		// Reached with a current message only if the handler ended this goroutine
		// by runtime.Goexit: that is a failed attempt, and another worker goes on.
		c.mu.Lock()
		defer c.mu.Unlock()
		c.workers--
		if current != nil {
			now := time.Now()
			c.finish(current, c.judge(current, errGoexit, now), 0, now)
		}
		c.startWorkers()
		c.roomFreed()
	}()
	for {
		c.mu.Lock()
		d := c.nextReady()
		if d == nil {
			c.mu.Unlock()
			return
		}
		c.startWorkers()
		c.mu.Unlock()

		current = d
		started := time.Now()
		d.ctx.start(c.workCtx, c.cfg.HandlerTimeout)
		err := c.handle(d)
		current = nil
		ended := time.Now()

		c.mu.Lock()
		v := c.judge(d, err, ended)
		c.finish(d, v, ended.Sub(started), ended)
		c.mu.Unlock()
		d.ctx.end(context.Canceled) // after judging by its cause

		c.attempted(d, v, err, started, ended)
	}
}

// nextReady takes the next message to run. The caller holds c.mu.
func (c *Consumer) nextReady() *delivery {
	for {
		d := c.ready.pop()
		if d == nil {
			return nil
		}
		if d.phase != phaseWaiting {
			continue // settled or lost while it waited
		}
		d.phase = phaseRunning
		c.waiting--
		c.running++
		c.counts.Attempts++
		return d
	}
}

// handle runs the handler. A panic of it, and only of it, is caught here.
func (c *Consumer) handle(d *delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return c.handler.Handle(&d.ctx, &d.msg)
}

// judge decides what an attempt's end means. The caller holds c.mu.
func (c *Consumer) judge(d *delivery, err error, ended time.Time) verdict {
	if err == nil {
		return verdict{outcome: OutcomeDelete}
	}
	if d.lost {
		return verdict{outcome: OutcomeLost, err: err}
	}
	switch cause := d.ctx.cause(); {
	case !errors.Is(err, context.Canceled) && !errors.Is(err, cause):
		// It failed by itself.
	case errors.Is(cause, ErrStopping):
		return verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, err: err}
	case errors.Is(cause, ErrLeaseLost):
		// Interrupted, but a redelivery has brought the message back meanwhile.
		return verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: ended.Add(c.leastRelease(d)), err: err}
	}
	decision := c.policy.Decide(retry.Attempt{
		N:     d.msg.Attempt,
		Seed:  d.msg.OriginID,
		Sent:  c.clock.local(d.msg.Sent),
		First: c.clock.local(d.msg.FirstReceived),
		Ended: ended,
		Err:   err,
	})
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
		if c.lastReceive(d) {
			// The next receive would move it to the dead-letter queue without a
			// word. It goes there now, with its story.
			v.outcome, v.reason, v.due = OutcomeDeadLetter, retry.ReasonAttempts, time.Time{}
		}
	}
	return v
}

// lastReceive says that the queue's RedrivePolicy takes the message away at its
// next receive.
func (c *Consumer) lastReceive(d *delivery) bool {
	limit := c.facts.plan.MaxReceives
	return limit > 0 && d.receives >= limit
}

const (
	minRelease = time.Second
	maxRelease = 5 * time.Minute
)

// leastRelease is the shortest time for which a handler's Release of d holds:
// each receive counts against the queue's maxReceiveCount, so a message that is
// released again and again comes back more and more slowly.
func (c *Consumer) leastRelease(d *delivery) time.Duration {
	releases := c.memory.recall(d.msg.ID, time.Now()).releases
	return min(maxRelease, minRelease<<min(releases, 20))
}

// finish ends d's time in its handler and begins its settlement. The caller
// holds c.mu.
func (c *Consumer) finish(d *delivery, v verdict, took time.Duration, now time.Time) {
	c.running--
	c.taskTime.add(took)
	d.verdict = v
	d.ran = true
	if v.outcome == OutcomeLost {
		c.release(d)
		return
	}
	d.phase = phaseSettling
	c.settling++
	if v.err != nil {
		c.remember(d, now)
	}
	c.settle(d, now)
	c.roomFreed()
}

// remember notes a failed attempt, or a release, for when the message comes
// again.
func (c *Consumer) remember(d *delivery, now time.Time) {
	known := c.memory.note(d.msg.ID, now)
	known.receives = d.receives
	switch d.verdict.outcome {
	case OutcomeRelease:
		if c.draining {
			return
		}
		known.runs = max(known.runs, d.msg.Attempt-1)
		known.releases++
		known.due = d.verdict.due
	case OutcomeRetry:
		known.runs = max(known.runs, d.msg.Attempt)
		known.releases = 0
		known.due = d.verdict.due
	case OutcomeDeadLetter:
		known.runs = max(known.runs, d.msg.Attempt)
		known.spent, known.reason, known.err = true, d.verdict.reason, d.verdict.err
	}
}

// attempted reports the end of an attempt. Nothing is logged for a success.
func (c *Consumer) attempted(d *delivery, v verdict, err error, started, ended time.Time) {
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		c.mu.Lock()
		c.counts.Panics++
		c.mu.Unlock()
		c.log.Error("handler panicked", "message", d.msg.ID, "attempt", d.msg.Attempt, "panic", panicked.Value, "stack", string(panicked.Stack))
	}
	if f := c.cfg.Observer.Attempt; f != nil {
		c.tell(func() {
			f(c.runCtx, Attempt{
				Message:  &d.msg,
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
