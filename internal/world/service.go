package world

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
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

// Why an entry of a batch, or a whole batch, is not carried out.
var (
	ErrRefused      = errors.New("world: the entry was refused")           // trying it again may succeed
	ErrNotTaken     = errors.New("world: the queue does not take this")    // trying it again does not help; the rest of its batch is carried out
	ErrUnacceptable = errors.New("world: the service refuses the request") // because of one of its entries
)

// Service is SQS: queues of internal/engine with batches, long polls and faults of
// entries. Its own clock is the loop's, or runs ahead of it: see [Service.SetClock].
type Service struct {
	// Down is whether the service answers each request with an error, as in the outage of a
	// region. Long polls that wait go on.
	Down bool

	loop   *Loop
	engine *engine.Engine
	queues map[string]*Queue
	ahead  time.Duration
	woken  []*engine.Queue
	ids    uint64
}

// Queue is a queue of a [Service].
type Queue struct {
	// Takes returns why the queue does not take a message: [ErrNotTaken] or [ErrUnacceptable].
	// Nil: it takes every message.
	Takes func(engine.Message) error
	// Largest is the value of MaximumMessageSize, which Takes enforces; zero: not known.
	Largest int

	service *Service
	engine  *engine.Queue
	pollers []*poll // long polls that wait, oldest first
	looks   int64   // when the polls are served next, in the loop's time; a past time: no event
}

// poll is a receive under way.
type poll struct {
	request
	queue            *Queue
	count            int
	visibility, wait time.Duration
	taken            []engine.Delivery // what the answer brings
	refused          error
	taker            func([]engine.Delivery, error)
}

// NewService returns a service without queues.
func (l *Loop) NewService() *Service {
	return &Service{loop: l, engine: engine.New(), queues: make(map[string]*Queue)}
}

// Now returns the service's time.
func (s *Service) Now() time.Time { return s.loop.Now().Add(s.ahead) }

// SetClock moves the service's clock forwards by d; it cannot go back, like the engine's time.
func (s *Service) SetClock(d time.Duration) {
	s.loop.Note("SQS", "sets its clock by", int64(d))
	s.ahead += max(d, 0)
	for _, name := range s.names() {
		s.queues[name].serve()
	}
	s.serveWoken()
}

// names returns the names of the queues, in an order that is the same in every run.
func (s *Service) names() []string {
	var names []string
	for name := range s.queues {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Create adds a queue. The name must be new.
func (s *Service) Create(name string, settings engine.Settings) *Queue {
	q := &Queue{service: s, engine: s.engine.Create(s.Now(), name, settings)}
	s.queues[name] = q
	return q
}

// Queue returns the queue with the name; nil if there is none.
func (s *Service) Queue(name string) *Queue { return s.queues[name] }

// Name returns the queue's name.
func (q *Queue) Name() string { return q.engine.Key() }

// Settings returns the queue's settings.
func (q *Queue) Settings() engine.Settings { return q.engine.Settings() }

// Counts returns the numbers of visible, in-flight and delayed messages.
func (q *Queue) Counts() (visible, inFlight, delayed int) {
	return q.service.engine.Counts(q.service.Now(), q.engine)
}

// All yields the messages of the queue, without receiving them. The queue must not change meanwhile.
func (q *Queue) All() iter.Seq[engine.Delivery] {
	return q.service.engine.All(q.service.Now(), q.engine)
}

// Messages returns what All yields.
func (q *Queue) Messages() []engine.Delivery { return slices.Collect(q.All()) }

// Put sends a message without a network, and gives it an id if it has none.
func (q *Queue) Put(m engine.Message) engine.Sent {
	s := q.service
	if m.ID == (engine.ID{}) {
		s.ids++
		binary.BigEndian.PutUint64(m.ID[8:], s.ids)
	}
	sent := s.engine.Send(s.Now(), q.engine, m)
	q.look() // it may be delayed
	s.serveWoken()
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
			s.serveWoken()
			return moved, err
		}
		moved++
	}
	s.serveWoken()
	return moved, nil
}

// Entry is an entry of a batch: the request, then also its result.
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
		if q.Takes != nil {
			if err := q.Takes(e.Message); err != nil {
				return err
			}
		}
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

// ChangeVisibility hides each entry's message for its Visibility; 0 makes it visible.
func (q *Queue) ChangeVisibility(k *Link, entries []Entry, got func([]Entry, error)) {
	q.batch(k, ChangeVisibility, entries, got, func(e *Entry) error {
		defer q.look() // the message may become visible sooner than before
		return q.service.engine.ChangeVisibility(q.service.Now(), q.engine, e.Receipt, e.Visibility)
	})
}

