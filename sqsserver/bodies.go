package sqsserver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// bodyCache holds the contents of messages that were sent or received lately, so
// that most receives need not ask the journal. It is bounded in bytes; the
// longest unused go first. What the journal does not have yet is never dropped,
// even if that exceeds the bound.
type bodyCache struct {
	limit int

	mu      sync.Mutex
	size    int
	written uint64 // the journal has the bodies up to this group
	entries map[uint64]*hotBody
	oldest  *hotBody
	newest  *hotBody
}

// hotBody is an entry, in the list from the longest to the latest used.
type hotBody struct {
	content     *content
	origin      uint64
	size        int
	group       uint64 // that brings it to the journal; 0: it is there
	older, next *hotBody
}

// hotBodyOverhead is about what an entry takes beside the texts.
const hotBodyOverhead = 400

// add takes the content of a message that was sent, which the group brings to the
// journal.
func (b *bodyCache) add(origin uint64, c *content, group uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.insert(origin, c, group)
	b.trim()
}

// addRead takes the contents that messages got from the journal.
func (b *bodyCache) addRead(messages []*engine.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range messages {
		if d.Payload != nil {
			b.insert(d.Origin, d.Payload.(*content), 0)
		}
	}
	b.trim()
}

func (b *bodyCache) insert(origin uint64, c *content, group uint64) {
	if b.entries[origin] != nil { // two read it at once
		return
	}
	if b.entries == nil {
		b.entries = make(map[uint64]*hotBody)
	}
	entry := &hotBody{content: c, origin: origin, size: c.size() + hotBodyOverhead, group: group}
	b.entries[origin] = entry
	b.size += entry.size
	b.append(entry)
}

// find gives messages that have none the contents that are here, and returns those
// that are not.
func (b *bodyCache) find(messages []engine.Delivery) (cold []*engine.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range messages {
		d := &messages[i]
		if d.Payload != nil {
			continue
		}
		entry := b.entries[d.Origin]
		if entry == nil {
			cold = append(cold, d)
			continue
		}
		if entry != b.newest {
			b.unlink(entry)
			b.append(entry)
		}
		d.Payload = entry.content
	}
	return cold
}

func (b *bodyCache) remove(origin uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.entries[origin]; entry != nil {
		b.drop(entry)
	}
}

// committed says that the journal has what the groups up to this one brought.
func (b *bodyCache) committed(group uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = group
	b.trim()
}

func (b *bodyCache) trim() {
	for b.size > b.limit && b.oldest != nil && b.oldest.group <= b.written {
		b.drop(b.oldest)
	}
}

func (b *bodyCache) drop(entry *hotBody) {
	b.unlink(entry)
	delete(b.entries, entry.origin)
	b.size -= entry.size
}

func (b *bodyCache) append(entry *hotBody) {
	entry.older, entry.next = b.newest, nil
	if b.newest == nil {
		b.oldest = entry
	} else {
		b.newest.next = entry
	}
	b.newest = entry
}

func (b *bodyCache) unlink(entry *hotBody) {
	if entry.older == nil {
		b.oldest = entry.next
	} else {
		entry.older.next = entry.next
	}
	if entry.next == nil {
		b.newest = entry.older
	} else {
		entry.next.older = entry.older
	}
}

// size is the memory that the texts of a content take, about.
func (c *content) size() int {
	n := len(c.body.text) + len(c.traceHeader)
	for i := range c.attributes {
		a := &c.attributes[i]
		n += len(a.Name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue) + 100
	}
	return n
}

// load gives deliveries their contents, without the lock. It leaves out the
// messages whose content has gone because they were deleted meanwhile. An error
// means that the journal has failed, or that the server has been closed.
func (s *Server) load(q *queue, deliveries []engine.Delivery) ([]engine.Delivery, error) {
	if s.keeper == nil {
		return deliveries, nil
	}
	cold := s.keeper.bodies.find(deliveries)
	if len(cold) == 0 {
		return deliveries, nil
	}
	if err := s.read(q, cold); err != nil {
		return nil, err
	}
	loaded := deliveries[:0]
	for i := range deliveries {
		if deliveries[i].Payload != nil {
			loaded = append(loaded, deliveries[i])
		}
	}
	return loaded, nil
}

// read gives deliveries their contents from the journal, all at once: most are
// next to each other there. Those that were deleted meanwhile get none.
func (s *Server) read(q *queue, cold []*engine.Delivery) error {
	k := s.keeper
	if !k.reading.enter() {
		return errServiceUnavailable()
	}
	defer k.reading.leave()
	slices.SortFunc(cold, func(a, b *engine.Delivery) int { return cmp.Compare(a.Origin, b.Origin) })
	next := 0
	for record, err := range k.journal.Get(bodyKeys(cold)) {
		var c *content
		if err == nil {
			c, err = decodeContent(record)
		}
		d := cold[next]
		next++
		switch {
		case err == nil:
			d.Payload = c
		case !errors.Is(err, ErrNotInJournal) || s.has(q, d.Receipt):
			return k.cannotRead(q, d, err)
		}
	}
	k.bodies.addRead(cold)
	return nil
}

// bodyKeys returns the keys of the messages' bodies.
func bodyKeys(messages []*engine.Delivery) [][]byte {
	keys := make([][]byte, 0, len(messages))
	all := make([]byte, 0, len(messages)*bodyKeySize)
	for _, d := range messages {
		start := len(all)
		all = appendBodyKey(all, d.Origin)
		keys = append(keys, all[start:])
	}
	return keys
}

// has says whether a message is still in the queue.
func (s *Server) has(q *queue, r engine.Receipt) (has bool) {
	_ = s.within(q, func(now time.Time) { has = s.engine.Has(now, q.engine, r) }) // or the queue has gone
	return has
}

// cannotRead stops the server because it cannot read what it has acknowledged.
func (k *keeper) cannotRead(q *queue, d *engine.Delivery, err error) error {
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	k.fail(fmt.Errorf("read the body of message %s in queue %s: %w", d.ID, q.name, err))
	return errStorage(k.err)
}

// gate lets nobody in once it is closed, and closes when nobody is inside.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.inside.Done() }

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
