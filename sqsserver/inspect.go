package sqsserver

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// QueueInfo is a queue as an operator sees it.
type QueueInfo struct {
	Name    string
	Account string
	Region  string
	ARN     string
	URL     string // as direct calls know it
	FIFO    bool
	Created time.Time
	Tags    map[string]string // not to be changed

	Visible  int
	InFlight int
	Delayed  int
	Polls    int // long polls that wait now
	// Oldest is when the oldest message was sent, in whatever state it is. A message that was
	// dead-lettered keeps the time of its first queue. Zero: the queue is empty.
	Oldest time.Time

	DeadLetter  string // ARN of the dead-letter queue; "": there is none
	MaxReceives int    // maxReceiveCount; 0: there is none
}

// Queues returns all queues, by account, region and name.
func (s *Server) Queues() []QueueInfo {
	s.mu.Lock()
	queues := make([]*queue, 0, len(s.byARN))
	for _, q := range s.byARN {
		queues = append(queues, q)
	}
	s.mu.Unlock()

	infos := make([]QueueInfo, 0, len(queues))
	for _, q := range queues {
		if info, err := s.info(q); err == nil {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b QueueInfo) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	return infos
}

func (s *Server) info(q *queue) (QueueInfo, error) {
	var info QueueInfo
	err := s.underLock(q, func(now time.Time) {
		info = QueueInfo{
			Name: q.name, Account: q.account, Region: q.region, ARN: q.arn, URL: s.direct.queueURL(q.queueName),
			FIFO: q.fifo, Created: q.created, Tags: q.tags,
			DeadLetter: q.attributes.redrive.target, MaxReceives: q.attributes.redrive.maxReceives,
		}
		info.Visible, info.InFlight, info.Delayed = s.engine.Counts(now, q.engine)
		info.Oldest, _ = s.engine.Oldest(now, q.engine)
		for w := q.waiters.first; w != nil; w = w.next {
			info.Polls++
		}
	})
	return info, err
}

// MessageState is the state of a message.
type MessageState string

const (
	// Visible messages can be received, on a FIFO queue in their turn.
	Visible MessageState = "visible"
	// Delayed messages have been sent and cannot be received yet.
	Delayed MessageState = "delayed"
	// InFlight messages have been received and are hidden since.
	InFlight MessageState = "in flight"
)

// MessageInfo is a message as an operator sees it, without receiving it.
type MessageInfo struct {
	ID         string
	Body       string
	Attributes []MessageAttribute // in ascending order of their names; not to be changed
	State      MessageState
	Due        time.Time // when it becomes visible; zero: it is
	// DelayedLater reports that it is delayed by [Server.Hide], not by its sender or its queue.
	DelayedLater bool
	Receives     int
	Sent         time.Time
	// FirstReceived is zero before the first receive.
	FirstReceived time.Time
	Group         string
	Deduplication string // FIFO
	Sequence      uint64 // FIFO
	Source        string // ARN of the queue that dead-lettered it; "": it was not dead-lettered
	Number        uint64 // in the queue; Page.After takes it
}

// Page selects a part of the messages of a queue.
type Page struct {
	After uint64 // Number of the last message of the page before. Default: the beginning
	Limit int    // Default, and if it is negative: no limit
	// Numbers are those of the messages to show, in this order; After and Limit are not used then.
	// Those that have gone are left out. Default: all messages.
	Numbers []uint64
	// WithoutBodies leaves Body empty.
	WithoutBodies bool
}

// messagesPerLook is how many messages an inspection reads under the lock at a
// time.
const messagesPerLook = 64

// maxReserved bounds the room that is made for a page before it is known how long it is.
const maxReserved = 1000

// Messages returns messages of a queue, named by its name, URL or ARN, without
// receiving them. A large page is not a snapshot: the queue may change while the page is collected.
func (s *Server) Messages(queue string, page Page) ([]MessageInfo, error) {
	q := s.find(&s.direct, queue)
	if q == nil {
		return nil, fmt.Errorf("sqsserver: messages of queue %q: %w", queue, errQueueDoesNotExist())
	}
	if page.Numbers != nil {
		return s.messagesNumbered(q, page)
	}
	var infos []MessageInfo
	for after := page.After; ; {
		look := messagesPerLook
		if page.Limit > 0 {
			look = min(look, page.Limit-len(infos))
		}
		var deliveries []engine.Delivery
		err := s.underLock(q, func(now time.Time) { deliveries = s.engine.Messages(now, q.engine, after, look) })
		if err != nil {
			return nil, err
		}
		last := len(deliveries) < look
		if infos == nil && !last {
			infos = make([]MessageInfo, 0, min(max(page.Limit, 0), maxReserved))
		}
		if !last {
			after = deliveries[len(deliveries)-1].Receipt.Number
		}
		if infos, err = s.appendInfos(infos, q, deliveries, page.WithoutBodies); err != nil {
			return nil, err
		}
		if last || len(infos) == page.Limit {
			return infos, nil
		}
	}
}

// Bound returns a number that the Numbers of all messages in a queue, named by its name, URL or ARN, are below.
// A caller who reads pages until that number has seen every message that was in the queue, however many come
// meanwhile. A message that comes later has a higher number, unless it takes the place of one that has gone.
func (s *Server) Bound(queue string) (bound uint64, err error) {
	q := s.find(&s.direct, queue)
	if q == nil {
		return 0, fmt.Errorf("sqsserver: messages of queue %q: %w", queue, errQueueDoesNotExist())
	}
	err = s.underLock(q, func(time.Time) { bound = s.engine.Bound(q.engine) })
	return bound, err
}

// messagesNumbered is Messages of those with the numbers.
func (s *Server) messagesNumbered(q *queue, page Page) (infos []MessageInfo, err error) {
	for numbers := range slices.Chunk(page.Numbers, messagesPerLook) {
		deliveries, err := s.appendNumbered(nil, q, numbers)
		if err == nil {
			infos, err = s.appendInfos(infos, q, deliveries, page.WithoutBodies)
		}
		if err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// appendNumbered appends the messages with the numbers, without those that have gone, and without contents.
func (s *Server) appendNumbered(deliveries []engine.Delivery, q *queue, numbers []uint64) ([]engine.Delivery, error) {
	err := s.underLock(q, func(now time.Time) {
		for _, number := range numbers {
			if d, found := s.engine.Shown(now, q.engine, engine.Receipt{Number: number}); found {
				deliveries = append(deliveries, d)
			}
		}
	})
	return deliveries, err
}

// appendInfos appends what operators see of deliveries. What it reads from the journal does not drive
// from the cache what consumers will read.
func (s *Server) appendInfos(infos []MessageInfo, q *queue, deliveries []engine.Delivery, withoutBodies bool) ([]MessageInfo, error) {
	deliveries, err := s.loadBodies(q, deliveries, false)
	if err != nil {
		return nil, err
	}
	for i := range deliveries {
		infos = append(infos, messageInfo(&deliveries[i]))
		if !withoutBodies {
			infos[len(infos)-1].Body = deliveries[i].Payload.(*content).body.plain()
		}
	}
	return infos, nil
}

// Message returns a message of a queue, named by its name, URL or ARN, without receiving it.
func (s *Server) Message(queue, messageID string) (MessageInfo, error) {
	q := s.find(&s.direct, queue)
	if q == nil {
		return MessageInfo{}, fmt.Errorf("sqsserver: message %q of queue %q: %w", messageID, queue, errQueueDoesNotExist())
	}
	id, err := parseUUID(messageID)
	if err != nil {
		return MessageInfo{}, fmt.Errorf("sqsserver: message %q of queue %q: %w", messageID, queue, err)
	}
	var found []engine.Delivery
	var infos []MessageInfo
	err = s.underLock(q, func(now time.Time) {
		if receipt, ok := s.engine.Find(q.engine, id); ok {
			if d, ok := s.engine.Shown(now, q.engine, receipt); ok {
				found = []engine.Delivery{d}
			}
		}
	})
	if err == nil {
		infos, err = s.appendInfos(nil, q, found, false)
	}
	switch {
	case err != nil:
		return MessageInfo{}, err
	case len(infos) == 0:
		return MessageInfo{}, fmt.Errorf("sqsserver: message %q of queue %q: %w", messageID, queue, errNoMessage)
	}
	return infos[0], nil
}

// messageInfo is what operators see of a message, without its body.
func messageInfo(d *engine.Delivery) MessageInfo {
	c := d.Payload.(*content)
	state := Visible
	switch {
	case d.InFlight:
		state = InFlight
	case !d.VisibleAt.IsZero():
		state = Delayed
	}
	return MessageInfo{
		ID: UUID(d.ID).String(), Attributes: c.attributes,
		State: state, Due: d.VisibleAt, DelayedLater: d.DelayedLater(), Receives: d.Receives, Sent: d.SentAt, FirstReceived: d.FirstReceived,
		Group: d.Group, Deduplication: d.Dedup, Sequence: publicSequence(d.Sequence), Source: d.Source, Number: d.Receipt.Number,
	}
}

// WaitEmpty waits until a queue, named by its name, URL or ARN, has no message,
// not even a delayed one or one in flight. It returns the context's error if that
// ends first, and an error if the queue does not exist or is deleted, or the server has stopped.
func (s *Server) WaitEmpty(ctx context.Context, queue string) error {
	q := s.find(&s.direct, queue)
	if q == nil {
		return fmt.Errorf("sqsserver: wait for queue %q: %w", queue, errQueueDoesNotExist())
	}
	for {
		emptied := make(chan struct{})
		isEmpty := false
		err := s.underLock(q, func(now time.Time) {
			if isEmpty = s.isEmpty(now, q); isEmpty {
				return
			}
			if len(q.emptied) == 0 {
				s.awaited = append(s.awaited, q)
			}
			q.emptied = append(q.emptied, emptied)
		})
		switch {
		case err != nil:
			return fmt.Errorf("sqsserver: wait for queue %q: %w", queue, err)
		case isEmpty:
			return nil
		}

		select {
		case <-emptied:
		case <-ctx.Done():
			return s.stopWaiting(ctx, q, emptied)
		}
	}
}

// stopWaiting checks a last time whether the queue is empty: messages may have expired since
// the last request.
func (s *Server) stopWaiting(ctx context.Context, q *queue, emptied chan struct{}) error {
	s.mu.Lock()
	defer s.unlockOrStop()
	q.emptied = slices.DeleteFunc(q.emptied, func(c chan struct{}) bool { return c == emptied })
	if len(q.emptied) == 0 {
		s.awaited = slices.DeleteFunc(s.awaited, func(other *queue) bool { return other == q })
	}
	if !q.dropped && s.isEmpty(s.clock.now(), q) {
		return nil
	}
	return ctx.Err()
}

func (s *Server) isEmpty(now time.Time, q *queue) bool {
	visible, inFlight, delayed := s.engine.Counts(now, q.engine)
	return visible+inFlight+delayed == 0
}

// announceEmpty wakes the callers of WaitEmpty whose queue is empty, and all of them if the server has
// stopped. It is called before the lock is released.
func (s *Server) announceEmpty() {
	stopped := s.refusal() != nil
	s.awaited = slices.DeleteFunc(s.awaited, func(q *queue) bool {
		if !stopped && !q.dropped && !s.isEmpty(s.clock.now(), q) {
			return false
		}
		for _, emptied := range q.emptied {
			close(emptied)
		}
		q.emptied = nil
		return true
	})
}

// Delete deletes a message, in whatever state it is.
func (s *Server) Delete(queue, messageID string) error {
	return s.onMessage("delete", queue, messageID, func(now time.Time, q *engine.Queue, r engine.Receipt) error {
		s.engine.Remove(now, q, r)
		return nil
	})
}

// DeadLetter moves a message to the dead-letter queue, in whatever state it is.
func (s *Server) DeadLetter(queue, messageID string) error {
	return s.onMessage("dead-letter", queue, messageID, func(now time.Time, q *engine.Queue, r engine.Receipt) error {
		if !s.engine.DeadLetter(now, q, r) {
			return fmt.Errorf("the queue has no dead-letter queue; give it a RedrivePolicy")
		}
		return nil
	})
}

var errNoMessage = errors.New("the queue has no such message; it may have been deleted, have expired, or have been dead-lettered")

// onMessage does something to a message for an operator.
func (s *Server) onMessage(what, queue, messageID string, do func(time.Time, *engine.Queue, engine.Receipt) error) error {
	q := s.find(&s.direct, queue)
	if q == nil {
		return fmt.Errorf("sqsserver: %s message %q of queue %q: %w", what, messageID, queue, errQueueDoesNotExist())
	}
	id, err := parseUUID(messageID)
	if err != nil {
		return fmt.Errorf("sqsserver: %s message %q of queue %q: %w", what, messageID, queue, err)
	}
	var synced *commitGroup
	var refused error
	err = s.underLock(q, func(now time.Time) {
		if receipt, found := s.engine.Find(q.engine, id); found {
			refused = do(now, q.engine, receipt)
		} else {
			refused = errNoMessage
		}
		synced = s.pendingCommit()
	})
	if err != nil {
		return err
	}
	if err = refused; err == nil {
		err = synced.wait(context.Background())
	}
	if err != nil {
		return fmt.Errorf("sqsserver: %s message %q of queue %q: %w", what, messageID, queue, err)
	}
	return nil
}

func parseUUID(text string) (id engine.ID, err error) {
	digits := strings.ReplaceAll(text, "-", "")
	if n, err := hex.Decode(id[:], []byte(digits[:min(len(digits), 2*len(id))])); err != nil || n != len(id) || UUID(id).String() != strings.ToLower(text) {
		return id, fmt.Errorf("the id is not a UUID as ReceiveMessage and Messages return it")
	}
	return id, nil
}

// find returns the queue with a name, URL or ARN, or nil. Only an ARN names a
// region, only an ARN or a URL an account.
func (s *Server) find(from *caller, queue string) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.byARN[queue]; q != nil {
		return q
	}
	return s.queues[from.queueName(queue)]
}
