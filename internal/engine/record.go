package engine

import (
	"errors"
	"fmt"
	"iter"
)

// Recorder is called for every change, in order and within the call that makes it. The passing of
// time alone is not a change: [State.HiddenUntil] says when a message becomes visible. An engine
// restored from the last state of each message and of each acceptance behaves the same. The
// recorder is not called for settings and for queues created or dropped; the caller knows these.
type Recorder interface {
	// Changed has the new state of a message that came or changed.
	Changed(q *Queue, s *State)
	// Left reports that a message has left the queue. If moved, it comes to another queue, or to
	// this one again, within the same call.
	Left(q *Queue, sequence, sendNumber uint64, moved bool)
	// Emptied reports that the queue has lost its messages and, on a FIFO queue, its memory of
	// duplicates.
	Emptied(q *Queue, messages RemovedMessages)
	// Accepted has a message that a FIFO queue must recognize when it is sent again.
	Accepted(q *Queue, a *Acceptance)
	// Forgotten reports that the queue need not recognize the one with that number any more.
	Forgotten(q *Queue, sequence uint64)
}

// Record makes r the engine's recorder, from the next call on. Its arguments are valid
// during the call only, but for RemovedMessages.
func (e *Engine) Record(r Recorder) { e.recorder = r }

// Never is the instant of an event that has not happened.
const Never = never

// State is all that an engine knows about a message. Instants are nanoseconds of Unix time, or
// Never.
type State struct {
	ID      ID
	Group   string
	Dedup   string
	Payload any

	Slot       uint32 // with Sequence it makes the number of the message's receipts
	Sequence   uint64 // of its arrival in the queue, over all queues
	SendNumber uint64 // the sequence number of its sending

	SentAt        int64
	FirstReceived int64
	Received      int64  // last, in this queue
	HiddenUntil   int64  // Never: it is visible; past: it became visible then
	Receives      uint32 // over all queues
	Before        uint32 // of these, the ones before it came into this queue
	Source        string // key of the queue that dead-lettered it, or ""
}

// Acceptance is a FIFO queue's memory of a message that it accepted.
type Acceptance struct {
	Sequence uint64
	ID       ID
	Group    string // "" unless the scope of deduplication is the group
	Dedup    string
	At       int64
}

// RemovedMessages are the messages that were in a queue when it was purged or dropped. They do not change
// any more, and may be read without the engine's lock.
type RemovedMessages struct{ messages slab }

// Len returns how many messages there were.
func (r RemovedMessages) Len() int { return r.messages.live }

// SendNumbers yields the SendNumber of each, in no order.
func (r RemovedMessages) SendNumbers() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for slot := uint32(1); slot <= r.messages.used; slot++ {
			if m := r.messages.lookup(slot); m != nil && !yield(m.sendNumber) {
				return
			}
		}
	}
}

// Restore puts a message back into a queue as it was recorded. The messages of a queue come
// in the order of their sequence numbers, and [Engine.Resume] before any other call. The
// order of visible messages is not recorded: those of a standard queue stand in the order in
// which they came, and so do the ready groups of a FIFO queue.
//
// The error names the contradiction in the state.
func (q *Queue) Restore(s *State) error {
	switch {
	case s.Sequence == 0 || s.Sequence <= q.restored:
		return fmt.Errorf("sequence number %d does not come after %d", s.Sequence, q.restored)
	case s.SendNumber == 0 || s.SendNumber > s.Sequence:
		return fmt.Errorf("message %d claims to be sent as %d", s.Sequence, s.SendNumber)
	case s.Slot == 0 || s.Slot > maxSlot:
		return fmt.Errorf("slot %d is not between 1 and %d", s.Slot, maxSlot)
	case q.messages.lookup(s.Slot) != nil:
		return fmt.Errorf("slot %d is that of another message", s.Slot)
	case s.Before > s.Receives || (s.Receives > s.Before) != (s.Received != never):
		return fmt.Errorf("%d receives, %d of them elsewhere, the last at %d, contradict each other", s.Receives, s.Before, s.Received)
	}
	q.restored = s.Sequence
	q.engine.sequence = max(q.engine.sequence, s.Sequence)
	m := record{
		id: s.ID, payload: s.Payload, dedup: s.Dedup, sequence: s.Sequence, sendNumber: s.SendNumber,
		firstReceived: s.FirstReceived, received: s.Received, receives: s.Receives, before: s.Before,
	}
	if s.Source != "" {
		m.source = q.sourceIndex(s.Source)
	}
	q.messages.put(s.Slot, m)
	q.place(s.Slot, s.Group, s.SentAt, s.HiddenUntil, s.SentAt)
	return nil
}

// maxSlot is beyond any backlog that fits into memory; it prevents a damaged record from asking for
// more memory than there is.
const maxSlot = 1 << 28

// RestoreAcceptance restores a message that a FIFO queue must recognize. Acceptances come in the
// order of their sequence numbers.
func (q *Queue) RestoreAcceptance(a *Acceptance) error {
	if !q.settings.FIFO {
		return errors.New("a standard queue does not deduplicate")
	}
	if n := len(q.window.accepted); n > 0 && a.Sequence <= q.window.accepted[n-1].sequence {
		return fmt.Errorf("acceptance %d does not come after %d", a.Sequence, q.window.accepted[n-1].sequence)
	}
	q.engine.sequence = max(q.engine.sequence, a.Sequence)
	q.window.add(accepted{key: dedupKey{group: a.Group, id: a.Dedup}, id: a.ID, sequence: a.Sequence, at: a.At})
	return nil
}

// Resume ends the restoring of messages. Sequence numbers continue above the
// given one and above all that were restored. So receipts of deleted messages differ from those of
// new ones.
func (e *Engine) Resume(sequence uint64) {
	e.sequence = max(e.sequence, sequence)
	for _, q := range e.queues {
		q.messages.freeGaps()
		q.restored = 0
	}
}

// changed reports the state of a message to the recorder.
func (q *Queue) changed(slot uint32) {
	if q.engine.recorder == nil {
		return
	}
	m := q.messages.at(slot)
	s := &q.engine.state // not on the stack, from where the recorder would make it escape
	*s = State{
		ID: m.id, Group: q.groups.name(m.group), Dedup: m.dedup, Payload: m.payload,
		Slot: slot, Sequence: m.sequence, SendNumber: m.sendNumber,
		SentAt: q.ages.key(slot), FirstReceived: m.firstReceived, Received: m.received, HiddenUntil: never,
		Receives: m.receives, Before: m.before,
	}
	if m.source != 0 {
		s.Source = q.sources[m.source-1]
	}
	if q.hidden.has(slot) {
		s.HiddenUntil = q.hidden.key(slot)
	}
	q.engine.recorder.Changed(q, s)
}

// left reports to the recorder that a message leaves.
func (q *Queue) left(slot uint32, moved bool) {
	if r := q.engine.recorder; r != nil {
		m := q.messages.at(slot)
		r.Left(q, m.sequence, m.sendNumber, moved)
	}
}

// recordAccepted reports the newest message of the window to the recorder.
func (q *Queue) recordAccepted(a accepted) {
	if q.engine.recorder == nil {
		return
	}
	recorded := &q.engine.acceptance
	*recorded = Acceptance{Sequence: a.sequence, ID: a.id, Group: a.key.group, Dedup: a.key.id, At: a.at}
	q.engine.recorder.Accepted(q, recorded)
}

// empty removes every message and passes them to the recorder.
func (q *Queue) empty() {
	if r := q.engine.recorder; r != nil {
		r.Emptied(q, RemovedMessages{q.messages})
		q.messages = slab{}
	}
	q.clear()
}
