package reprise

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// startEffects starts the effects of the section. The caller holds the lock.
func (c *Consumer) startEffects() { c.guarded.Effects(c.platform.startEffect) }

// platform is what a consumer runs on: the system, or a simulation. Its methods are called
// with the consumer's lock held.
type platform interface {
	now() time.Time
	ring(in time.Duration)       // calls Consumer.ring once after this time; replaces the call before
	startEffect(consumer.Effect) // starts the effect and does not wait for it
}

// system is the real platform: the clock, one timer, and goroutines.
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

func (s *system) startEffect(e consumer.Effect) {
	c := s.Consumer
	switch e.Kind {
	case consumer.Work:
		c.workers.run(c.mu, struct{}{})
	case consumer.Interrupt:
		ofMachine(e.Delivery).run.ctx.end(ErrLeaseLost)
	case consumer.Emptied:
		select {
		case c.emptied <- struct{}{}:
		default: // drain has not read the last one yet
		}
	case consumer.Probe, consumer.RunAfterDelete:
		// drain does not wait for these: the user's code may ignore its context.
		c.callers.run(c.mu, e)
	default:
		c.tasks.Add(1)
		c.callers.run(c.mu, e)
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
