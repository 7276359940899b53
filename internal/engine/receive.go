package engine

import (
	"errors"
	"time"
)

// ErrOverLimit is the answer of a standard queue that has as many messages in
// flight as its quota permits.
var ErrOverLimit = errors.New("engine: too many messages in flight: delete some or let their visibility timeout end before receiving more")

// maxSettled is how many messages of each kind a Receive settles: messages that it expires, makes
// visible, or skips because they have expired or go to the dead-letter queue.
const maxSettled = 64

// Receive takes up to count receivable messages for the given lease (negative:
// the queue's; 0 leaves them visible) and appends them to dst.
//
// A standard queue returns the longest visible messages first, those of noisy tenants last (see
// fair.go). A FIFO queue fills the result with one group as far as possible, then with the next,
// and sends each group it served behind the others; within a group in the order in which they were
// sent. A message already received MaxReceives times in this queue goes to the dead-letter queue
// instead, if there is one.
//
// At the in-flight quota a standard queue answers [ErrOverLimit], a FIFO queue
// nothing. Unlike AWS, a FIFO queue looks for available groups behind the
// first 120,000 messages too.
//
// A call settles a bounded number of messages. When a backlog of expired or exhausted ones exceeds
// that, it may return fewer than there are, or none; the queue is then reported by [Engine.Woken],
// and the next call continues.
func (e *Engine) Receive(now time.Time, q *Queue, count int, visibility time.Duration, dst []Delivery) ([]Delivery, error) {
	t := e.tick(now)
	q.exposeDue(t, maxSettled)
	q.expire(t, maxSettled)
	room := q.room()
	switch {
	case room > 0:
	case q.settings.FIFO || q.due(t): // due messages may make room
		return dst, nil
	default:
		return dst, ErrOverLimit
	}
	if visibility < 0 {
		visibility = q.settings.Visibility
	}
	d := receiveInProgress{
		queue: q, now: t, until: t + int64(visibility),
		wanted: min(count, room), passes: maxSettled, deliveries: dst,
	}
	if q.settings.FIFO {
		d.fromGroups()
	} else {
		d.fromVisible()
	}
	if d.passes == 0 {
		e.wake(q)
	}
	return d.deliveries, nil
}

// receiveInProgress is a receive in progress.
type receiveInProgress struct {
	queue      *Queue
	now, until int64
	wanted     int // messages still to take
	passes     int // messages that may still be skipped
	deliveries []Delivery
	late       []uint32 // of a standard queue: to be put back into the list of visible ones
}

func (d *receiveInProgress) done() bool { return d.wanted <= 0 || d.passes <= 0 }

// fromVisible tries each message at most once: messages that stay visible go back into the
// list only at the end.
func (d *receiveInProgress) fromVisible() {
	q := d.queue
	q.expireNoisy(d.now, maxSettled)
	for !d.done() {
		slot := q.next()
		if slot == 0 {
			break
		}
		d.try(slot)
	}
	for _, slot := range d.late {
		q.addVisible(slot)
	}
}

func (d *receiveInProgress) fromGroups() {
	q := d.queue
	newest := q.engine.sequence
	for ready := q.groups.ready.length; ready > 0 && !d.done(); ready-- {
		served := q.groups.ready.first
		slot := q.groups.at(served).messages.first
		for slot != 0 && !q.hidden.has(slot) && !d.done() {
			m := q.messages.at(slot)
			if m.sequence > newest {
				break // a dead letter of this call, in a queue that is its own target
			}
			next := m.neighbours.next
			d.try(slot)
			slot = next
		}
		q.groups.rotate(served)
	}
}

// try receives the message, unless it has expired or goes to the dead-letter queue.
func (d *receiveInProgress) try(slot uint32) {
	q := d.queue
	if q.expired(slot, d.now) {
		q.remove(slot)
		d.passes--
		return
	}
	if to := q.deadLetterTarget(slot); to != nil {
		slot = q.deadLetter(slot, to, d.now)
		if to == q && !q.settings.FIFO {
			q.removeVisible(slot)
			d.late = append(d.late, slot)
		}
		d.passes--
		return
	}
	q.receive(slot, d.until, d.now)
	if d.until <= d.now && !q.settings.FIFO {
		d.late = append(d.late, slot)
	}
	d.deliveries = append(d.deliveries, q.delivery(slot, d.now))
	d.wanted--
}