func (q *Queue) batch(k *Link, a Action, entries []Entry, got func([]Entry, error), each func(*Entry) error) {
	b := &batch{queue: q, action: a, entries: entries, taker: got, each: each}
	b.send(k, a, b)
}

// batch is a request with entries under way.
type batch struct {
	request
	queue   *Queue
	action  Action
	entries []Entry
	each    func(*Entry) error
	refused error
	taker   func([]Entry, error)
}

func (b *batch) act() (latest time.Duration) {
	defer b.answer()
	if b.refused = b.queue.service.fails(b.Link); b.refused != nil {
		return 0
	}
	if b.refused = b.queue.refuses(b.action, b.entries); b.refused != nil {
		b.loop.Note(b.process.Name, "has a request refused for what is in it", int64(len(b.entries)))
		return 0
	}
	refuse := b.Link.faults(b.action).FailEntry
	for i := range b.entries {
		if e := &b.entries[i]; b.loop.Chance(refuse) {
			b.loop.Note(b.process.Name, "has an entry refused", int64(i))
			e.Err = ErrRefused
		} else {
			e.Err = b.each(e)
		}
	}
	b.queue.service.serveWoken()
	return 0
}

func (b *batch) got(err error) { b.taker(b.entries, cmp.Or(err, b.refused)) }

// fails returns the error of a request over k while the service is down.
func (s *Service) fails(k *Link) error {
	if !s.Down {
		return nil
	}
	k.loop.Note(k.process.Name, "finds the service down", 0)
	return ErrServer
}

// refuses returns why a batch is refused as a whole.
func (q *Queue) refuses(a Action, entries []Entry) error {
	if a != Send || q.Takes == nil {
		return nil
	}
	for i := range entries {
		if err := q.Takes(entries[i].Message); errors.Is(err, ErrUnacceptable) {
			return err
		}
	}
	return nil
}

// Receive receives up to count messages for a visibility timeout (negative: the
// queue's), and waits for up to wait if there is none.
func (q *Queue) Receive(k *Link, count int, visibility, wait time.Duration, got func([]engine.Delivery, error)) {
	p := &poll{queue: q, count: count, visibility: visibility, wait: wait, taker: got}
	p.send(k, Receive, p)
}

func (p *poll) act() (latest time.Duration) {
	q := p.queue
	if p.refused = q.service.fails(p.Link); p.refused != nil {
		p.answer()
		return 0
	}
	q.pollers = append(q.pollers, p)
	q.serve()
	q.service.serveWoken()
	switch {
	case p.answered:
		return 0
	case p.wait <= 0:
		p.giveUp()
		return 0
	}
	p.loop.after(p.wait, nil, "SQS", (*waited)(p))
	return p.wait
}

// waited is what happens to a poll at the end of its wait.
type waited poll

func (w *waited) happen() { (*poll)(w).giveUp() }

// giveUp answers the poll without messages, if it still waits for some.
func (p *poll) giveUp() {
	q := p.queue
	if i := slices.Index(q.pollers, p); i >= 0 {
		q.pollers = slices.Delete(q.pollers, i, i+1)
		p.answer()
	}
}

func (p *poll) got(err error) {
	if err = cmp.Or(err, p.refused); err != nil {
		p.taken = nil
	}
	p.taker(p.taken, err)
}

// serveWoken serves the polls of queues in which a message has become receivable.
func (s *Service) serveWoken() {
	for s.woken = s.engine.Woken(s.woken[:0]); len(s.woken) > 0; s.woken = s.engine.Woken(s.woken[:0]) {
		for _, woken := range s.woken {
			s.queues[woken.Key()].serve()
		}
	}
}

// serve answers the polls for which there are messages, and has the others served when a message
// becomes visible.
func (q *Queue) serve() {
	s := q.service
	for len(q.pollers) > 0 {
		p := q.pollers[0]
		p.taken, p.refused = s.engine.Receive(s.Now(), q.engine, p.count, p.visibility, nil)
		if p.refused == nil && len(p.taken) == 0 {
			break
		}
		q.pollers = slices.Delete(q.pollers, 0, 1)
		p.answer()
	}
	q.look()
}

// look has the waiting polls served when the next hidden message becomes visible.
func (q *Queue) look() {
	s := q.service
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
		q.serve()
		s.serveWoken()
	})
}
