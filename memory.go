package reprise

import (
	"container/list"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// memory is what this process remembers of messages that failed here and are no
// longer in its hands. SQS keeps no such notes: it is bounded, belongs to this
// process alone, and only makes the consumer better than it would be without. A
// message that succeeds is never in it. Guarded by Consumer.mu.
type memory struct {
	entries map[string]*list.Element
	order   list.List // of *recollection, the least recently noted first
}

// recollection is what is known of one message.
type recollection struct {
	id       string
	noted    time.Time
	receives int       // SQS's count when this was noted, after which runs holds
	seen     int       // SQS's count when this process had it last, whatever became of it
	runs     int       // of the handler
	releases int       // in a row, asked for by the handler
	due      time.Time // not to be run before
	done     bool      // to be deleted unrun: its work is done, or a copy has its place
	copied   bool      // the latter
	spent    bool      // given up: not to be run again here
	kept     bool      // hidden once, since its dead-letter queue did not take it for a while
	reason   retry.Reason
	err      error
	trail    string // of its last attempt

	announced bool // that its queue will drop it

	unavailable bool // its last attempt failed for want of what its handler needs

	// Parked: hidden by this process, and not seen since.
	handle      *string   // nil if it is not parked, or cannot be woken
	hiddenUntil time.Time // it becomes visible by itself
	key         string
	asked       bool // to wait, by the handler
	waking      bool // it is to be woken
}

const (
	maxMemories = 50_000
	// memoryAge outlasts the longest time that SQS hides a message.
	memoryAge = 13 * time.Hour
)

// nothing is what is known of most messages. It is not written to.
var nothing recollection

// recall returns what is known of a message, to read and not to keep.
func (m *memory) recall(id string, now time.Time) *recollection {
	if len(m.entries) == 0 {
		return &nothing
	}
	e := m.entries[id]
	if e == nil {
		return &nothing
	}
	r := e.Value.(*recollection)
	if now.Sub(r.noted) > memoryAge {
		m.drop(e)
		return &nothing
	}
	return r
}

// note returns the entry of a message, for the caller to write into.
func (m *memory) note(id string, now time.Time) *recollection {
	if e := m.entries[id]; e != nil {
		m.order.MoveToBack(e)
		r := e.Value.(*recollection)
		r.noted = now
		return r
	}
	if m.entries == nil {
		m.entries = make(map[string]*list.Element)
	}
	for len(m.entries) >= maxMemories || m.order.Len() > 0 && now.Sub(m.order.Front().Value.(*recollection).noted) > memoryAge {
		m.drop(m.order.Front())
	}
	r := &recollection{id: id, noted: now}
	m.entries[id] = m.order.PushBack(r)
	return r
}

// forget drops what is known of a message.
func (m *memory) forget(id string) {
	if e := m.entries[id]; e != nil {
		m.drop(e)
	}
}

// unpark notes that a message is no longer hidden as it was. With that its receipt
// handle has become useless, or harmful.
func (m *memory) unpark(id string) {
	if e := m.entries[id]; e != nil {
		e.Value.(*recollection).handle = nil
	}
}

func (m *memory) drop(e *list.Element) {
	delete(m.entries, e.Value.(*recollection).id)
	m.order.Remove(e)
}

// inBackoff counts the messages that are not yet due.
func (m *memory) inBackoff(now time.Time) int {
	n := 0
	for e := m.order.Front(); e != nil; e = e.Next() {
		if e.Value.(*recollection).due.After(now) {
			n++
		}
	}
	return n
}
