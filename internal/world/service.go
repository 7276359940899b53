package world

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Action is a kind of request.
type Action string

// The actions of a [Service].
const (
	Send             Action = "SendMessageBatch"
	Receive          Action = "ReceiveMessage"
	Delete           Action = "DeleteMessageBatch"
	ChangeVisibility Action = "ChangeMessageVisibilityBatch"
)

// ErrRefused is the answer to an entry of a batch that is not carried out.
var ErrRefused = errors.New("world: the entry was refused")

// Service is SQS: queues of internal/engine with batches, long polls and faults of
// entries. Its own clock is the loop's, or runs ahead of it: see [Service.SetClock].
type Service struct {
	loop   *Loop
	engine *engine.Engine
	queues map[string]*Queue
	ahead  time.Duration
	woken  []*engine.Queue
	ids    uint64
}

// Queue is a queue of a [Service].
type Queue struct {
	service *Service
	engine  *engine.Queue
	pollers []*poll // which wait, in the order in which they came
	looks   int64   // when the next look at what becomes visible is due, in the loop's time; 0: none
}

type poll struct {
	count      int
	visibility time.Duration
	answer     func([]engine.Delivery, error)
}

// NewService returns a service without queues.
func (l *Loop) NewService() *Service {
	return &Service{loop: l, engine: engine.New(), queues: make(map[string]*Queue)}
}

// Now is the service's time.
func (s *Service) Now() time.Time { return s.loop.Now().Add(s.ahead) }

// SetClock moves the service's clock on: the engine's time does not go back.
func (s *Service) SetClock(d time.Duration) {
	s.loop.Note("SQS", "sets its clock by", int64(d))
	s.ahead += max(d, 0)
	for _, name := range s.names() {
		s.queues[name].serve()
	}
	s.stir()
}

