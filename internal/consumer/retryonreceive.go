package consumer

import (
	"maps"
	"time"
)

// earlyRetries are the messages that run when they are received next, although their retry is not
// yet due: an operator has asked for that. A consumer and its retry lane have the same. The zero
// earlyRetries is empty and ready to use.
type earlyRetries struct {
	until map[string]time.Time // by id: when the message is forgotten if it was not received
	full  time.Time            // until then none is forgotten, at least: see add
}

const (
	// maxEarlyRetries is how many messages are remembered at most: each is asked for by its id.
	maxEarlyRetries = 10_000
	// earlyRetryFor is how long a message is remembered if it is not received. It is longer than SQS
	// can delay a copy, which is fifteen minutes, and short enough that a later wait of the same
	// message, which nobody has asked to cut short, is not shortened.
	earlyRetryFor = time.Hour
)

// RetryOnReceive has the message with that id run when it is received next, even if its retry is
// not due by then, and reports whether it will. Its attempt counts. It is for copies, which SQS
// delays, and for what another consumer has hidden: somebody else makes them visible. For the
// messages that c has hidden itself there is WakeMessage. It holds for c's queue and its retry lane.
//
// It remembers nothing new and reports false on a FIFO queue, during the stop, for a message that is held,
// done or given up, for one whose breaker is not closed, as far as its key is known, and when too
// many are remembered. A message whose breaker opens before it starts is held behind the breaker like
// one that is due.
func (c *Machine) RetryOnReceive(id string) bool {
	known := c.memory.Recall(id, c.now)
	if c.Queue.FIFO || c.draining || c.closed || c.held[id] != nil || known.Done || known.Spent || !c.isOpenFor(known) {
		return false
	}
	return c.early.add(id, c.now)
}

// RetryWhenDue ends what RetryOnReceive began, if the message has not been received since.
func (c *Machine) RetryWhenDue(id string) { delete(c.early.until, id) }

// retryEarly makes d due if it was named to RetryOnReceive. It stays due, whatever its history
// says, when it has to wait behind a breaker first.
func (c *Machine) retryEarly(d *Delivery, now time.Time) {
	if !c.early.take(d.ID, now) {
		return
	}
	note := c.memory.Note(d.ID, now)
	note.Unrun(d.Attempt, d.receives) // this receive was no attempt yet; from here on the note counts, not the history
	note.Due = time.Time{}
}

// add remembers a message, and reports whether there was room for it.
func (e *earlyRetries) add(id string, now time.Time) bool {
	if _, again := e.until[id]; !again && len(e.until) >= maxEarlyRetries && !e.makeRoom(now) {
		return false
	}
	if e.until == nil {
		e.until = make(map[string]time.Time)
	}
	e.until[id] = now.Add(earlyRetryFor)
	return true
}

// makeRoom forgets the messages whose time is over, and reports whether there were some. Where a million are refused
// one after the other it does not look at all that are remembered for each.
func (e *earlyRetries) makeRoom(now time.Time) bool {
	if !now.After(e.full) {
		return false
	}
	maps.DeleteFunc(e.until, func(_ string, until time.Time) bool { return until.Before(now) })
	e.full = now.Add(earlyRetryFor)
	for _, until := range e.until {
		if until.Before(e.full) {
			e.full = until
		}
	}
	return len(e.until) < maxEarlyRetries
}

// take forgets a message, and reports whether it was remembered and its time is not over.
func (e *earlyRetries) take(id string, now time.Time) bool {
	until, ok := e.until[id]
	delete(e.until, id)
	return ok && !until.Before(now)
}
