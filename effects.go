package reprise

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// system is the platform: the clock, one timer, and goroutines.
type system struct {
	*Consumer
	timer *time.Timer // nil: it was never set
}

func (s *system) now() time.Time { return time.Now() }

func (s *system) ring(in time.Duration) {
	if s.timer == nil {
		s.timer = time.AfterFunc(in, s.Consumer.ring)
	} else {
		s.timer.Reset(in)
	}
}

// ring is called when the timer of arm fires.
func (c *Consumer) ring() {
	c.enter(func(m *consumer.Machine) {
		c.ringsAt = time.Time{}
		m.Ring()
	})
}

func (s *system) startEffect(e consumer.Effect) {
	c := s.Consumer
	switch e.Kind {
	case consumer.Work:
		c.working.Add(1)
		c.workers.run(&c.mu.Mutex, struct{}{})
	case consumer.Interrupt:
		ofMachine(e.Delivery).run.ctx.end(ErrLeaseLost)
	case consumer.Emptied:
		c.wakeDrain()
	case consumer.Probe, consumer.RunAfterDelete:
		// drain does not wait for these: the user's code may ignore its context.
		c.callers.run(&c.mu.Mutex, e)
	default:
		c.tasks.Add(1)
		c.callers.run(&c.mu.Mutex, e)
	}
}

// wakeDrain has drain look whether all is settled.
func (c *Consumer) wakeDrain() {
	select {
	case c.emptied <- struct{}{}:
	default: // drain has not read the last one yet
	}
}

// runEffect carries out e. It is called in a goroutine of its own.
func (c *Consumer) runEffect(e consumer.Effect) {
	switch e.Kind {
	case consumer.Probe:
		c.runProbe(e.Gate, e.N, e.Started)
	case consumer.RunAfterDelete:
		c.afterDelete()
	case consumer.Receive:
		c.task("poller", func() { c.receive(e.Poller, e.N) })
	case consumer.Send:
		c.task(e.Outbox.String(), func() { c.deliver(e.Outbox, e.Batch) })
	case consumer.Heartbeat:
		c.task("heartbeat", func() { c.heartbeat(e.Batch) })
	case consumer.Wake:
		c.task("waker", func() { c.makeVisible(e.Waking) })
	case consumer.Count:
		c.task("reader of the queue's counts", c.readInFlight)
	case consumer.Learn:
		c.task("reader of the queue's attributes", c.learnAgain)
	case consumer.TellReports:
		c.task("log", c.reportInOrder)
	case consumer.TellSettled:
		c.task("observer", c.tellSettled)
	default:
		panic(fmt.Sprintf("reprise: effect %d needs no goroutine", e.Kind))
	}
}

// task runs f, which drain waits for.
func (c *Consumer) task(name string, f func()) {
	defer c.tasks.Done()
	c.survive(name, f)
}

// deliver sends a batch and takes in the results. If the user's code, a Client or an
// Observer, ends this goroutine, the machine tries the batch again.
func (c *Consumer) deliver(o *consumer.Outbox, batch []*consumer.Delivery) {
	var entries [maxBatch]consumer.Entry
	var target queueURL
	if !c.enter(func(m *consumer.Machine) { batch, target = m.Prepare(o, batch, &entries), c.deadLetter }) {
		return
	}
	replied := unanswered(len(batch))
	defer func() {
		c.enter(func(m *consumer.Machine) { m.Acknowledge(o, batch, &replied) })
		c.tellSettled()
	}()
	if len(batch) == 0 {
		return
	}
	switch asked := entries[:len(batch)]; o.Request {
	case consumer.DeleteMessages:
		replied = c.sendDeletes(asked)
	case consumer.HideMessages:
		replied = c.changeVisibility(c.settleLimit.context(c.settleCtx), OpVisibility, asked)
	case consumer.SendDeadLetters:
		replied = c.sendDeadLetters(target, batch, asked)
	case consumer.SendCopies:
		replied = c.sendCopies(batch, asked)
	}
}
