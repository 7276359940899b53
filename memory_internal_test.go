package reprise

import (
	"strconv"
	"testing"
	"time"
)

// TestMemoryKeepsWhatWasNotedLast: when it is full the message goes that was noted the
// longest ago, not the one that has been known for the longest.
func TestMemoryKeepsWhatWasNotedLast(t *testing.T) {
	var m memory
	now := time.Now()
	for i := range maxMemories {
		m.note(strconv.Itoa(i), now).runs = 1
	}
	m.note("0", now).runs = 2
	m.note("one more", now).runs = 1
	if len(m.entries) != maxMemories || m.order.Len() != maxMemories {
		t.Errorf("%d entries in a list of %d, want %d", len(m.entries), m.order.Len(), maxMemories)
	}
	if n := m.recall("0", now).runs; n != 2 {
		t.Errorf("%d runs are known of the message that was noted again, want 2", n)
	}
	if n := m.recall("1", now).runs; n != 0 {
		t.Errorf("%d runs are known of the message that was noted the longest ago, want it forgotten", n)
	}
}

// TestMemoryEnds: what was noted counts for as long as SQS may hide a message and a bit
// more, from when it was noted last.
func TestMemoryEnds(t *testing.T) {
	var m memory
	now := time.Now()
	m.note("order", now).runs = 1
	now = now.Add(memoryAge)
	if n := m.recall("order", now).runs; n != 1 {
		t.Errorf("%d runs are known after %v, want 1", n, memoryAge)
	}
	m.note("order", now)
	now = now.Add(memoryAge)
	if n := m.recall("order", now).runs; n != 1 {
		t.Errorf("%d runs are known %v after it was noted again, want 1", n, memoryAge)
	}
	if n := m.recall("order", now.Add(1)).runs; n != 0 || len(m.entries) != 0 || m.order.Len() != 0 {
		t.Errorf("%d runs and %d entries are known later, want none", n, len(m.entries))
	}
	m.note("old", now)
	m.note("new", now.Add(memoryAge+1))
	if len(m.entries) != 1 {
		t.Errorf("%d entries, want the old one dropped with the next note", len(m.entries))
	}
}
