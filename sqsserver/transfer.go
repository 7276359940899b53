package sqsserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Shown names a message as [Server.Messages] has shown it, by its Number and Receives.
type Shown struct {
	Number   uint64
	Receives int
}

// Transfer is a message that an operator moves to another queue.
type Transfer struct {
	Shown
	// To is the queue, by name, URL or ARN.
	To string
	// Without are names of attributes that are left out.
	Without []string
}

// ErrTaken is why a message was not transferred or deleted: it is not as it was shown.
var ErrTaken = errors.New("sqsserver: somebody has received the message or deleted it, or it has expired; or, on a FIFO queue, somebody has one before it in its group")

// ErrBehind is why a message of a FIFO queue was not transferred: one before it in its group, and in the
// batch, was not either, and would have been overtaken.
var ErrBehind = errors.New("sqsserver: a message before it in its group was not transferred")

// Transfer moves visible messages from a queue to others, in the order given, without receiving
// them. Each arrives as a new message: visible, sent now, never received, under a new id, with its
// body, group and attributes. No FIFO queue takes it for a duplicate.
//
// A message that was received since it was shown stays, and so does one that its queue does not take:
// results has the reason, or nil, for each. Each message is in exactly one of the queues at any time,
// also after a crash, and those without a reason are in the journal when Transfer returns. An error
// means that it is not known which were moved.
func (s *Server) Transfer(queue string, batch []Transfer) (results []error, err error) {
	defer func() { err = transferError("transfer from", queue, err) }()
	q := s.find(&s.direct, queue)
	if q == nil {
		return nil, errQueueDoesNotExist()
	}
	if err := s.checkSpace(); err != nil {
		return nil, err
	}
	results = make([]error, len(batch))
	prepared, err := s.prepare(q, batch, results)
	if err != nil {
		return nil, err
	}
	blocked := make(map[string]bool) // FIFO groups
	err = s.inHolds(q, len(batch), func(now time.Time, i int) {
		shown, found := s.engine.Shown(now, q.engine, prepared[i].receipt)
		switch {
		case !found:
			results[i] = cmp.Or(results[i], ErrTaken)
			return
		case q.fifo && blocked[shown.Group]:
			results[i] = ErrBehind
		case results[i] == nil:
			results[i] = s.transfer(now, q, &prepared[i], &shown)
		}
		if results[i] != nil && q.fifo {
			blocked[shown.Group] = true
		}
	})
	return results, err
}

// DeleteShown deletes visible messages, unless they were received since they were shown. results is as
// that of [Server.Transfer].
func (s *Server) DeleteShown(queue string, batch []Shown) (results []error, err error) {
	defer func() { err = transferError("delete from", queue, err) }()
	q := s.find(&s.direct, queue)
	if q == nil {
		return nil, errQueueDoesNotExist()
	}
	results = make([]error, len(batch))
	err = s.inHolds(q, len(batch), func(now time.Time, i int) {
		if !s.engine.RemoveIdle(now, q.engine, batch[i].receipt()) {
			results[i] = ErrTaken
		}
	})
	return results, err
}

func transferError(what, queue string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqsserver: %s queue %q: %w", what, queue, err)
}

// inHolds calls do for n messages of a queue under the lock, a few in each hold, and waits until
// all is in the journal.
func (s *Server) inHolds(q *queue, n int, do func(now time.Time, i int)) error {
	var last *commitGroup
	for from := 0; from < n; from += messagesPerHold {
		err := s.underLock(q, func(now time.Time) {
			for i := from; i < min(from+messagesPerHold, n); i++ {
				do(now, i)
			}
			if from+messagesPerHold >= n {
				last = s.pendingCommit()
			}
		})
		if err != nil {
			return err
		}
	}
	return last.wait(context.Background())
}

// transfer is a Transfer that has been checked.
type transfer struct {
	receipt engine.Receipt
	to      *queue
	content *content // nil: as it was
}

// prepare checks transfers from q without moving anything; results gets the reasons of those that are
// refused.
func (s *Server) prepare(q *queue, batch []Transfer, results []error) ([]transfer, error) {
	prepared := make([]transfer, len(batch))
	most := make([]int, len(batch)) // bytes
	var read []uint64               // of those whose contents matter
	for i := range batch {
		t := &batch[i]
		p := &prepared[i]
		p.receipt, p.to = t.receipt(), s.find(&s.direct, t.To)
		switch {
		case p.to == nil:
			results[i] = errQueueDoesNotExist()
			continue
		case p.to == q:
			results[i] = errors.New("sqsserver: the message is in this queue already")
			continue
		}
		s.mu.Lock()
		most[i] = int(p.to.attributes.maxSize)
		s.mu.Unlock()
		if len(t.Without) > 0 || most[i] < maxMessageSize {
			read = append(read, t.Number)
		}
	}
	contents, err := s.contentsOf(q, read)
	if err != nil {
		return nil, err
	}
	for i := range batch {
		if c := contents[batch[i].Number]; c != nil && results[i] == nil {
			prepared[i].content, results[i] = c.without(batch[i].Without, most[i])
		}
	}
	return prepared, nil
}

// contentsOf returns the contents of the messages with the numbers, without those that have gone.
func (s *Server) contentsOf(q *queue, numbers []uint64) (map[uint64]*content, error) {
	contents := make(map[uint64]*content, len(numbers))
	for some := range slices.Chunk(numbers, messagesPerLook) {
		deliveries, err := s.appendNumbered(nil, q, some)
		if err == nil {
			deliveries, err = s.loadBodies(q, deliveries, false)
		}
		if err != nil {
			return nil, err
		}
		for i := range deliveries {
			contents[deliveries[i].Receipt.Number] = deliveries[i].Payload.(*content)
		}
	}
	return contents, nil
}

// without returns the content without attributes, nil if it has none of them, and an error if what
// is left is larger than a queue takes.
func (c *content) without(names []string, most int) (*content, error) {
	isLeftOut := func(a MessageAttribute) bool { return slices.Contains(names, a.Name) }
	left := slices.DeleteFunc(slices.Clone(c.attributes), isLeftOut)
	room := most - attributesSize(left)
	if len(c.body.text) > room && len(c.body.plain()) > room { // escapes only lengthen it
		return nil, errMessageTooLong(most, true)
	}
	if len(left) == len(c.attributes) {
		return nil, nil //nolint:nilnil // it stays as it is
	}
	changed := *c
	changed.attributes, changed.attributesMD5 = left, digestAttributes(left)
	return &changed, nil
}

// transfer carries out a transfer of the message old, and returns why it did not. The lock is held.
func (s *Server) transfer(now time.Time, q *queue, t *transfer, old *engine.Delivery) error {
	if t.to.dropped { // since it was checked
		return errQueueDoesNotExist()
	}
	as := engine.Message{ID: s.newMessageID(), Group: old.Group, Payload: old.Payload}
	if t.to.fifo {
		as.Dedup = old.ID.String() // as that of a message which is dead-lettered
		if as.Group == "" {
			as.Group = as.Dedup
		}
	}
	keep := t.content == nil
	if !keep && s.writer == nil {
		as.Payload = t.content
	}
	number, moved := s.engine.Transfer(now, q.engine, t.to.engine, t.receipt, as, keep)
	if !moved {
		return ErrTaken
	}
	if !keep && s.writer != nil {
		s.writer.recordBody(number, t.content)
	}
	return nil
}

func (m Shown) receipt() engine.Receipt {
	return engine.Receipt{Number: m.Number, Generation: uint32(m.Receives)}
}
