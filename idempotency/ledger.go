package idempotency

import (
	"container/list"
	"sync"
)

// A ledger's bounds: the oldest entry goes first.
const (
	maxUnrecorded      = 10_000
	maxUnrecordedBytes = 64 << 20 // of keys and results
)

// ledger is the work that this process has done and could not record. It is empty unless the store
// has failed.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of Completion, the oldest first
	bytes   int
}

func (l *ledger) put(c Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make(map[string]*list.Element)
	}
	l.remove(c.Key)
	l.entries[c.Key] = l.order.PushBack(c)
	l.bytes += len(c.Key) + len(c.Result)
	for len(l.entries) > maxUnrecorded || l.bytes > maxUnrecordedBytes {
		l.remove(l.order.Front().Value.(Completion).Key)
	}
}

func (l *ledger) get(key string) (Completion, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		return Completion{}, false
	}
	return e.Value.(Completion), true
}

func (l *ledger) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
}

// remove drops key if it is there. The caller holds l.mu.
func (l *ledger) remove(key string) {
	e := l.entries[key]
	if e == nil {
		return
	}
	c := l.order.Remove(e).(Completion)
	delete(l.entries, key)
	l.bytes -= len(c.Key) + len(c.Result)
}
