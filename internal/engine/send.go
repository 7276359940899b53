package engine

import "time"

// Send adds a message. A FIFO queue that accepted one with the same
// deduplication id less than five minutes ago, in the same group if that is the scope, answers with
// the earlier one, even if that has left the queue; the five minutes do not begin anew.
func (e *Engine) Send(now time.Time, q *Queue, m Message) Sent {
	t := e.tick(now)
	delay := m.Delay
	if delay < 0 || q.settings.FIFO {
		delay = q.settings.Delay
	}
	fresh := record{id: m.ID, dedup: m.Dedup, payload: m.Payload, firstReceived: never, received: never}
	if !q.settings.FIFO {
		q.insert(fresh, m.Group, t, t+int64(delay), t)
		return Sent{ID: m.ID, SendNumber: e.sequence}
	}
	key := dedupKey{id: m.Dedup}
	if q.settings.DedupPerGroup {
		key.group = m.Group
	}
	q.forget(t)
	if original, ok := q.window.find(key, t); ok {
		return Sent{ID: original.id, Sequence: original.sequence, SendNumber: original.sequence, Duplicate: true}
	}
	slot := q.insert(fresh, m.Group, t, t+int64(delay), t)
	sequence := q.messages.at(slot).sequence
	entry := accepted{key: key, id: m.ID, sequence: sequence, at: t}
	q.window.add(entry)
	q.recordAccepted(entry)
	return Sent{ID: m.ID, Sequence: sequence, SendNumber: sequence}
}

// dedupWindow is how long a FIFO queue remembers what it accepted.
const dedupWindow = int64(5 * time.Minute)

// window is a FIFO queue's memory of what it accepted, oldest first. It
// outlives the messages.
type window struct {
	accepted []accepted
	first    uint64              // ordinal of accepted[0]
	index    map[dedupKey]uint64 // the ordinal of the newest with that key
}

type accepted struct {
	key      dedupKey
	id       ID
	sequence uint64
	at       int64
}

type dedupKey struct{ group, id string }

// find returns the message accepted under the key within the window.
func (w *window) find(key dedupKey, t int64) (accepted, bool) {
	ordinal, ok := w.index[key]
	if !ok {
		return accepted{}, false
	}
	a := w.accepted[ordinal-w.first]
	return a, t-a.at < dedupWindow
}

func (w *window) add(a accepted) {
	if w.index == nil {
		w.index = make(map[dedupKey]uint64)
	}
	w.index[a.key] = w.first + uint64(len(w.accepted))
	w.accepted = append(w.accepted, a)
}

// forget drops up to two entries older than the window: so the memory shrinks faster than sends
// fill it, and no single send takes long.
func (q *Queue) forget(t int64) {
	for range 2 {
		if len(q.window.accepted) == 0 || t-q.window.accepted[0].at < dedupWindow {
			return
		}
		if r := q.engine.recorder; r != nil {
			r.Forgotten(q, q.window.accepted[0].sequence)
		}
		q.window.drop()
	}
}

// drop drops the oldest.
func (w *window) drop() {
	key := w.accepted[0].key
	if w.index[key] == w.first {
		delete(w.index, key)
	}
	w.accepted[0] = accepted{}
	w.accepted = w.accepted[1:]
	w.first++
}
