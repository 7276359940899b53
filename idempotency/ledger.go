package idempotency

import "sync"

// maxUnrecorded bounds a ledger. The oldest entry goes first.
const maxUnrecorded = 10_000

// ledger is what this process has done and could not record. It is empty unless
// the store has failed.
type ledger struct {
	mu      sync.Mutex
	entries map[string]Completion
	order   []string // keys, the oldest first; some may be gone
}

func (l *ledger) put(c Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make(map[string]Completion)
	}
	l.entries[c.Key] = c
	l.order = append(l.order, c.Key)
	for len(l.order) > maxUnrecorded {
		delete(l.entries, l.order[0])
		l.order = l.order[1:]
	}
}

func (l *ledger) get(key string) (Completion, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.entries[key]
	return c, ok
}

func (l *ledger) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
}
