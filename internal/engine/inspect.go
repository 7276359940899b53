package engine

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Messages shows up to limit messages with a receipt number above after (0 to
// begin), in the order of these numbers, without receiving them. It skips the free slots between
// them, so a page's cost grows with the largest backlog since the queue was last empty.
func (e *Engine) Messages(now time.Time, q *Queue, after uint64, limit int) []Delivery {
	return e.AppendMessages(nil, now, q, after, limit)
}

// AppendMessages is [Engine.Messages] that appends to a page, so that a look at a whole queue needs
// only one.
func (e *Engine) AppendMessages(page []Delivery, now time.Time, q *Queue, after uint64, limit int) []Delivery {
	t, had := e.tick(now), len(page)
	for slot := uint32(after>>32) + 1; slot <= q.messages.used && len(page)-had < limit; slot++ {
		if q.messages.lookup(slot) != nil && !q.expired(slot, t) {
			if page == nil {
				page = make([]Delivery, 0, min(limit, q.messages.live))
			}
			page = append(page, q.delivery(slot, t))
		}
	}
	return page
}

// Bound returns a number that those of all messages in the queue are below. A message that comes later has a higher one,
// unless it takes the place of one that has gone.
func (e *Engine) Bound(q *Queue) uint64 { return uint64(q.messages.used+1) << 32 }

// Hidden calls look for the messages that are delayed or in flight, in the order of
// [Engine.Messages]: with the number of each one's receipts, and when it becomes visible. It looks
// at the given number of slots after the number after (0 to begin), and returns the number to
// continue after; 0: there are no more. If few messages are hidden, their number counts and not
// that of all.
func (e *Engine) Hidden(now time.Time, q *Queue, after uint64, slots int, look func(number uint64, due time.Time)) (next uint64) {
	t := e.tick(now)
	oldest, _ := q.ages.first()
	somethingExpired := q.messages.live > 0 && q.expiry(oldest.key) <= t
	show := func(h entry) {
		if h.key > t && !(somethingExpired && q.expired(h.item, t)) {
			look(q.number(h.item), instant(h.key))
		}
	}
	if after == 0 && q.hidden.len() <= slots { // so few that the order costs nothing
		sorted := slices.Clone(q.hidden.entries)
		slices.SortFunc(sorted, func(a, b entry) int { return cmp.Compare(a.item, b.item) })
		for _, h := range sorted {
			show(h)
		}
		return 0
	}
	first := uint32(after>>32) + 1
	last := uint32(min(uint64(first)+uint64(slots), uint64(len(q.hidden.positions)))) // one more
	for slot := first; slot < last; slot++ {
		if at := q.hidden.positions[slot]; at != 0 {
			show(q.hidden.entries[at-1])
		}
	}
	if int(last) >= len(q.hidden.positions) {
		return 0
	}
	return uint64(last-1) << 32
}

// Content returns a number that is another one whenever a message has come to the queue or has left
// it, and that no other queue has had.
func (e *Engine) Content(now time.Time, q *Queue) uint64 {
	q.settleDue(e.tick(now))
	return q.content
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
