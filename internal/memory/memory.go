// Package memory is what one process remembers of messages that failed in it and that
// it no longer holds: how many attempts it made, when the next is due, that only the
// delete is missing.
//
// SQS keeps no such notes. The memory is bounded, belongs to one process, and is lost
// with it: it only lets the consumer do better than it would without. A message that
// succeeds is never in it.
//
// The package is plain data and functions of what they are given. It has no clock and
// no lock of its own.
package memory

import (
	"container/list"
	"iter"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// Most is how many messages are remembered at most.
	Most = 50_000
	// Age is how long a note is kept after it was written last: longer than SQS hides a
	// message, which is twelve hours at most.
	Age = 13 * time.Hour
)

// Memory holds the notes of one consumer. The zero Memory is empty and ready to use.
type Memory struct {
	notes map[string]*list.Element
	order list.List // of *Note, the least recently written first
}

// Note is what is known of one message.
type Note struct {
	ID    string // of the message
	noted time.Time

	Receives int       // SQS's count when this was noted; Runs counts up to there
	Seen     int       // SQS's count when this process received the message last
	Runs     int       // of the handler
	Releases int       // in a row, asked for by the handler
	Due      time.Time // not to be run before

	Done   bool // to be deleted without a run: its work is done, or a copy has its place
	Copied bool // a copy has its place
	Spent  bool // given up: not to be run again here
	Kept   bool // hidden once, since its dead-letter queue did not take it for a while

	Reason retry.Reason // of the last attempt's end, and its error
	Err    error
	Trail  string // what an observer left of the last attempt

	Announced   bool // that its queue will drop it
	Unavailable bool // its last attempt failed because a dependency was unavailable

	// Handle and HiddenUntil serve to make the message visible before its time. They are set
	// while this process hides it and nobody has received it since.
	Handle      *string   // its receipt handle; nil if it is not hidden, or cannot be woken
	HiddenUntil time.Time // it becomes visible by itself
	Key         string    // of its breaker
	Asked       bool      // the handler asked for the wait
	Waking      bool      // it is to be woken
}

// nothing is what is known of most messages. It is not written to.
var nothing Note

// Recall returns what is known of a message, to read and not to keep. It is never nil.
func (m *Memory) Recall(id string, now time.Time) *Note {
	if len(m.notes) == 0 {
		return &nothing
	}
	e := m.notes[id]
	if e == nil {
		return &nothing
	}
	n := e.Value.(*Note)
	if now.Sub(n.noted) > Age {
		m.drop(e)
		return &nothing
	}
	return n
}

// Note returns the note of a message, for the caller to write into. A new one takes the
// place of those that are too old and, in a full memory, of the one that was written
// the longest ago.
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
	for len(m.notes) >= Most || m.order.Len() > 0 && now.Sub(m.order.Front().Value.(*Note).noted) > Age {
		m.drop(m.order.Front())
	}
	n := &Note{ID: id, noted: now}
	m.notes[id] = m.order.PushBack(n)
	return n
}

// Forget drops what is known of a message.
func (m *Memory) Forget(id string) {
	if e := m.notes[id]; e != nil {
		m.drop(e)
	}
}

// Unpark notes that a message is no longer hidden as it was: its receipt handle is now
// useless, or would change a visibility that belongs to somebody else.
func (m *Memory) Unpark(id string) {
	if e := m.notes[id]; e != nil {
		e.Value.(*Note).Handle = nil
	}
}

func (m *Memory) drop(e *list.Element) {
	delete(m.notes, e.Value.(*Note).ID)
	m.order.Remove(e)
}

// Len returns how many messages are remembered.
func (m *Memory) Len() int { return len(m.notes) }

// All returns the notes, the least recently written first. The caller must not write or
// forget others meanwhile.
func (m *Memory) All() iter.Seq[*Note] {
	return func(yield func(*Note) bool) {
		for e := m.order.Front(); e != nil && yield(e.Value.(*Note)); {
			e = e.Next()
		}
	}
}

// InBackoff counts the messages that are not yet due. It looks at every note.
func (m *Memory) InBackoff(now time.Time) int {
	count := 0
	for n := range m.All() {
		if n.Due.After(now) {
			count++
		}
	}
	return count
}

// Unrun notes that the run of the attempt with that number, which is about to begin or
// has ended, does not count, and SQS's count of receives at that time.
func (n *Note) Unrun(attempt, receives int) {
	n.Runs = max(n.Runs, attempt-1)
	n.Receives = receives
}
