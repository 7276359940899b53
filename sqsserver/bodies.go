package sqsserver

import (
	"errors"
	"fmt"
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
	group       uint64 // that brings it to the journal
	older, next *hotBody
}

// hotBodyOverhead is about what an entry takes beside the texts.
const hotBodyOverhead = 400

// add takes a content that the group brings to the journal; 0: it has it.
func (b *bodyCache) add(origin uint64, c *content, group uint64) {
	entry := &hotBody{content: c, origin: origin, size: c.size() + hotBodyOverhead, group: group}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil {
		b.entries = make(map[uint64]*hotBody)
	}
	if b.entries[origin] != nil {
		return // two read it at once
	}
	b.entries[origin] = entry
	b.size += entry.size
	b.append(entry)
	b.trim()
}

// get returns the content of a message, or nil if it is not here.
func (b *bodyCache) get(origin uint64) *content {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.entries[origin]
	if entry == nil {
		return nil
	}
	if entry != b.newest {
		b.unlink(entry)
		b.append(entry)
	}
	return entry.content
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
	loaded := deliveries[:0]
	for i := range deliveries {
		d := &deliveries[i]
		c, err := s.keeper.content(d.Origin)
		switch {
		case err == nil:
			d.Payload = c
			loaded = append(loaded, *d)
		case errors.Is(err, errJournalClosed):
			return nil, errServiceUnavailable()
		case !errors.Is(err, ErrNotInJournal) || s.has(q, d.Receipt):
			return nil, s.keeper.cannotRead(q, d, err)
		}
	}
	return loaded, nil
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

var errJournalClosed = errors.New("the journal is closed")

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

// recordBuffers hold records that are being read.
var recordBuffers = sync.Pool{New: func() any { return new([]byte) }}

// content returns the content of the message with the origin.
func (k *keeper) content(origin uint64) (*content, error) {
	if c := k.bodies.get(origin); c != nil {
		return c, nil
	}
	if !k.reading.enter() {
		return nil, errJournalClosed
	}
	defer k.reading.leave()
	var key [bodyKeySize]byte
	buffer := recordBuffers.Get().(*[]byte)
	defer recordBuffers.Put(buffer)
	record, err := k.journal.Get((*buffer)[:0], appendBodyKey(key[:0], origin))
	if err != nil {
		return nil, err
	}
	if cap(record) <= maxPooledBuffer {
		*buffer = record
	}
	c, err := decodeContent(record)
	if err != nil {
		return nil, err
	}
	k.bodies.add(origin, c, 0)
	return c, nil
}

// Err returns why the server has stopped: an error of its journal, after which it
// refuses every request, for it could not keep what it acknowledged. What it has
// acknowledged before is on disk. A server without a journal stops only when a
// defect of its own has broken off an operation on the queues. It is nil while the
// server works, and after Close.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeper == nil {
		return s.broken
	}
	return s.keeper.err
}

// Failed returns a channel that is closed when the journal fails; Err then says
// why, and nothing else does but the replies to requests: a program should watch it,
// say it, and end. On a server without a journal it is nil.
func (s *Server) Failed() <-chan struct{} {
	if s.keeper == nil {
		return nil
	}
	return s.keeper.failed
}

// refusal says why the server takes no request, if it does not. The lock is held.
func (s *Server) refusal() error {
	switch {
	case s.closed:
		return errServiceUnavailable()
	case s.keeper != nil && s.keeper.err != nil:
		return errStorage(s.keeper.err)
	case s.broken != nil:
		return errBroken(s.broken)
	}
	return nil
}

// checkSpace refuses to take more while the journal's disk is almost full.
func (s *Server) checkSpace() error {
	if k := s.keeper; k != nil && k.watcher != nil && k.watcher.LowOnSpace() {
		return errLowOnSpace()
	}
	return nil
}

func instantOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(instant int64) time.Time {
	if instant == 0 {
		return time.Time{}
	}
	return time.Unix(0, instant)
}
