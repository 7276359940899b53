package engine

import (
	"iter"
	"time"
)

// Messages shows up to limit messages with a receipt number above after (0 to
// begin), in the order of these numbers, without receiving them. It skips the free slots between
// them, so a page's cost grows with the largest backlog since the queue was last empty.
func (e *Engine) Messages(now time.Time, q *Queue, after uint64, limit int) []Delivery {
	t := e.tick(now)
	var page []Delivery
	for slot := uint32(after>>32) + 1; slot <= q.messages.used && len(page) < limit; slot++ {
		if q.messages.lookup(slot) != nil && !q.expired(slot, t) {
			if page == nil {
				page = make([]Delivery, 0, min(limit, q.messages.live))
			}
			page = append(page, q.delivery(slot, t))
		}
	}
	return page
}

// All yields the messages in the order of [Engine.Messages], without a page in between. The queue
// must not change meanwhile.
func (e *Engine) All(now time.Time, q *Queue) iter.Seq[Delivery] {
	return func(yield func(Delivery) bool) {
		t := e.tick(now)
		for slot := uint32(1); slot <= q.messages.used; slot++ {
			if q.messages.lookup(slot) != nil && !q.expired(slot, t) && !yield(q.delivery(slot, t)) {
				return
			}
		}
	}
}

// Find returns the newest receipt of the message with the id, for an operator
// and for fault injection. It looks at every message. Of several with the same
// id it returns any.
func (e *Engine) Find(q *Queue, id ID) (Receipt, bool) {
	for slot := uint32(1); slot <= q.messages.used; slot++ {
		if m := q.messages.lookup(slot); m != nil && m.id == id {
			return Receipt{Number: q.number(slot), Generation: m.receives}, true
		}
	}
	return Receipt{}, false
}

// Has reports whether the message is in the queue. Of the receipt only the number counts.
func (e *Engine) Has(now time.Time, q *Queue, r Receipt) bool {
	return q.find(r, e.tick(now)) != 0
}

// Shown shows one message. Of the receipt only the number counts.
func (e *Engine) Shown(now time.Time, q *Queue, r Receipt) (d Delivery, found bool) {
	t := e.tick(now)
	slot := q.find(r, t)
	if slot == 0 {
		return d, false
	}
	return q.delivery(slot, t), true
}

// delivery shows a message as it is now.
func (q *Queue) delivery(slot uint32, t int64) Delivery {
	m := q.messages.at(slot)
	d := Delivery{
		Message:       Message{ID: m.id, Group: q.groups.name(m.group), Dedup: m.dedup, Payload: m.payload},
		Receipt:       Receipt{Number: q.number(slot), Generation: m.receives},
		SendNumber:    m.sendNumber,
		SentAt:        instant(q.ages.key(slot)),
		FirstReceived: instant(m.firstReceived),
		Receives:      int(m.receives),
	}
	if q.settings.FIFO {
		d.Sequence = m.sequence
	}
	if m.source != 0 {
		d.Source = q.sources[m.source-1]
	}
	if q.hidden.has(slot) && q.hidden.key(slot) > t {
		d.VisibleAt = instant(q.hidden.key(slot))
		d.InFlight = m.received != never
	}
	return d
}
