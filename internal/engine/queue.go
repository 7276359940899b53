package engine

import (
	"math"
	"slices"
	"time"
)

// Queue is a handle on a queue of an [Engine].
type Queue struct {
	engine   *Engine
	key      string
	settings Settings

	messages slab
	ages     heap // every message, by the time it was sent
	hidden   heap // the delayed and the in-flight ones, by the time that ends
	inFlight int  // of the hidden ones

	// visible lists the visible messages of a standard queue that have no
	// group, longest visible first; those with a group stand in its own list. A message that comes
	// back goes behind the others, so neither new nor returned messages starve the others.
	visible list

	groups   groups
	window   window   // FIFO only
	sources  []string // the queues that dead-lettered into this one
	woken    bool     // stands in Engine.woken
	content  uint64   // see Engine.Content
	restored uint64   // while messages are restored: the newest's sequence number
}

// Settings of a queue. The caller has checked their ranges.
type Settings struct {
	// FIFO makes it a FIFO queue. Fixed at creation.
	FIFO bool
	// Delay hides new messages for that long. On a FIFO queue a change
	// applies to the messages in the queue as well.
	Delay time.Duration
	// Visibility is the visibility timeout of a receive that names none.
	Visibility time.Duration
	// Retention is the age at which a message is dropped, in flight or not.
	// Zero means four days, the default of SQS.
	Retention time.Duration
	// DeadLetter is the key of the queue that takes the messages received
	// MaxReceives times; "" means none. While the engine has no such queue, messages continue to be
	// delivered.
	DeadLetter string
	// MaxReceives is the maxReceiveCount of the redrive policy; 0 means none.
	MaxReceives int
	// DedupPerGroup lets equal deduplication ids of different groups pass.
	// Fixed at creation.
	DedupPerGroup bool
	// InFlightLimit is how many messages can be in flight. Zero means
	// 120,000, the quota of SQS; negative means no limit.
	InFlightLimit int
}

const (
	defaultRetention     = 4 * 24 * time.Hour
	defaultInFlightLimit = 120_000
)

// Key returns the key that the queue was created with.
func (q *Queue) Key() string { return q.key }

// Settings returns the settings as they were given last.
func (q *Queue) Settings() Settings { return q.settings }

// insert adds a message that stays hidden until the given time.
func (q *Queue) insert(m record, group string, sentAt, visibleAt, t int64) uint32 {
	q.engine.sequence++
	m.sequence = q.engine.sequence
	if m.sendNumber == 0 {
		m.sendNumber = m.sequence
	}
	if visibleAt <= t {
		visibleAt = never
	}
	slot := q.messages.add(m)
	q.place(slot, group, sentAt, visibleAt, t)
	q.changed(slot)
	return slot
}

// place puts the message in a slot into its group, which it reached at the given time, among
// the ages, and among the hidden or the visible ones.
func (q *Queue) place(slot uint32, group string, sentAt, hiddenUntil, heard int64) {
	q.contentChanged()
	m := q.messages.at(slot)
	if group != "" || q.settings.FIFO {
		m.group = q.groups.join(group)
		q.groups.noteArrival(m.group, heard)
	}
	q.ages.set(slot, sentAt)
	if q.settings.FIFO {
		q.groups.at(m.group).messages.append(&q.messages, slot)
	}
	if hiddenUntil != never {
		q.startHidden(slot, hiddenUntil)
	} else {
		q.makeReceivable(slot)
	}
}

// receive counts a receive and hides the message until the given time. If that is now, it
// stays visible; on a standard queue the caller then puts it back into the list of visible
// ones, when it has finished.
func (q *Queue) receive(slot uint32, until, t int64) {
	m := q.messages.at(slot)
	m.receives++
	m.received = t
	if m.firstReceived == never {
		m.firstReceived = t
	}
	if until > t {
		q.hide(slot, until)
		return
	}
	if !q.settings.FIFO {
		q.removeVisible(slot)
	}
	q.changed(slot)
}

// hide makes a message invisible until the given time, or changes that time.
func (q *Queue) hide(slot uint32, until int64) {
	if q.hidden.has(slot) {
		q.hidden.set(slot, until)
	} else {
		if !q.settings.FIFO {
			q.removeVisible(slot)
		}
		q.startHidden(slot, until)
	}
	q.changed(slot)
}

// expose makes a hidden message visible whose delay or visibility timeout is over.
func (q *Queue) expose(slot uint32) {
	q.endHidden(slot)
	q.makeReceivable(slot)
}

// exposeEarly makes a hidden message visible before its delay or visibility timeout is over.
func (q *Queue) exposeEarly(slot uint32) {
	q.expose(slot)
	q.changed(slot)
}

// remove takes a message out of the queue for good.
func (q *Queue) remove(slot uint32) {
	q.left(slot, false)
	q.detach(slot)
}

// detach takes a message out of the queue.
func (q *Queue) detach(slot uint32) {
	q.contentChanged()
	group := q.messages.at(slot).group
	if q.hidden.has(slot) {
		q.endHidden(slot)
	} else if !q.settings.FIFO {
		q.removeVisible(slot)
	}
	if q.settings.FIFO {
		q.groups.at(group).messages.remove(&q.messages, slot)
		q.updateReady(group)
		if q.groups.at(group).ready {
			q.engine.wake(q)
		}
	}
	if group != 0 {
		q.groups.leave(group)
	}
	q.ages.remove(slot)
	q.messages.remove(slot)
	if q.messages.live == 0 {
		q.clear()
	}
}

