package reprise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/retry"
)

// work runs handlers until no message is ready.
func (c *Consumer) work() {
	var current *delivery // whose handler runs, or whose attempt is judged
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
		o := c.opinionOf(d, err, ended)
		current = nil
		d, started = c.ended(d, o, started, ended, true)
	}
}

// workerEnded notes that a worker has ended. If the user's code has ended its goroutine, the
// machine starts another.
func (c *Consumer) workerEnded() {
	c.working.Add(-1)
	intact := c.enter(func(m *consumer.Machine) {
		m.WorkerEnded()
		if c.pool != nil && m.Closed() {
			c.pool.closed(c)
		}
	})
	if !intact {
		c.wakeDrain()
	}
}

// exited ends an attempt at d in which the user's code has ended the goroutine by
// runtime.Goexit: the attempt has failed. If the code that judges it does so again, d is lost:
// its lease is left to end.
func (c *Consumer) exited(d *delivery, started time.Time) {
	now := time.Now()
	o, judged := consumer.Opinion{Err: errGoexit}, false
	defer func() {
		if !judged {
			c.look(func(m *consumer.Machine) { m.Escaped(&d.Delivery) })
		}
		c.ended(d, o, started, now, false)
	}()
	o = c.opinionOf(d, errGoexit, now)
	judged = true
}

// ended begins the settlement of d after an attempt, which the user's code judges by o. If
// more is set, it also takes the next message to run, and returns it with the time: under the
// same lock, unless the log or an observer is told of this attempt. Then it takes the message
// after telling, because an observer may end the goroutine.
func (c *Consumer) ended(d *delivery, o consumer.Opinion, started, now time.Time, more bool) (next *delivery, then time.Time) {
	quiet := o.Err == nil && c.cfg.Observer.Attempt == nil
	finished := d.run
	var v consumer.Verdict
	var told consumer.Subject
	intact := c.enter(func(m *consumer.Machine) {
		v, told = m.Ended(&d.Delivery, o, finished.trail, now.Sub(started), now)
		if more && quiet {
			next = taken(m.Take())
		}
	})
	finished.ctx.end(context.Canceled) // only now: judging has used its cause
	if quiet || !intact {
		return next, now
	}
	c.attempted(finished, told, v, o.Err, started, now)
	if v.Outcome == consumer.OutcomeLost {
		c.tellSettled()
	}
	if more {
		next = c.takeReady()
	}
	return next, time.Now()
}

// opinionOf asks the user's code what err means. The caller does not hold c.mu, because that
// code may block, panic, or call Status.
func (c *Consumer) opinionOf(d *delivery, err error, ended time.Time) (o consumer.Opinion) {
	if err == nil {
		return consumer.Opinion{}
	}
	defer func() {
		if v := recover(); v != nil {
			// Most often err is a nil pointer in an interface.
			o = c.opinionOf(d, &PanicError{Value: fmt.Sprintf("a method of the returned error (%T) panicked: %v", err, v), Stack: debug.Stack()}, ended)
		}
	}()
	o.Err = fixedText{err, err.Error()}
	var passedOn error // the cause of the context's end, if err only passes it on
	if cause := d.run.ctx.cause(); errors.Is(err, context.Canceled) || errors.Is(err, cause) {
		passedOn = cause
		o.Cut = cutBy(cause)
	}
	o.Decision = d.Decide(c.currentPolicy(), err, ended, c.clock.lead())
	if o.Decision.Action != retry.ActionRelease && o.Decision.Reason != retry.ReasonPermanent {
		o.Unavailable = c.isUnavailable(err, passedOn)
	}
	return o
}

// currentPolicy returns the policy with the queue's limits filled in, as far as they are known.
func (c *Consumer) currentPolicy() retry.Policy {
	p := c.cfg.Retry
	c.look(func(m *consumer.Machine) { p = m.Policy() })
	return p
}

// cutBy converts the cause of a context's end for the machine.
func cutBy(cause error) consumer.Cut {
	switch {
	case cause == nil:
		return consumer.CutNone
	case errors.Is(cause, ErrStopping):
		return consumer.CutStopping
	case errors.Is(cause, ErrLeaseLost):
		return consumer.CutLeaseLost
	}
	return consumer.CutOther
}

// fixedText is an error whose Error method is called only once, when it is made.
type fixedText struct {
	error
	text string
}

func (q fixedText) Error() string { return q.text }
func (q fixedText) Unwrap() error { return q.error }

// arrive is takeReady for a worker that has just been started.
func (c *Consumer) arrive() (d *delivery) {
	c.enter(func(m *consumer.Machine) { d = taken(m.Arrive()) })
	return d
}

// takeReady takes the next message to run.
func (c *Consumer) takeReady() (d *delivery) {
	c.enter(func(m *consumer.Machine) { d = taken(m.Take()) })
	return d
}

// handle runs the handler, and recovers a panic of the handler only.
func (c *Consumer) handle(d *delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	d.show()
	return c.handler.Handle(&d.run.ctx, &d.run.shown)
}

// attempted reports the end of an attempt of a Handler. A success is not logged.
func (c *Consumer) attempted(r *run, s consumer.Subject, v consumer.Verdict, err error, started, ended time.Time) {
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		c.look(func(m *consumer.Machine) { m.Panicked() })
		c.logPanic(panicked, "handler panicked", "message", message(s))
	}
	c.tellAttempt(r, s, v, err, started, ended)
}

// tellAttempt tells the observer of an attempt's end, and the log if it failed.
func (c *Consumer) tellAttempt(r *run, s consumer.Subject, v consumer.Verdict, err error, started, ended time.Time) {
	if err != nil && c.log.Enabled(c.runCtx, slog.LevelDebug) {
		c.log.Debug("attempt failed", "message", message(s), "outcome", v.Outcome.String(), "reason", v.Reason.String(), "due", v.Due, "took", ended.Sub(started), "error", err)
	}
	if f := c.cfg.Observer.Attempt; f != nil {
		c.tell(func() {
			f(c.afterwards(r), Attempt{
				Message:  message(s),
				Started:  started,
				Duration: ended.Sub(started),
				Err:      err,
				Outcome:  Outcome(v.Outcome),
				Reason:   v.Reason,
				Due:      v.Due,
			})
		})
	}
}
