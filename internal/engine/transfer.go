package engine

import "time"

// Transfer moves a visible message to another queue, for an operator. It arrives as it would by
// [Engine.Redrive]: visible, sent now, never received, with the id, group, deduplication id and
// payload of m. With keep it keeps its SendNumber, and so whatever the caller has under that number;
// otherwise the message that leaves is removed, and the one that arrives has a number of its own.
//
// It does nothing, and reports false, if somebody works on the message: if it is hidden, if it was
// received since the receipt was made, or, on a FIFO queue, if one before it in its group is hidden,
// which it would overtake; and if it is gone.
func (e *Engine) Transfer(now time.Time, q, to *Queue, r Receipt, m Message, keep bool) (sendNumber uint64, moved bool) {
	t := e.tick(now)
	slot := q.idle(r, t)
	if slot == 0 {
		return 0, false
	}
	fresh := record{id: m.ID, dedup: m.Dedup, payload: m.Payload, firstReceived: never, received: never}
	if keep {
		fresh.sendNumber = q.messages.at(slot).sendNumber
	}
	q.left(slot, keep)
	q.detach(slot)
	return to.messages.at(to.insert(fresh, m.Group, t, t, t)).sendNumber, true
}

// RemoveIdle removes a message under the conditions of [Engine.Transfer], except that it may be
// behind a hidden one of its group, and reports whether it did.
func (e *Engine) RemoveIdle(now time.Time, q *Queue, r Receipt) bool {
	slot := q.find(r, e.tick(now))
	if slot == 0 || q.hidden.has(slot) || q.messages.at(slot).receives != r.Generation {
		return false
	}
	q.remove(slot)
	return true
}

// idle returns the slot of a message that may be transferred, or 0.
func (q *Queue) idle(r Receipt, t int64) uint32 {
	slot := q.find(r, t)
	if slot == 0 || q.hidden.has(slot) || q.messages.at(slot).receives != r.Generation {
		return 0
	}
	if !q.settings.FIFO {
		return slot
	}
	g := q.groups.at(q.messages.at(slot).group)
	if g.hidden == 0 {
		return slot
	}
	for before := g.messages.first; before != slot; before = q.messages.at(before).neighbours.next {
		if q.hidden.has(before) && q.hidden.key(before) > t {
			return 0
		}
	}
	return slot
}