// deadLetter dead-letters a message: it enters the other queue visible, with its id,
// its counts and its group. It returns its slot there.
func (q *Queue) deadLetter(slot uint32, to *Queue, t int64) uint32 {
	m := *q.messages.at(slot)
	group, sentAt := q.groups.name(m.group), q.ages.key(slot)
	q.left(slot, true)
	q.detach(slot)
	m.before, m.received = m.receives, never
	m.source = to.sourceIndex(q.key)
	m.group = 0
	if to.settings.FIFO {
		sentAt = t
		m.dedup = m.id.String()
	}
	return to.insert(m, group, sentAt, t, t)
}

// clear removes every message and frees the memory of a backlog. It is also called when the
// last message leaves.
func (q *Queue) clear() {
	q.contentChanged()
	q.messages.reset()
	q.ages.reset()
	q.hidden.reset()
	q.groups.reset()
	q.visible, q.inFlight = list{}, 0
}

// contentChanged notes that messages have come or gone.
func (q *Queue) contentChanged() {
	q.engine.contents++
	q.content = q.engine.contents
}

// changeDelay gives every message that was never received the queue's delay.
func (q *Queue) changeDelay(t int64) {
	for slot := uint32(1); slot <= q.messages.used; slot++ {
		m := q.messages.lookup(slot)
		if m == nil || m.receives > 0 {
			continue
		}
		until := q.ages.key(slot) + int64(q.settings.Delay)
		switch {
		case until > t:
			q.hide(slot, until)
		case q.hidden.has(slot):
			q.exposeEarly(slot)
		}
	}
}

// startHidden begins a delay or a visibility timeout.
func (q *Queue) startHidden(slot uint32, until int64) {
	q.hidden.set(slot, until)
	m := q.messages.at(slot)
	if m.received != never {
		q.inFlight++
		q.countInFlight(m.group, 1)
	}
	if q.settings.FIFO {
		q.groups.at(m.group).hidden++
		q.updateReady(m.group)
	}
}

// endHidden ends a delay or a visibility timeout. A message that is no longer in flight may
// make room for others.
func (q *Queue) endHidden(slot uint32) {
	q.hidden.remove(slot)
	if q.settings.FIFO {
		q.groups.at(q.messages.at(slot).group).hidden--
	}
	if q.messages.at(slot).received == never {
		return
	}
	full := q.room() <= 0
	q.inFlight--
	q.countInFlight(q.messages.at(slot).group, -1)
	if full && q.receivable() {
		q.engine.wake(q)
	}
}

// makeReceivable lets receivers have a message that is no longer hidden, and wakes them
// unless a hidden message of its group is before it.
func (q *Queue) makeReceivable(slot uint32) {
	if !q.settings.FIFO {
		q.addVisible(slot)
		q.engine.wake(q)
		return
	}
	group := q.messages.at(slot).group
	q.updateReady(group)
	if q.groups.at(group).ready {
		q.engine.wake(q)
	}
}

// updateReady determines again whether a group is ready.
func (q *Queue) updateReady(group uint32) {
	first := q.groups.at(group).messages.first
	q.groups.setReady(group, first != 0 && !q.hidden.has(first))
}

// receivable reports whether there is a visible message that no hidden one of its group
// blocks.
func (q *Queue) receivable() bool {
	return q.visible.length > 0 || q.groups.ready.length > 0 || q.groups.quiet.len() > 0 || q.groups.noisy.len() > 0
}

// room returns how many more messages the quota permits in flight.
func (q *Queue) room() int {
	switch limit := q.settings.InFlightLimit; {
	case limit < 0:
		return math.MaxInt
	case limit == 0:
		return defaultInFlightLimit - q.inFlight
	default:
		return limit - q.inFlight
	}
}

// expired reports whether the message's retention is over.
func (q *Queue) expired(slot uint32, t int64) bool {
	return q.expiry(q.ages.key(slot)) <= t
}

func (q *Queue) expiry(sentAt int64) int64 {
	if q.settings.Retention == 0 {
		return sentAt + int64(defaultRetention)
	}
	return sentAt + int64(q.settings.Retention)
}

// deadLetterTarget returns the dead-letter queue to which the message must go, or nil.
// Receives count per queue, so that a dead-letter queue with a redrive policy of its own still
// delivers its messages, and queues that dead-letter into each other, or into themselves, continue
// to deliver.
func (q *Queue) deadLetterTarget(slot uint32) *Queue {
	m := q.messages.at(slot)
	if q.settings.MaxReceives <= 0 || int(m.receives-m.before) < q.settings.MaxReceives {
		return nil
	}
	return q.engine.queues[q.settings.DeadLetter]
}

func (q *Queue) sourceIndex(key string) uint32 {
	at := slices.Index(q.sources, key)
	if at < 0 {
		at = len(q.sources)
		q.sources = append(q.sources, key)
	}
	return uint32(at + 1)
}
