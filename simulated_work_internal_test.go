package reprise

import (
	"context"
	"time"
)

// shift is a run of a handler.
type shift struct {
	work
	messages int
	over     bool
	cause    func() error // why its context has ended; nil: it has not
	ends     func([]error)
}

// work runs handlers until nothing is ready.
func (s *simulated) work() {
	if s.batchHandler != nil {
		s.runBatch(s.takeBatch())
	} else {
		s.runOne(s.arrive())
	}
}

func (s *simulated) runOne(d *delivery) {
	if d == nil {
		s.workerEnded()
		return
	}
	began, run := s.now(), d.run
	run.ctx.start(s.workCtx, 0)
	d.show()
	r := &shift{cause: run.ctx.cause, ends: func(errs []error) {
		var err error
		if errs != nil {
			err = errs[0]
		}
		now := s.now()
		next, _ := s.Consumer.ended(d, s.opinionOf(d, err, now), began, now, true)
		s.runOne(next)
	}}
	if timeout := s.cfg.HandlerTimeout; timeout > 0 {
		s.After(timeout, func() {
			if !r.over {
				run.ctx.end(context.DeadlineExceeded)
				s.interrupt()
			}
		})
	}
	s.begin(r, []*Message{&run.shown})
}

// runBatch runs the handler for b. A Config.HandlerTimeout would be a timer of the system: a
// simulated consumer of batches has none.
func (s *simulated) runBatch(b *batch) {
	if b == nil {
		s.workerEnded()
		return
	}
	b.started = s.now()
	for i := range b.ends {
		b.run(i).ctx.start(b.ctx, 0)
	}
	s.begin(&shift{cause: b.ctx.cause, ends: func(errs []error) {
		b.ended = s.now()
		if err := b.setVerdicts(errs); err != nil {
			panic(err)
		}
		for i := range b.ends {
			e := &b.ends[i]
			e.Opinion, e.Escaped = s.opinionOf(ofMachine(e.Delivery), b.run(i).err, b.ended), false
		}
		s.settleBatch(b)
		s.tellBatch(b)
		s.runBatch(s.takeBatch())
	}}, b.shown)
}

// settleBatch is that of a Consumer, whose clock is the system's.
func (s *simulated) settleBatch(b *batch) {
	s.enter().EndedBatch(b.ends, b.ended.Sub(b.started), b.ended)
	s.leave()
	b.ctx.end(context.Canceled)
	b.ctx.forget()
}

// begin begins a run, of which the model says what will become.
func (s *simulated) begin(r *shift, messages []*Message) {
	s.running = append(s.running, r)
	r.messages = len(messages)
	r.work = s.model(messages)
	s.After(r.takes, func() { s.runEnds(r, r.errs) })
}

// interrupt ends the handlers whose contexts have ended, if they heed that.
func (s *simulated) interrupt() {
	for _, r := range s.running {
		if r.heeds && !r.over && r.cause() != nil {
			s.After(time.Millisecond, func() { s.runEnds(r, r.interrupted) })
		}
	}
}

// interrupted is what the handler returns when its context has ended.
func (r *shift) interrupted() []error {
	errs := make([]error, r.messages)
	for i := range errs {
		errs[i] = context.Canceled
	}
	return errs
}

func (s *simulated) runEnds(r *shift, errs func() []error) {
	if r.over {
		return
	}
	r.over = true
	for i := range s.running {
		if s.running[i] == r {
			s.running = append(s.running[:i], s.running[i+1:]...)
			break
		}
	}
	r.finished()
	r.ends(errs())
}
