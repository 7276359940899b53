package simulation

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// enter begins a section, which leave ends.
func (c *Consumer) enter() *consumer.Machine {
	c.machine.Begin(c.now(), c.ahead.Lead())
	return c.machine
}

func (c *Consumer) leave() {
	c.machine.End()
	if c.pool != nil {
		c.pool.finishSection(c.machine.Now())
		return
	}
	c.arm(c.machine.Now())
	c.machine.Effects(c.begin)
}

// arm sets the timer to the next alarm of the machine, unless it is set to an earlier time.
func (c *Consumer) arm(now time.Time) {
	if next := c.machine.Next(); !next.IsZero() && (c.ringsAt.IsZero() || next.Before(c.ringsAt)) {
		c.ringsAt = next
		c.timer.Set(c.Process.Now().Add(next.Sub(now)))
	}
}

func (c *Consumer) now() time.Time { return c.Process.Steady() }

// startEffect begins to carry e out. It begins no section: an effect that needs one is an event
// of its own.
func (c *Consumer) startEffect(e consumer.Effect) {
	switch e.Kind {
	case consumer.Work:
		c.Process.After(0, c.work)
	case consumer.Interrupt:
		c.leaseLost(e.Delivery.Cargo.(*delivery))
	case consumer.Receive:
		c.receive(e.Poller, e.N)
	case consumer.Send:
		c.Process.After(0, func() { c.send(e.Outbox, e.Batch) })
	case consumer.Heartbeat:
		c.Process.After(0, func() { c.heartbeat(e.Batch) })
	case consumer.Wake:
		c.wake(e.Waking)
	case consumer.Count:
		c.Process.After(0, c.countAgain)
	case consumer.Probe:
		c.Process.After(c.ProbeTakes(), func() {
			err := c.Probe(e.Gate.Key())
			c.enter().ProbeEnded(e.Gate, e.N, e.Started, err)
			c.leave()
		})
	case consumer.RunAfterDelete:
		c.Process.After(0, c.afterDelete)
	case consumer.TellReports:
		c.Process.After(0, c.tellReports)
	case consumer.TellSettled:
		c.Process.After(0, c.tellSettled)
	case consumer.Emptied:
		c.Process.After(0, c.emptied)
	default:
		panic(fmt.Sprintf("simulation: effect %d is not known", e.Kind))
	}
}

// tellSettled reports the messages that were settled since the last call.
func (c *Consumer) tellSettled() {
	if c.Settled != nil {
		for _, s := range c.machine.TakeSettled() {
			c.Settled(s)
		}
	}
}

// tellReports takes the machine's reports, so that they do not accumulate.
func (c *Consumer) tellReports() {
	for r := c.enter().NextReport(); r != nil; r = c.machine.NextReport() {
		if c.Reported != nil {
			c.Reported(r)
		}
	}
}

// afterDelete runs Deleted for the messages that wait for it.
func (c *Consumer) afterDelete() {
	for {
		s, ok := c.enter().NextDeleted()
		c.leave()
		if !ok {
			break
		}
		c.Deleted(s)
	}
	c.enter().AfterDeleteEnded()
	c.leave()
}
