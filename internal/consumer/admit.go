package consumer

import (
	"time"
)

// admit begins to hold a received message. A message that is held already is not run
// twice: its delivery takes over the newer receipt handle.
func (c *Machine) admit(d *Delivery, now time.Time) {
	if old := c.held[d.ID]; old != nil {
		d.duplicate = true
		c.counts.Duplicates++
		c.adopt(old, d, now)
		return
	}
	c.held[d.ID] = d
	c.countBytes(d)
	c.waiting++ // every delivery begins in stateWaiting
	c.memory.ForgetHandle(d.ID)
	d.Attempt = c.attemptNumber(d, now)
	if trail := c.memory.Recall(d.ID, now).Trail; trail != "" {
		d.Trail = trail // of the last attempt, if this process made it
	}
	c.retryEarly(d, now)
	if c.Queue.FIFO {
		c.joinGroup(d, now)
		return
	}
	c.begin(d, now)
}

// adopt gives old, which is held, the lease and the receipt handle of its redelivery d. While old's lease lasts, d
// brings nothing if it was received before old: SQS's count of the receives is lower, or its lease is over, since the
// reply has waited.
func (c *Machine) adopt(old, d *Delivery, now time.Time) {
	if !old.lease.Over(now) && (d.receives < old.receives || d.lease.Over(now)) {
		return
	}
	old.Handle = d.Handle
	old.doubtful = d.doubtful // whether deletes by this handle work
	c.memory.ReceivedAgain(d.ID, d.receives)
	old.receives = max(old.receives, d.receives)
	old.lease.Adopt(d.lease) // though its handler has been interrupted, or the older handle has hidden it
}

// shortHold is the longest wait for which a message that is not yet due is held rather
// than hidden again: SQS's clock and ours differ a little.
const shortHold = 2 * time.Second

// attemptNumber returns the number of the run that d would get now. It is exact if this
// process has had every receive of the message so far, and at the first receive of a copy,
// whose history counts the runs before it. Otherwise it is the number of runs that fit
// into the time since then: receives alone prove nothing, because deploys, releases and
// throttles use them up.
//
// The number that fits is no proof either. A message whose last attempt fails goes to the
// dead-letter queue, if there is one: as long as it is received, it has an attempt left.
func (c *Machine) attemptNumber(d *Delivery, now time.Time) int {
	known := c.memory.Recall(d.ID, now)
	n := max(known.Runs, d.made()) + 1
	if d.receives == known.Receives+1 {
		return n
	}
	fit := d.PossibleAttempts
	if limit := c.policy.MaxAttempts; limit > 0 && c.facts.DeadLetter.URL != "" {
		fit = min(fit, limit)
	}
	return max(n, fit)
}
