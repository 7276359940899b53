package reprise

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
)

// parcel is one message on its way through a Sender. It is in one of the lists or
// in a request. Guarded by Sender.mu, but for what is fixed when it is made.
type parcel struct {
	message Outgoing
	size    int
	since   time.Time       // when it was handed over
	ctx     context.Context // Submit's; Send watches its own
	tell    func(Sent)      // Submit's
	call    *sendCall       // Send's
	at      int             // its place among call's

	number     uint64
	list       *parcels // nil: in a request, or answered
	inRequest  bool
	next, prev *parcel
	admitted   chan struct{} // closed when a Submit that was blocked goes on
	turnedAway bool          // the sender closed before there was room for it
	lane       *parcels      // FIFO queues: set while it is its group's first
	due        time.Time     // of one in backoff
	tries      int           // requests that it was in
	err        error         // how the last of them failed
	unsure     bool          // one of them may have been carried out
	alone      bool          // a batch with it was refused for what was in it
	abandoned  bool          // its caller has gone while it was in a request
}

// parcels is a list of parcels, linked through them.
type parcels struct {
	first, last *parcel
	count       int
	bytes       int
}

// push appends p.
func (l *parcels) push(p *parcel) { l.insert(p, l.last) }

// insert puts p behind another of the list, or first if that is nil.
func (l *parcels) insert(p, behind *parcel) {
	p.list, p.prev = l, behind
	if behind == nil {
		p.next, l.first = l.first, p
	} else {
		p.next, behind.next = behind.next, p
	}
	if p.next == nil {
		l.last = p
	} else {
		p.next.prev = p
	}
	l.count++
	l.bytes += p.size
}

// remove takes p out.
func (l *parcels) remove(p *parcel) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.list, p.next, p.prev = nil, nil, nil
	l.count--
	l.bytes -= p.size
}

// sendCall is one call of Send. Guarded by Sender.mu until done is closed.
type sendCall struct {
	results []Sent
	left    int
	done    chan struct{} // closed when none is left
}

