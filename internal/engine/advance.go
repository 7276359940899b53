package engine

import (
	"math"
	"time"
)

// Next returns the earliest instant at which a hidden message could become
// visible, or something could happen that lets another be received: the end of
// the first delay or lease or, while any message is hidden, the expiry of the
// oldest message, which may free its group or its place in the quota. False
// means that nothing is hidden. An instant that has passed means that
// [Engine.Advance] has work.
func (e *Engine) Next(q *Queue) (time.Time, bool) {
	hidden, ok := q.hidden.first()
	if !ok {
		return time.Time{}, false
	}
	oldest, _ := q.ages.first()
	return instant(min(hidden.key, q.expiry(oldest.key))), true
}

// Advance makes visible and drops what is due, at most limit messages, and reports whether
// more is due.
func (e *Engine) Advance(now time.Time, q *Queue, limit int) (more bool) {
	t := e.tick(now)
	limit -= q.exposeDue(t, limit)
	q.expire(t, limit)
	return q.due(t)
}

// Counts returns how many messages are visible, in flight and delayed. A
// visible message of a FIFO queue counts even while its group is blocked.
func (e *Engine) Counts(now time.Time, q *Queue) (visible, inFlight, delayed int) {
	q.settleDue(e.tick(now))
	hidden := q.hidden.len()
	return q.messages.live - hidden, q.inFlight, hidden - q.inFlight
}

// Oldest returns when the oldest message of q was sent, in whatever state it is. False means
// that q is empty.
func (e *Engine) Oldest(now time.Time, q *Queue) (sent time.Time, ok bool) {
	q.settleDue(e.tick(now))
	oldest, ok := q.ages.first()
	if !ok {
		return time.Time{}, false
	}
	return instant(oldest.key), true
}

// settleDue makes visible and drops everything that is due.
func (q *Queue) settleDue(t int64) {
	q.exposeDue(t, math.MaxInt)
	q.expire(t, math.MaxInt)
}

// exposeDue makes up to limit messages visible whose delay or lease is over, longest over
// first, and returns how many. It is called before expire: otherwise the expiry of a group's
// first message could make the group lose its turn, because the second would still be
// hidden.
func (q *Queue) exposeDue(t int64, limit int) (exposed int) {
	for ; exposed < limit; exposed++ {
		next, ok := q.hidden.first()
		if !ok || next.key > t {
			break
		}
		q.expose(next.item)
	}
	return exposed
}

// expire drops up to limit messages whose retention is over, oldest first.
func (q *Queue) expire(t int64, limit int) {
	for range limit {
		oldest, ok := q.ages.first()
		if !ok || q.expiry(oldest.key) > t {
			break
		}
		q.remove(oldest.item)
	}
}

// due reports whether expire or exposeDue would find a message.
func (q *Queue) due(t int64) bool {
	if next, ok := q.hidden.first(); ok && next.key <= t {
		return true
	}
	oldest, ok := q.ages.first()
	return ok && q.expiry(oldest.key) <= t
}
