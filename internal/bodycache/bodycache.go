// Package bodycache holds the contents of messages that were sent or received lately, so that most
// receives need not read them from the journal. Except for its lock it is pure.
package bodycache

import (
	"sync"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Cache is a cache bounded in bytes, which drops the least recently used contents. Contents that
// the journal does not have yet are never dropped, even beyond the bound; then no others are kept. The zero
// value keeps only these. A Cache may be used by many goroutines at once.
type Cache struct {
	limit int

	mu        sync.Mutex
	size      int
	committed uint64 // the journal has the contents up to this commit
	entries   map[uint64]*entry
	used      list // from the least to the most recently used
	pending   list // those that the journal does not have yet, by their commits
}

type list struct{ oldest, newest *entry }

type entry struct {
	id           uint64
	content      any
	size         int
	commit       uint64 // that writes it to the journal; 0: it is there
	list         *list  // that has it
	older, newer *entry
}

// overhead is approximately the memory of an entry without its content.
const overhead = 400

// New returns a cache of limit bytes.
func New(limit int) *Cache { return &Cache{limit: limit} }

// Add adds a content of the given size in bytes, unless it is there already. commit is the number,
// rising, of the commit that writes it to the journal, or 0 if it was read from there.
func (c *Cache) Add(id uint64, content any, size int, commit uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[id] != nil { // two receives read it at once
		return
	}
	if c.entries == nil {
		c.entries = make(map[uint64]*entry)
	}
	e := &entry{id: id, content: content, size: size + overhead, commit: commit}
	c.entries[id] = e
	c.size += e.size
	if commit > c.committed {
		c.pending.append(e)
	} else {
		c.used.append(e)
	}
	c.trim()
}

// Fill sets the Payload of the deliveries that have none from the cache, by their SendNumber,
// and returns those that it does not have.
func (c *Cache) Fill(deliveries []engine.Delivery) (missing []*engine.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range deliveries {
		d := &deliveries[i]
		if d.Payload != nil {
			continue
		}
		e := c.entries[d.SendNumber]
		if e == nil {
			missing = append(missing, d)
			continue
		}
		if e.list == &c.used && e != c.used.newest {
			c.used.unlink(e)
			c.used.append(e)
		}
		d.Payload = e.content
	}
	return missing
}

// Remove drops a content, if it is there.
func (c *Cache) Remove(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[id]; e != nil {
		c.drop(e)
	}
}

// Committed tells the cache that the journal has the contents of all commits up to this
// one, so that they may be dropped.
func (c *Cache) Committed(commit uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.committed = commit
	for e := c.pending.oldest; e != nil && e.commit <= commit; e = c.pending.oldest {
		c.pending.unlink(e)
		c.used.append(e)
	}
	c.trim()
}

// trim drops the least recently used contents until the cache is within its limit.
func (c *Cache) trim() {
	for c.size > c.limit && c.used.oldest != nil {
		c.drop(c.used.oldest)
	}
}

func (c *Cache) drop(e *entry) {
	e.list.unlink(e)
	delete(c.entries, e.id)
	c.size -= e.size
}

func (l *list) append(e *entry) {
	e.list, e.older, e.newer = l, l.newest, nil
	if l.newest == nil {
		l.oldest = e
	} else {
		l.newest.newer = e
	}
	l.newest = e
}

func (l *list) unlink(e *entry) {
	if e.older == nil {
		l.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		l.newest = e.older
	} else {
		e.newer.older = e.older
	}
}
