package simulation

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/retry"
)

// Message is a message as the model of a handler sees it.
type Message struct {
	ID, OriginID, GroupID         string
	Payload                       any // as it was sent
	Sent, FirstReceived, Received time.Time
	Attempt, Receives             int
	Now                           time.Time // by the clock of the consumer's process
}

// Run is what a handler does with a message.
type Run struct {
	Takes       time.Duration
	Err         error // what it returns; nil: the work is done
	Unavailable bool  // Err says that a dependency is unavailable
	// Ignores reports whether the handler runs on when its context ends: at its timeout, when
	// its message's lease is lost, or at a stop. Otherwise it returns [context.Canceled] then.
	Ignores bool
}

// Attempt is a run of the handler that has ended.
type Attempt struct {
	ID, OriginID   string
	Payload        any // as it was sent
	Attempt        int
	Started, Ended time.Time
	Err            error
	Outcome        consumer.Outcome
	Reason         retry.Reason
	Due            time.Time // when the message is to be tried again
}

// returnDelay is how long a handler takes to return when its context has ended.
const returnDelay = time.Millisecond

// work runs handlers until nothing is ready.
func (c *Consumer) work() {
	d := c.enter().Arrive()
	c.leave()
	c.run(d)
}

// run runs the handler for d, whose end leads to the worker's next message. Nil ends the worker.
func (c *Consumer) run(d *consumer.Delivery) {
	if d == nil {
		c.enter().WorkerEnded()
		c.leave()
		return
	}
	r := d.Cargo.(*delivery)
	r.began = c.now()
	r.runs++
	r.place = len(c.running)
	c.running = append(c.running, r)
	r.does = c.Handler(&Message{
		ID: d.ID, OriginID: d.OriginID, GroupID: d.GroupID, Payload: r.payload,
		Sent: d.Sent, FirstReceived: d.FirstReceived, Received: d.Received,
		Attempt: d.Attempt, Receives: d.Receives, Now: r.began,
	})
	number := r.runs
	if timeout := c.Settings.HandlerTimeout; timeout > 0 && r.does.Takes > timeout {
		c.Process.After(timeout, func() {
			if r.runs == number {
				c.cut(r, consumer.CutOther)
			}
		})
		if !r.does.Ignores {
			return
		}
	}
	c.Process.After(r.does.Takes, func() { c.returns(r, number, r.does, consumer.CutNone) })
}

// cut ends the context of a handler that runs.
func (c *Consumer) cut(r *delivery, cause consumer.Cut) {
	if r.does.Ignores {
		return
	}
	number, does := r.runs, Run{Err: context.Canceled}
	if cause == consumer.CutOther {
		does = Run{Err: context.DeadlineExceeded, Unavailable: true}
	}
	c.Process.After(returnDelay, func() { c.returns(r, number, does, cause) })
}

// returns handles the end of a run, unless it has ended before, and starts the next.
func (c *Consumer) returns(r *delivery, number int, does Run, cut consumer.Cut) {
	if r.runs != number {
		return
	}
	r.runs++
	last := len(c.running) - 1
	c.running[r.place] = c.running[last]
	c.running[r.place].place = r.place
	c.running[last] = nil
	c.running = c.running[:last]

	m := c.enter()
	now, began := m.Now(), r.began
	v, told := m.Ended(&r.Delivery, c.opinionOf(r, does, cut, now), "", now.Sub(began), now)
	var next *consumer.Delivery
	if does.Err == nil {
		next = m.Take() // in the same section, as the shell does if no observer has to be told
	}
	c.leave()
	if c.Attempted != nil {
		c.Attempted(Attempt{
			ID: r.ID, OriginID: r.OriginID, Payload: r.payload, Attempt: told.Attempt,
			Started: began, Ended: now, Err: does.Err, Outcome: v.Outcome, Reason: v.Reason, Due: v.Due,
		})
	}
	if does.Err != nil {
		next = c.enter().Take()
		c.leave()
	}
	c.run(next)
}

// opinionOf asks the policy what an error means, as the shell's opinionOf does.
func (c *Consumer) opinionOf(r *delivery, does Run, cut consumer.Cut, ended time.Time) consumer.Opinion {
	if does.Err == nil {
		return consumer.Opinion{}
	}
	o := consumer.Opinion{Err: does.Err, Cut: cut, Decision: r.Decide(c.machine.Policy(), does.Err, ended, c.ahead)}
	if o.Decision.Action != retry.ActionRelease && o.Decision.Reason != retry.ReasonPermanent {
		o.Unavailable = does.Unavailable && !c.Settings.BreakerOff
	}
	return o
}
