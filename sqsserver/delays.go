package sqsserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Release makes a message that is in flight or delayed visible now. Its receive
// count stays.
func (s *Server) Release(queue, messageID string) error {
	return s.onMessage("release", queue, messageID, func(now time.Time, q *engine.Queue, r engine.Receipt) error {
		s.engine.Expose(now, q, r)
		return nil
	})
}

// maxHidden is for how long SQS can hide a message.
const maxHidden = 12 * time.Hour

// Hide hides a visible message of a standard queue for a time, as if it had been sent with such a
// delay: more than zero, and at most twelve hours. Its receive count stays.
func (s *Server) Hide(queue, messageID string, d time.Duration) error {
	return s.onMessage("hide", queue, messageID, func(now time.Time, q *engine.Queue, r engine.Receipt) error {
		switch {
		case d <= 0 || d > maxHidden:
			return fmt.Errorf("hiding it for %v is not possible; pass more than 0s and at most 12h", d)
		case q.Settings().FIFO:
			return errors.New("a message of a FIFO queue cannot be hidden: later messages of its group could be received before it")
		case !s.engine.Hide(now, q, r, d):
			return errors.New("it is in flight or delayed already; release it first")
		}
		return nil
	})
}

// EndDelay makes a delayed message visible now. Unlike [Server.Release] it refuses one that is in flight: of that its
// receiver decides.
func (s *Server) EndDelay(queue, messageID string) error {
	return s.onMessage("end the delay of", queue, messageID, func(now time.Time, q *engine.Queue, r engine.Receipt) error {
		if !s.engine.EndDelay(now, q, r) {
			return errors.New("it is not delayed: it is visible, or was received meanwhile")
		}
		return nil
	})
}

// EndDelays makes many delayed messages of a queue visible, named by its name, URL or ARN: those that choose returns
// true for. It returns the ids of those that it has made visible: chosen ones that were received or deleted meanwhile
// are not among them. choose is called once for each delayed message, without its body, in no order; it must not keep
// the MessageInfo, and may call the Server. The lock is held for some messages at a time, so that requests need not
// wait for the end. EndDelays ends early, with the context's error, when that ends.
func (s *Server) EndDelays(ctx context.Context, queue string, choose func(*MessageInfo) bool) (ended []string, err error) {
	q := s.find(&s.direct, queue)
	if q == nil {
		return nil, fmt.Errorf("sqsserver: end delays of queue %q: %w", queue, errQueueDoesNotExist())
	}
	e := delayEnder{server: s, queue: q, choose: choose}
	for next, first := uint64(0), true; err == nil && (first || next != 0); first = false {
		next, err = e.some(ctx, next)
	}
	if len(e.ended) > 0 {
		err = errors.Join(err, e.sync())
	}
	if err != nil {
		err = fmt.Errorf("sqsserver: end delays of queue %q: %w", queue, err)
	}
	return e.ended, err
}

// delayEnder is one call of EndDelays.
type delayEnder struct {
	server *Server
	queue  *queue
	choose func(*MessageInfo) bool
	ended  []string

	hidden     []uint64 // these are used again for the next messages
	deliveries []engine.Delivery
	infos      []MessageInfo
	chosen     []*MessageInfo
}

// some goes on after the number after with some messages, and returns the number to go on after; 0: that is all.
func (e *delayEnder) some(ctx context.Context, after uint64) (next uint64, err error) {
	e.hidden = e.hidden[:0]
	err = e.server.underLock(e.queue, func(now time.Time) {
		next = e.server.engine.Hidden(now, e.queue.engine, after, slotsPerLook, func(number uint64, _ time.Time) {
			e.hidden = append(e.hidden, number)
		})
	})
	for numbers := range slices.Chunk(e.hidden, messagesPerLook) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = e.end(numbers)
		}
	}
	return next, err
}

// end ends the delays of the chosen ones of the messages with the numbers.
func (e *delayEnder) end(numbers []uint64) error {
	deliveries, err := e.server.appendNumbered(e.deliveries[:0], e.queue, numbers)
	if err != nil {
		return err
	}
	e.deliveries = deliveries
	deliveries = slices.DeleteFunc(deliveries, func(d engine.Delivery) bool { return d.VisibleAt.IsZero() || d.InFlight })
	if e.infos, err = e.server.appendInfos(e.infos[:0], e.queue, deliveries, true); err != nil {
		return err
	}
	e.chosen = e.chosen[:0]
	for i := range e.infos {
		if info := &e.infos[i]; e.choose(info) {
			e.chosen = append(e.chosen, info)
		}
	}
	if len(e.chosen) == 0 {
		return nil
	}
	return e.server.underLock(e.queue, func(now time.Time) {
		for _, info := range e.chosen {
			if e.server.engine.EndDelay(now, e.queue.engine, engine.Receipt{Number: info.Number}) {
				e.ended = append(e.ended, info.ID)
			}
		}
	})
}

// sync waits until the changes are on disk.
func (e *delayEnder) sync() error {
	var synced *commitGroup
	err := e.server.underLock(e.queue, func(time.Time) { synced = e.server.pendingCommit() })
	if err != nil {
		return err
	}
	return synced.wait(context.Background())
}