// answered counts one result that is final.
func (c *sendCall) answered() {
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// fail answers every message that has no error yet with err.
func (c *sendCall) fail(err error) ([]Sent, error) {
	for i := range c.results {
		if c.results[i].Err == nil {
			c.results[i].Err = err
		}
	}
	return c.results, c.err()
}

// err sums up the results.
func (c *sendCall) err() error {
	var first error
	failed := 0
	for i := range c.results {
		if err := c.results[i].Err; err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if failed == 0 || len(c.results) == 1 {
		return first
	}
	return fmt.Errorf("%d of %d messages were not sent, the first: %w", failed, len(c.results), first)
}

// told is an answer that is still to be told.
type told struct {
	number uint64 // of the message
	tell   func(Sent)
	sent   Sent
}

// flush is a caller who waits for every message up to a number.
type flush struct {
	upTo uint64
	left int
	done chan struct{} // closed when none is left
}

// enter takes in a message, or lets it wait outside until there is room. The
// caller holds s.mu.
func (s *Sender) enter(p *parcel) {
	s.handed++
	p.number = s.handed
	if s.outside.first != nil || !s.hasRoom(p) {
		s.outside.push(p)
		return
	}
	s.admit(p)
}

func (s *Sender) hasRoom(p *parcel) bool {
	return (s.cfg.MaxWaiting < 0 || s.inside < s.cfg.MaxWaiting) &&
		(s.cfg.MaxBytes < 0 || s.bytes+p.size <= s.cfg.MaxBytes)
}

// admit gives p its room. The caller holds s.mu.
func (s *Sender) admit(p *parcel) {
	s.inside++
	s.bytes += p.size
	s.crew.retired = false // see leave
	if p.admitted != nil {
		close(p.admitted)
	}
	if !s.queue.fifo {
		s.makeReady(p)
		return
	}
	if lane := s.lanes[p.message.GroupID]; lane != nil {
		lane.push(p)
		return
	}
	p.lane = new(parcels)
	s.lanes[p.message.GroupID] = p.lane
	s.makeReady(p)
}

// makeReady has p sent when it has lingered, or at once if somebody waits for
// that. What has waited already, behind its group or in backoff, lingers no more.
// The caller holds s.mu.
func (s *Sender) makeReady(p *parcel) {
	s.ready.push(p)
	by := p.since
	if p.tries == 0 && !slices.ContainsFunc(s.flushes, func(f *flush) bool { return p.number <= f.upTo }) {
		by = by.Add(s.cfg.Linger)
	}
	if s.flushAt.IsZero() || by.Before(s.flushAt) {
		s.flushAt = by
	}
}

// hurry ends the linger of what has been handed over, and returns the flush that ends
// when all of it is done with. The caller holds s.mu.
func (s *Sender) hurry() *flush {
	f := &flush{upTo: s.handed, left: s.inside + s.outside.count + s.telling, done: make(chan struct{})}
	if f.left == 0 {
		close(f.done)
		return f
	}
	s.flushes = append(s.flushes, f)
	now := time.Now()
	if s.ready.first != nil {
		s.flushAt = now
	}
	s.dispatch(now)
	return f
}

// answer ends p's stay with its result. The caller holds s.mu.
func (s *Sender) answer(p *parcel, sent Sent) {
	s.leave(p)
	if p.tell == nil {
		s.passed(p.number)
	}
	if p.abandoned {
		return
	}
	if s.closing && sent.Err != nil {
		s.unsent = append(s.unsent, Unsent{Message: p.message, Err: sent.Err})
	}
	if p.tell != nil {
		if s.untold == nil {
			s.untold = make([]told, 0, maxBatch)
		}
		s.untold = append(s.untold, told{p.number, p.tell, sent})
		s.telling++
		return
	}
	p.call.results[p.at] = sent
	p.call.answered()
}

// leave takes p off the books: its group goes on, and whoever waits for room is let
// in. The caller holds s.mu.
func (s *Sender) leave(p *parcel) {
	wasInside := p.list != &s.outside
	if p.list != nil {
		p.list.remove(p)
	}
	if wasInside {
		s.inside--
		s.bytes -= p.size
	}
	if p.lane != nil {
		s.nextOfGroup(p)
	}
	for next := s.outside.first; next != nil && s.hasRoom(next); next = s.outside.first {
		s.outside.remove(next)
		s.admit(next)
	}
	if s.inside == 0 {
		s.crew.retire() // idle goroutines are kept only while there is work
	}
}

// passed tells those who wait for it that a message is done with: its answer is known
// to whoever handed it over. The caller holds s.mu.
func (s *Sender) passed(number uint64) {
	s.flushes = slices.DeleteFunc(s.flushes, func(f *flush) bool { return f.passed(number) })
}

// passed counts a message, and reports whether it was the last.
func (f *flush) passed(number uint64) bool {
	if number > f.upTo {
		return false
	}
	if f.left--; f.left > 0 {
		return false
	}
	close(f.done)
	return true
}

// nextOfGroup makes the next message of p's group its first. The caller holds
// s.mu.
func (s *Sender) nextOfGroup(p *parcel) {
	lane := p.lane
	p.lane = nil
	next := lane.first
	if next == nil {
		delete(s.lanes, p.message.GroupID)
		return
	}
	lane.remove(next)
	next.lane = lane
	s.makeReady(next)
}

// turnAway refuses a message for which there was no room before Close. The caller
// holds s.mu.
func (s *Sender) turnAway(p *parcel) {
	if p.call != nil {
		s.answer(p, Sent{Err: ErrSenderClosed})
		return
	}
	s.leave(p)
	s.passed(p.number)
	p.turnedAway = true
	close(p.admitted)
}

// withdraw answers those of a Send's messages that SQS has not answered: its
// context has ended, because of cause.
func (s *Sender) withdraw(all []parcel, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		p := &all[i]
		switch {
		case p.list != nil:
			s.answer(p, Sent{Err: p.givenUp(cause)})
		case p.inRequest:
			p.unsure = true
			p.call.results[p.at].Err = p.givenUp(cause)
			p.abandoned = true
		}
	}
	s.dispatch(time.Now())
}

// givenUp is the error of a message that is not sent again because of cause.
func (p *parcel) givenUp(cause error) error {
	err := cause
	if p.err != nil {
		err = fmt.Errorf("%w after %s, the last of which: %w", cause, plural.Of(p.tries, "request"), p.err)
	}
	return p.failure(err)
}

// failure is err, or an ErrUnconfirmed because of it.
func (p *parcel) failure(err error) error {
	if p.unsure {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return err
}