// names are those of the queues, in an order that is the same in every run.
func (s *Service) names() []string {
	var names []string
	for name := range s.queues {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Create adds a queue under a name that is new.
func (s *Service) Create(name string, settings engine.Settings) *Queue {
	q := &Queue{service: s, engine: s.engine.Create(s.Now(), name, settings)}
	s.queues[name] = q
	return q
}

// Name is the queue's name.
func (q *Queue) Name() string { return q.engine.Key() }

// Settings are the queue's.
func (q *Queue) Settings() engine.Settings { return q.engine.Settings() }

// Counts are the messages that are visible, in flight and delayed.
func (q *Queue) Counts() (visible, inFlight, delayed int) {
	return q.service.engine.Counts(q.service.Now(), q.engine)
}

// Messages are those in the queue, without receiving them.
func (q *Queue) Messages() []engine.Delivery {
	var all []engine.Delivery
	for after := uint64(0); ; {
		page := q.service.engine.Messages(q.service.Now(), q.engine, after, 1000)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Receipt.Number
	}
}

// Put sends a message without a network, and gives it an id if it has none.
func (q *Queue) Put(m engine.Message) engine.Sent {
	s := q.service
	if m.ID == (engine.ID{}) {
		s.ids++
		binary.BigEndian.PutUint64(m.ID[8:], s.ids)
	}
	sent := s.engine.Send(s.Now(), q.engine, m)
	s.stir()
	return sent
}

// Redrive moves up to limit messages to another queue, or where they came from if to is
// nil, as SQS's own task does, and returns how many it has moved.
func (q *Queue) Redrive(to *Queue, limit int) (moved int, err error) {
	s := q.service
	var target *engine.Queue
	if to != nil {
		target = to.engine
	}
	for moved < limit {
		s.ids++
		var id engine.ID
		binary.BigEndian.PutUint64(id[8:], s.ids)
		ok, err := s.engine.Redrive(s.Now(), q.engine, target, id)
		if err != nil || !ok {
			s.stir()
			return moved, err
		}
		moved++
	}
	s.stir()
	return moved, nil
}

// Entry is one of a batch: what is asked for, then what has become of it.
type Entry struct {
	Message    engine.Message // to be sent
	Receipt    engine.Receipt // to be deleted or to be hidden
	Visibility time.Duration  // for how long
	Sent       engine.Sent
	Err        error
}

// Send sends the entries over the link. got is called with their results, or with an
// error if nothing is known of them.
func (q *Queue) Send(k *Link, entries []Entry, got func([]Entry, error)) {
	q.batch(k, Send, entries, got, func(e *Entry) error {
		e.Sent = q.Put(e.Message)
		return nil
	})
}

// Delete deletes the entries' messages.
func (q *Queue) Delete(k *Link, entries []Entry, got func([]Entry, error)) {
	q.batch(k, Delete, entries, got, func(e *Entry) error {
		return q.service.engine.Delete(q.service.Now(), q.engine, e.Receipt)
	})
}

// ChangeVisibility hides the entries' messages for as long as each says, or makes them
// visible.
func (q *Queue) ChangeVisibility(k *Link, entries []Entry, got func([]Entry, error)) {
	q.batch(k, ChangeVisibility, entries, got, func(e *Entry) error {
		return q.service.engine.ChangeVisibility(q.service.Now(), q.engine, e.Receipt, e.Visibility)
	})
}

func (q *Queue) batch(k *Link, a Action, entries []Entry, got func([]Entry, error), each func(*Entry) error) {
	k.Do(a, func(answer func()) {
		refuse := k.faults(a).FailEntry
		for i := range entries {
			if k.loop.Chance(refuse) {
				k.loop.Note(k.process.Name, "has an entry refused", int64(i))
				entries[i].Err = ErrRefused
			} else {
				entries[i].Err = each(&entries[i])
			}
		}
		q.service.stir()
		answer()
	}, func(err error) { got(entries, err) })
}

// Receive receives up to count messages for a visibility timeout (negative: the
// queue's), and waits for up to wait if there is none.
func (q *Queue) Receive(k *Link, count int, visibility, wait time.Duration, got func([]engine.Delivery, error)) {
	s := q.service
	var deliveries []engine.Delivery
	var refused error
	k.Do(Receive, func(answer func()) {
		p := &poll{count: count, visibility: visibility, answer: func(d []engine.Delivery, err error) {
			deliveries, refused = d, err
			answer()
		}}
		q.pollers = append(q.pollers, p)
		q.serve()
		s.stir()
		if i := slices.Index(q.pollers, p); i >= 0 && wait <= 0 {
			q.giveUp(p)
		} else if i >= 0 {
			k.loop.After(wait, "SQS", func() { q.giveUp(p) })
		}
	}, func(err error) {
		if err == nil {
			err = refused
		}
		if err != nil {
			deliveries = nil
		}
		got(deliveries, err)
	})
}

func (q *Queue) giveUp(p *poll) {
	if i := slices.Index(q.pollers, p); i >= 0 {
		q.pollers = slices.Delete(q.pollers, i, i+1)
		p.answer(nil, nil)
	}
}

// stir serves who waits at a queue in which something has become receivable.
func (s *Service) stir() {
	for s.woken = s.engine.Woken(s.woken[:0]); len(s.woken) > 0; s.woken = s.engine.Woken(s.woken[:0]) {
		for _, woken := range s.woken {
			s.queues[woken.Key()].serve()
		}
	}
}

// serve answers the polls for which there is something, and looks again when something
// becomes visible.
func (q *Queue) serve() {
	s := q.service
	for len(q.pollers) > 0 {
		p := q.pollers[0]
		got, err := s.engine.Receive(s.Now(), q.engine, p.count, p.visibility, nil)
		if err == nil && len(got) == 0 {
			break
		}
		q.pollers = slices.Delete(q.pollers, 0, 1)
		p.answer(got, err)
	}
	if len(q.pollers) == 0 {
		return
	}
	next, ok := s.engine.Next(q.engine)
	if !ok {
		return
	}
	due := s.loop.now + max(int64(next.Sub(s.Now())), 0)
	if q.looks > s.loop.now && q.looks <= due {
		return
	}
	q.looks = due
	s.loop.After(time.Duration(due-s.loop.now), "SQS", func() {
		if q.looks == due {
			q.looks = 0
		}
		q.serve()
		s.stir()
	})
}
