package engine

import (
	"errors"
	"time"
)

// The refusals of a receipt.
var (
	// ErrGone: the message was deleted, has expired, went to the dead-letter
	// queue, or never was received in this queue.
	ErrGone = errors.New("engine: the message does not exist or is not available for a change of visibility")
	// ErrExpired: on a FIFO queue, the lease of the receipt is over.
	ErrExpired = errors.New("engine: the receipt has expired: the message must be received again")
	// ErrBeyond12Hours: the lease would last 12 hours or more from the
	// receive.
	ErrBeyond12Hours = errors.New("engine: the visibility timeout would reach 12 hours after the receive, the limit of SQS: use a shorter one")
)

// maxLease is how long a message can be hidden from its last receive on.
const maxLease = int64(12 * time.Hour)

// Delete removes the message. A message that has gone is not an error.
//
// On a standard queue the newest receipt deletes, whether its lease has ended
// or not. With a superseded receipt (the message was received again since)
// AWS reports success but may not delete; here it never does, so that a
// consumer which relies on it fails in its tests. A receipt that the engine does not know yet comes
// from a receive that was lost in a crash: it deletes, because the consumer will not ask again
// after the acknowledgement.
//
// On a FIFO queue a receipt deletes only during its lease; otherwise the answer is [ErrExpired]. So
// a message that was received without a lease cannot be deleted.
func (e *Engine) Delete(now time.Time, q *Queue, r Receipt) error {
	t := e.tick(now)
	slot := q.find(r, t)
	if slot == 0 {
		return nil
	}
	newest := q.messages.at(slot).receives
	switch {
	case q.settings.FIFO && !(r.Generation == newest && q.leased(slot)):
		return ErrExpired
	case r.Generation >= newest:
		q.remove(slot)
	}
	return nil
}

// ChangeVisibility makes the lease end d from now; 0 makes the message visible at once. The message
// can be hidden for less than 12 hours, counted from its newest receive. AWS refuses exactly 12
// hours, because its clock has moved on since the receive; the engine refuses it too, although its
// clock may not have.
//
// On a standard queue every receipt of the message works, as on AWS: also a superseded one while
// another receive holds the message, and also when the message is visible again, which hides it
// again. A FIFO queue answers [ErrExpired] after the receipt's lease; AWS's behaviour there is not
// known.
func (e *Engine) ChangeVisibility(now time.Time, q *Queue, r Receipt, d time.Duration) error {
	t := e.tick(now)
	slot := q.find(r, t)
	if slot == 0 {
		return ErrGone
	}
	m := q.messages.at(slot)
	switch {
	case r.Generation <= m.before || r.Generation > m.receives:
		return ErrGone // no receive of this queue
	case q.settings.FIFO && !(r.Generation == m.receives && q.leased(slot)):
		return ErrExpired
	case d <= 0:
		if q.hidden.has(slot) {
			q.exposeEarly(slot)
		}
		return nil
	case t+int64(d) >= m.received+maxLease:
		return ErrBeyond12Hours
	}
	q.hide(slot, t+int64(d))
	return nil
}

// Expose makes a hidden message, in flight or delayed, visible now, without a client's request: for
// an operator, for a reply that could not be delivered, and to inject a lost lease or a duplicate
// delivery. Its counts stay. Only the newest receipt works, because the message may have been
// received again.
func (e *Engine) Expose(now time.Time, q *Queue, r Receipt) {
	slot := q.find(r, e.tick(now))
	if slot != 0 && q.hidden.has(slot) && q.messages.at(slot).receives == r.Generation {
		q.exposeEarly(slot)
	}
}

// Hide hides a visible message of a standard queue until d from now, for an operator; false if there
// is no such message, or it is hidden already. Of the receipt only the number counts. On a FIFO
// queue later messages of its group could be received before it.
func (e *Engine) Hide(now time.Time, q *Queue, r Receipt, d time.Duration) bool {
	t := e.tick(now)
	slot := q.find(r, t)
	if slot == 0 || d <= 0 || q.settings.FIFO || q.hidden.has(slot) && q.hidden.key(slot) > t {
		return false
	}
	until := t + int64(d)
	if (until-q.ages.key(slot))%int64(time.Second) == 0 {
		until++ // see DelayedLater
	}
	q.hide(slot, until)
	return true
}

// DelayedLater reports whether the delay of a message that has one is that of [Engine.Hide], and not the one with
// which it was sent. It can be seen from the times: the delay of a send is of whole seconds, and Hide's never is.
func (d *Delivery) DelayedLater() bool {
	return !d.VisibleAt.IsZero() && !d.InFlight && d.VisibleAt.Sub(d.SentAt)%time.Second != 0
}

// EndDelay makes a delayed message visible now, for an operator; false if there is no such message, or it is not
// delayed: of one that was received its receiver decides. Of the receipt only the number counts.
func (e *Engine) EndDelay(now time.Time, q *Queue, r Receipt) bool {
	slot := q.find(r, e.tick(now))
	if slot == 0 || !q.hidden.has(slot) || q.messages.at(slot).received != never {
		return false
	}
	q.exposeEarly(slot)
	return true
}

// Remove deletes the message whatever its state, for an operator. Of the
// receipt only the number counts.
func (e *Engine) Remove(now time.Time, q *Queue, r Receipt) {
	if slot := q.find(r, e.tick(now)); slot != 0 {
		q.remove(slot)
	}
}

// DeadLetter moves the message to the queue's dead-letter queue now, whatever
// its state, for an operator; false if there is no such queue or message. Of
// the receipt only the number counts.
func (e *Engine) DeadLetter(now time.Time, q *Queue, r Receipt) bool {
	t := e.tick(now)
	to := e.queues[q.settings.DeadLetter]
	slot := q.find(r, t)
	if to == nil || slot == 0 {
		return false
	}
	q.deadLetter(slot, to, t)
	return true
}

// find returns the slot of the message that the receipt names, after applying the passing of time;
// 0 if it is gone.
func (q *Queue) find(r Receipt, t int64) uint32 {
	slot := slotOf(r)
	m := q.messages.lookup(slot)
	if m == nil || q.number(slot) != r.Number {
		return 0
	}
	if q.expired(slot, t) {
		q.remove(slot)
		return 0
	}
	if q.hidden.has(slot) && q.hidden.key(slot) <= t {
		q.expose(slot)
	}
	return slot
}

// number names a message: its slot, by which it is found without an index, and the low half of its
// sequence number, which differs from those of earlier messages in the slot.
func (q *Queue) number(slot uint32) uint64 {
	return uint64(slot)<<32 | uint64(uint32(q.messages.at(slot).sequence))
}

// slotOf is the inverse of number.
func slotOf(r Receipt) uint32 { return uint32(r.Number >> 32) }

// leased reports whether the message was received and is still hidden.
func (q *Queue) leased(slot uint32) bool {
	return q.hidden.has(slot) && q.messages.at(slot).received != never
}
