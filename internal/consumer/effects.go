package consumer

import "time"

// Effect is something that the shell does for the machine: it makes a request, runs a
// handler or calls an observer. When a section ends, the shell starts its effects in their
// order. The result of an effect is the input of a later section.
type Effect struct {
	Kind     EffectKind
	N        int         // of Receive: how many messages; of Probe: its number
	Poller   *Poller     // of Receive
	Outbox   *Outbox     // of Send
	Batch    []*Delivery // of Send and Heartbeat
	Delivery *Delivery   // of Interrupt
	Gate     *Gate       // of Probe
	Waking   *Waking     // of Wake
	Started  time.Time   // of Probe
}

// EffectKind says what the shell does.
type EffectKind uint8

// The effects, with the inputs that follow them.
const (
	Work           EffectKind = iota // run handlers until nothing is ready: Arrive, Take, Ended, WorkerEnded
	Interrupt                        // end the context of a handler, whose message's lease is lost; at once
	Receive                          // receive N messages: Took or ReceiveFailed
	Send                             // send a batch of an outbox: Prepare, Acknowledge
	Heartbeat                        // renew the leases of a batch: Renew, Renewed
	Wake                             // make hidden messages visible: Woken
	Count                            // read how many messages the queue has in flight: Counted
	Learn                            // read the queue's attributes, which could not be read before: Learned
	Probe                            // test whether a dependency is back: ProbeEnded
	RunAfterDelete                   // do what follows deletes: NextDeleted, AfterDeleteEnded
	TellReports                      // tell the log and observers, in order: NextReport
	TellSettled                      // tell the observer of settled messages: TakeSettled
	Emptied                          // let the drain go on: Empty
)

// want adds e to the effects of the section. After [Machine.Close] it does nothing.
func (c *Machine) want(e Effect) {
	if !c.closed {
		c.effects = append(c.effects, e)
	}
}

// Effects calls do for each effect of the section, in their order.
func (c *Machine) Effects(do func(Effect)) {
	for i := range c.effects {
		do(c.effects[i])
	}
	clear(c.effects)
	c.effects = c.effects[:0]
}
