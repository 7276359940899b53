// Package memory stores what one process knows about messages that failed in it and that it no
// longer holds: how many attempts it made, when the next is due, whether only the delete is
// missing.
//
// SQS does not store these facts. The memory is bounded, belongs to one process, and is lost with
// it: a consumer works correctly without it, and counts attempts and waits more exactly with it. A
// message that succeeds is in it only where its delete may not have worked.
//
// The package is plain data and functions of their arguments. It has no clock and no lock of its
// own.
package memory

import (
	"container/list"
	"iter"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// MaxNotes is how many messages are remembered at most.
	MaxNotes = 50_000
	// MaxAge is how long a note is kept after its last change: longer than SQS can hide a message,
	// which is twelve hours.
	MaxAge = 13 * time.Hour
)

// Memory holds the notes of one consumer. The zero Memory is empty and ready to use.
type Memory struct {
	notes map[string]*list.Element
	order list.List // of *Note, the least recently written first
}

// Note is what is known about one message.
type Note struct {
	ID    string // of the message
	noted time.Time

	Receives int       // SQS's count when this was noted; Runs belongs to this count
	Seen     int       // SQS's count when this process last received the message
	Runs     int       // of the handler
	Releases int       // consecutive ones, requested by the handler
	Due      time.Time // the earliest time of the next run

	Done   bool // to be deleted without a run: its work is done, or a copy has replaced it
	Copied bool // a copy has replaced it
	Spent  bool // given up: this process must not run it again
	Kept   bool // hidden once, because its dead-letter queue did not accept it for a while

	Reason  retry.Reason // of the end of the last attempt
	Err     error        // its error, if Spent
	Problem string       // the beginning of its error's text, otherwise
	Trail   string       // the observer's trail of the last attempt

	Announced   bool // its expiry has been announced
	Unavailable bool // its last attempt failed because a dependency was unavailable

	// Handle and HiddenUntil are needed to make the message visible before its time. They are set
	// while this process has hidden it and it has not been received since.
	Handle      *string   // its receipt handle; nil if it is not hidden, or cannot be woken
	HiddenUntil time.Time // when it becomes visible by itself
	Key         string    // of its breaker
	Asked       bool      // the handler requested the wait
	Waking      bool      // it is to be woken
	dueUnwoken  time.Time // Due, before it was to be woken
	Sent        time.Time // when it was sent; zero: not known
	Unwakeable  bool      // it is woken only if LookAgain is set: it is of a FIFO queue, or given up
	LookAgain   bool      // it is woken to be decided on again, and keeps its due time
}

// nothing is the note of messages about which nothing is known. It is never changed.
var nothing Note

// Recall returns what is known about a message. The result is never nil, and must be neither
// changed nor kept.
func (m *Memory) Recall(id string, now time.Time) *Note {
	if len(m.notes) == 0 {
		return &nothing
	}
	e := m.notes[id]
	if e == nil {
		return &nothing
	}
	n := e.Value.(*Note)
	if now.Sub(n.noted) > MaxAge {
		m.drop(e)
		return &nothing
	}
	return n
}

// Note returns the note of a message, for the caller to change. A new note replaces those that are
// too old and, in a full memory, the one that was changed the longest ago.
func (m *Memory) Note(id string, now time.Time) *Note {
	if e := m.notes[id]; e != nil {
		m.order.MoveToBack(e)
		n := e.Value.(*Note)
		n.noted = now
		return n
	}
	if m.notes == nil {
		m.notes = make(map[string]*list.Element)
	}
	for len(m.notes) >= MaxNotes || m.order.Len() > 0 && now.Sub(m.order.Front().Value.(*Note).noted) > MaxAge {
		m.drop(m.order.Front())
	}
	n := &Note{ID: id, noted: now}
	m.notes[id] = m.order.PushBack(n)
	return n
}

// Forget drops the note of a message.
func (m *Memory) Forget(id string) {
	if e := m.notes[id]; e != nil {
		m.drop(e)
	}
}

// ForgetHandle notes that a message is no longer hidden by this process: its receipt handle is now
// useless, or would change a visibility that belongs to another consumer.
func (m *Memory) ForgetHandle(id string) {
	if e := m.notes[id]; e != nil {
		e.Value.(*Note).Handle = nil
	}
}

// ReceivedAgain notes that a message was received while this process held it, if this is the next
// receive after the noted one: it was no attempt. Otherwise another process may have run the message
// in between.
func (m *Memory) ReceivedAgain(id string, receives int) {
	if e := m.notes[id]; e != nil {
		if n := e.Value.(*Note); n.Receives == receives-1 {
			n.Receives = receives
		}
	}
}

func (m *Memory) drop(e *list.Element) {
	delete(m.notes, e.Value.(*Note).ID)
	m.order.Remove(e)
}

// Len returns how many messages are remembered.
func (m *Memory) Len() int { return len(m.notes) }

// All returns the notes, the least recently changed first. The caller must not change or forget
// others meanwhile.
func (m *Memory) All() iter.Seq[*Note] {
	return func(yield func(*Note) bool) {
		for e := m.order.Front(); e != nil && yield(e.Value.(*Note)); {
			e = e.Next()
		}
	}
}

// InBackoff counts the messages that are not yet due, and returns the error of the one that was noted last, of those
// that have one. It reads every note, once.
func (m *Memory) InBackoff(now time.Time) (count int, lastProblem string) {
	for e := m.order.Front(); e != nil; e = e.Next() {
		n := e.Value.(*Note)
		if !n.Due.After(now) {
			continue
		}
		count++
		if n.Problem != "" {
			lastProblem = n.Problem
		}
	}
	return count, lastProblem
}

// Unrun notes that the run of the attempt with that number, which is about to begin or has ended,
// does not count. It also notes SQS's count of receives at that time.
func (n *Note) Unrun(attempt, receives int) {
	n.Runs = max(n.Runs, attempt-1)
	n.Receives = receives
}

// Wake notes that the message is to be woken: from now on it is never received too early.
func (n *Note) Wake() {
	if !n.Due.IsZero() {
		n.dueUnwoken = n.Due
	}
	n.Waking, n.Due = true, time.Time{}
}

// Unwake notes that the message stays hidden after all: it may become visible by itself before it is
// due, since SQS hides none for longer than twelve hours.
func (n *Note) Unwake() { n.Waking, n.Due = false, n.dueUnwoken }
