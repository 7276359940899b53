package engine

import (
	"errors"
	"time"
)

// Why a message cannot be redriven to the queue that dead-lettered it.
var (
	// ErrNoSource: the message was sent to this queue, no queue dead-lettered it.
	ErrNoSource = errors.New("engine: the message was not dead-lettered: name a destination")
	// ErrSourceGone: the queue that dead-lettered the message was deleted.
	ErrSourceGone = errors.New("engine: the queue that dead-lettered the message does not exist any more: name a destination")
)

// Redrive moves the message that a receive would give first to another queue or, if to is
// nil, to the one that dead-lettered it, and reports whether there was one. It arrives as a
// new message: visible, sent now, never received, under the id given. Its group and its
// deduplication id stay; the other queue does not check whether it has recently accepted that id,
// because a redriven message must not get lost.
func (e *Engine) Redrive(now time.Time, q, to *Queue, id ID) (moved bool, err error) {
	t := e.tick(now)
	q.exposeDue(t, maxSettled)
	q.expire(t, maxSettled)
	slot := q.front()
	if slot == 0 || q.expired(slot, t) {
		return false, nil
	}
	m := *q.messages.at(slot)
	if to == nil {
		if m.source == 0 {
			return false, ErrNoSource
		}
		if to = e.queues[q.sources[m.source-1]]; to == nil {
			return false, ErrSourceGone
		}
	}
	group := q.groups.name(m.group)
	q.left(slot, true)
	q.detach(slot)
	to.insert(record{
		id: id, dedup: m.dedup, payload: m.payload, sendNumber: m.sendNumber, firstReceived: never, received: never,
	}, group, t, t, t)
	return true, nil
}

// front returns the visible message that a receive would try first, or 0.
func (q *Queue) front() uint32 {
	if !q.settings.FIFO {
		return q.next()
	}
	if q.groups.ready.first == 0 {
		return 0
	}
	return q.groups.at(q.groups.ready.first).messages.first
}
