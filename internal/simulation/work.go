package simulation

import (
	"context"
	"slices"
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

// Run is what a handler does with a message, or with those of a batch.
type Run struct {
	Takes       time.Duration
	Err         error // what it returns; nil: the work is done
	Unavailable bool  // Err says that a dependency is unavailable
	// Ends is called when the handler returns by itself, and returns its result for each message,
	// instead of Err and Unavailable, which are used if Ends is nil. A nil result: all messages have
	// succeeded.
	Ends func() []Result
	// Over, which may be nil, is called when the handler has returned for any reason, before Ends.
	Over func()
	// Ignores reports whether the handler runs on when its context ends: at its timeout, when
	// its message's lease is lost, or at a stop. Otherwise it returns [context.Canceled] then.
	Ignores bool
}

// Result is what a handler returns for a message.
type Result struct {
	Err         error // nil: the work is done
	Unavailable bool  // Err says that a dependency is unavailable
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
	Due            time.Time // when the next attempt is due
}

// returnDelay is how long a handler takes to return when its context has ended.
const returnDelay = time.Millisecond

// shift is the run of a handler. It is part of the delivery or of the batch that is run.
type shift struct {
	does    Run
	began   time.Time
	changes int // how often a run has begun or ended
	place   int // index in Consumer.running
	cut     consumer.Cut

	single *delivery // that it is part of; nil: it is part of a batch
	batch  *batch    // that it is part of; nil: it is part of a delivery
}

// cutRun is a run whose context has ended.
type cutRun struct {
	*shift
	changes int // of the run that was cut
}

// work runs handlers until nothing is ready.
func (c *Consumer) work() {
	if c.Settings.Batch.Size > 0 {
		c.runBatch()
		return
	}
	d := c.enter().Arrive()
	c.leave()
	c.run(d)
}

// workerEnded ends a worker.
func (c *Consumer) workerEnded() {
	m := c.enter()
	m.WorkerEnded()
	if m.Closed() {
		c.closed()
	}
	c.leave()
}

// run runs the handler for d, whose end leads to the worker's next message. Nil ends the worker.
func (c *Consumer) run(d *consumer.Delivery) {
	if d == nil {
		c.workerEnded()
		return
	}
	r := d.Cargo.(*delivery)
	r.single = r
	c.starts(&r.shift)
	r.does = c.Handler(r.message(r.began))
	c.goesOn(&r.shift, c.Settings.HandlerTimeout)
}

// message returns d as the model of the handler sees it.
func (d *delivery) message(now time.Time) *Message {
	return &Message{
		ID: d.ID, OriginID: d.OriginID, GroupID: d.GroupID, Payload: d.payload,
		Sent: d.Sent, FirstReceived: d.FirstReceived, Received: d.Received,
		Attempt: d.Attempt, Receives: d.Receives, Now: now,
	}
}

// starts adds s to the running handlers, from now on.
func (c *Consumer) starts(s *shift) {
	s.changes++
	s.began, s.place, s.cut = c.now(), len(c.running), consumer.CutNone
	c.running = append(c.running, s)
}

// goesOn schedules the end of s: after its duration, or at its timeout.
func (c *Consumer) goesOn(s *shift, timeout time.Duration) {
	changes := s.changes
	if timeout > 0 && s.does.Takes > timeout {
		c.Process.After(timeout, func() {
			if s.changes == changes {
				c.cut(s, consumer.CutOther)
				c.interrupt()
			}
		})
		if !s.does.Ignores {
			return
		}
	}
	c.Process.After(s.does.Takes, func() { c.end(s, changes, false) })
}

// cut ends the context of a running handler; interrupt makes the handler return.
func (c *Consumer) cut(s *shift, cause consumer.Cut) {
	if s.cut == consumer.CutNone {
		c.cutOff = append(c.cutOff, cutRun{s, s.changes})
	}
	if s.cut == consumer.CutNone || s.cut == consumer.CutStopping {
		s.cut = cause
	}
}

// leaseLost ends the context of the handler that runs d.
func (c *Consumer) leaseLost(d *delivery) {
	if b := d.in; b != nil {
		d.cut = consumer.CutLeaseLost
		if b.lost++; b.lost < len(b.ends) {
			return
		}
		c.cut(&b.shift, consumer.CutLeaseLost)
		return
	}
	c.cut(&d.shift, consumer.CutLeaseLost)
}

// interrupt makes handlers return whose contexts have ended since the last call, unless they ignore that.
func (c *Consumer) interrupt() {
	for _, run := range c.cutOff {
		if !run.does.Ignores {
			c.Process.After(returnDelay, func() { c.end(run.shift, run.changes, true) })
		}
	}
	clear(c.cutOff)
	c.cutOff = c.cutOff[:0]
}

// end ends a run, unless it has ended already. cut reports whether it was cut or ended by itself.
func (c *Consumer) end(s *shift, changes int, cut bool) {
	if s.changes != changes {
		return
	}
	s.changes++
	last := len(c.running) - 1
	c.running[s.place] = c.running[last]
	c.running[s.place].place = s.place
	c.running[last] = nil
	c.running = c.running[:last]
	if s.does.Over != nil {
		s.does.Over()
	}
	if s.batch != nil {
		c.batchReturns(s.batch, cut)
	} else {
		c.returns(s.single, cut)
	}
}

// results returns the results of the handler of s for n messages.
func (s *shift) results(n int, cut bool) []Result {
	switch {
	case !cut && s.does.Ends != nil:
		return s.does.Ends()
	case !cut:
		return slices.Repeat([]Result{{s.does.Err, s.does.Unavailable}}, n)
	}
	return slices.Repeat([]Result{s.cutShort()}, n)
}

// cutShort returns the result of a handler that was cut.
func (s *shift) cutShort() Result {
	if s.cut == consumer.CutOther {
		return Result{Err: context.DeadlineExceeded, Unavailable: true}
	}
	return Result{Err: context.Canceled}
}

// returns handles the end of a run, and starts the next.
func (c *Consumer) returns(r *delivery, cut bool) {
	result, cause := Result{r.does.Err, r.does.Unavailable}, consumer.CutNone
	switch {
	case cut:
		result, cause = r.cutShort(), r.cut
	case r.does.Ends != nil:
		result = Result{}
		if all := r.does.Ends(); all != nil {
			result = all[0]
		}
	}
	m := c.enter()
	now, began := m.Now(), r.began
	v, told := m.Ended(&r.Delivery, c.opinionOf(r, result, cause, now), "", now.Sub(began), now)
	var next *consumer.Delivery
	quiet := result.Err == nil && !c.Observed
	if quiet {
		next = m.Take() // in the same section, as the shell does if no observer has to be told
	}
	c.leave()
	c.attempted(r, began, now, result.Err, v, told)
	if v.Outcome == consumer.OutcomeLost {
		c.tellSettled()
	}
	if !quiet {
		next = c.enter().Take()
		c.leave()
	}
	c.run(next)
}

// attempted reports an attempt.
func (c *Consumer) attempted(r *delivery, began, ended time.Time, err error, v consumer.Verdict, told consumer.Subject) {
	if c.Attempted != nil {
		c.Attempted(Attempt{
			ID: r.ID, OriginID: r.OriginID, Payload: r.payload, Attempt: told.Attempt,
			Started: began, Ended: ended, Err: err, Outcome: v.Outcome, Reason: v.Reason, Due: v.Due,
		})
	}
}

// opinionOf asks the policy what an error means, as the shell's opinionOf does.
func (c *Consumer) opinionOf(r *delivery, result Result, cut consumer.Cut, ended time.Time) consumer.Opinion {
	if result.Err == nil {
		return consumer.Opinion{}
	}
	o := consumer.Opinion{Err: result.Err, Cut: cut, Decision: r.Decide(c.machine.Policy(), result.Err, ended, c.ahead.Lead())}
	if o.Decision.Action != retry.ActionRelease && o.Decision.Reason != retry.ReasonPermanent {
		o.Unavailable = result.Unavailable && !c.Settings.BreakerOff
	}
	return o
}
