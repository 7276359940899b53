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

// size returns about how much memory the texts of a content take.
func (c *content) size() int {
	n := len(c.body.text) + len(c.traceHeader)
	for i := range c.attributes {
		a := &c.attributes[i]
		n += len(a.Name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue) + 100
	}
	return n
}

// loadBodies sets the contents of deliveries, without holding the lock. It leaves out messages that
// were deleted meanwhile. An error means that the journal has failed, or that the server has been
// closed. With cache, contents that were read from the journal are kept for receives to come.
func (s *Server) loadBodies(q *queue, deliveries []engine.Delivery, cache bool) ([]engine.Delivery, error) {
	if s.writer == nil {
		return deliveries, nil
	}
	cold := s.writer.bodies.Fill(deliveries)
	if len(cold) == 0 {
		return deliveries, nil
	}
	if err := s.readBodies(q, cold, cache); err != nil {
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

// readBodies reads the contents of deliveries from the journal, all in one call, since most
// are next to each other there. Messages that were deleted meanwhile get none.
func (s *Server) readBodies(q *queue, cold []*engine.Delivery, cache bool) error {
	w := s.writer
	if !w.reading.enter() {
		return errServiceUnavailable()
	}
	defer w.reading.leave()
	slices.SortFunc(cold, func(a, b *engine.Delivery) int { return cmp.Compare(a.SendNumber, b.SendNumber) })
	next := 0
	for record, err := range w.journal.Get(bodyKeys(cold)) {
		var c *content
		if err == nil {
			c, err = decodeContent(record)
		}
		d := cold[next]
		next++
		switch {
		case err == nil:
			d.Payload = c
			if cache {
				w.bodies.Add(d.SendNumber, c, c.size(), 0)
			}
		case !errors.Is(err, ErrNotInJournal) || s.stillHas(q, d.Receipt):
			return w.cannotRead(q, d, err)
		}
	}
	return nil
}

// bodyKeys returns the keys of the messages' bodies.
func bodyKeys(messages []*engine.Delivery) [][]byte {
	keys := make([][]byte, 0, len(messages))
	all := make([]byte, 0, len(messages)*bodyKeySize)
	for _, d := range messages {
		start := len(all)
		all = appendBodyKey(all, d.SendNumber)
		keys = append(keys, all[start:])
	}
	return keys
}

// stillHas reports whether a message is still in the queue.
func (s *Server) stillHas(q *queue, r engine.Receipt) (has bool) {
	_ = s.underLock(q, func(now time.Time) { has = s.engine.Has(now, q.engine, r) }) // an error means that the queue has been deleted
	return has
}

// cannotRead stops the server because it cannot read a message that it has acknowledged.
func (w *journalWriter) cannotRead(q *queue, d *engine.Delivery, err error) error {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.fail(fmt.Errorf("read the body of message %s in queue %s: %w", d.ID, q.name, err))
	return errStorage(w.err)
}

// readers counts the receives that read bodies. After close it admits none; close waits
// until all have left.
type readers struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *readers) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *readers) leave() { g.inside.Done() }

func (g *readers) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
