package sqsserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// waiter is a receive and, while there is nothing to receive, a long poll that waits. The
// request that makes a message available receives it for the waiter that came first, under
// the lock, so no waiter wakes in vain.
type waiter struct {
	max        int
	visibility time.Duration // negative: the queue's

	next, previous *waiter // in the queue's list
	waiting        bool    // still in it
	deadline       time.Time
	timer          *time.Timer // fires at the deadline

	// ready holds one signal, so that serving the waiter never blocks. The fields below are
	// written before the signal and read after it.
	ready      chan struct{}
	deliveries []engine.Delivery // in buffer
	err        error

	buffer [maxReceived]engine.Delivery
}

// waiterPool keeps buffers, never channels: one made in a synctest bubble must
// not get out of it.
var waiterPool = sync.Pool{New: func() any { return new(waiter) }}

func newWaiter() *waiter {
	w := waiterPool.Get().(*waiter)
	w.deliveries = w.buffer[:0]
	return w
}

// free returns the waiter to the pool without its messages, which the pool would keep alive.
func (w *waiter) free() {
	clear(w.deliveries)
	w.ready, w.timer, w.deliveries, w.err = nil, nil, nil, nil
	waiterPool.Put(w)
}

// waiters is a list of waiters, in the order in which they came.
type waiters struct {
	first, last *waiter
}

func (l *waiters) add(w *waiter) {
	w.waiting, w.previous = true, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *waiters) remove(w *waiter) {
	if w.previous == nil {
		l.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		l.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.waiting, w.next, w.previous = false, nil, nil
}

// longPolls is the state that the long polls of all queues share. It is guarded by the
// server's lock.
type longPolls struct {
	polled  []*queue        // those with waiters
	toCheck []*queue        // those of them that may have something for a waiter
	woken   []*engine.Queue // reused

	// timer runs Server.wake at due, the earliest time at which a hidden message of a polled
	// queue becomes visible. It exists once it has been needed, and is armed, and due is set,
	// only while a long poll waits.
	timer *time.Timer
	due   time.Time
}

// addWaiter adds a waiter to the queue. The lock is held.
func (s *Server) addWaiter(now time.Time, q *queue, w *waiter, limit time.Duration) {
	w.ready = make(chan struct{}, 1)
	if q.waiters.first == nil {
		s.longPoll.polled = append(s.longPoll.polled, q)
	}
	q.waiters.add(w)
	w.deadline = now.Add(limit)
	w.timer = time.NewTimer(s.clock.wait(limit))
}

// wait waits until a waiter is served, until the poll's time is over (it returns
// nothing then), or until the context ends.
func (s *Server) wait(ctx context.Context, q *queue, w *waiter) ([]engine.Delivery, error) {
	defer w.timer.Stop()
	select {
	case <-w.ready:
		return w.deliveries, w.err
	case <-w.timer.C:
	case <-ctx.Done():
	}

	if s.abandonWait(q, w) {
		return nil, ctx.Err()
	}
	if ctx.Err() != nil { // served too late
		s.exposeDeliveries(q, w.deliveries)
		return nil, ctx.Err()
	}
	return w.deliveries, w.err
}

// abandonWait ends the waiting of a waiter, unless it has been served.
func (s *Server) abandonWait(q *queue, w *waiter) bool {
	s.mu.Lock()
	defer s.unlockOrStop()
	if !w.waiting {
		return false
	}
	s.removeWaiter(q, w)
	return true
}

// removeWaiter removes a waiter from the queue's list and, if it was the last, the queue
// from those that are polled.
func (s *Server) removeWaiter(q *queue, w *waiter) {
	q.waiters.remove(w)
	if q.waiters.first != nil {
		return
	}
	p := &s.longPoll
	p.polled = slices.DeleteFunc(p.polled, func(other *queue) bool { return other == q })
	if len(p.polled) == 0 && !p.due.IsZero() {
		p.timer.Stop()
		p.due = time.Time{}
	}
}

// endQueuePolls ends all long polls of the queue: with err, or without a message.
func (s *Server) endQueuePolls(q *queue, err error) {
	for w := q.waiters.first; w != nil; w = q.waiters.first {
		s.removeWaiter(q, w)
		w.err = err
		w.ready <- struct{}{}
	}
}

// exposeDeliveries makes messages visible again that were received for a client who has
// gone. Those that have been received again since are left alone.
func (s *Server) exposeDeliveries(q *queue, deliveries []engine.Delivery) {
	if len(deliveries) == 0 {
		return
	}
	_ = s.underLock(q, func(now time.Time) { // an error means that the queue has gone, and the messages with it
		for i := range deliveries {
			s.engine.Expose(now, q.engine, deliveries[i].Receipt)
		}
	})
}

// recheck marks a queue whose waiters may be served before the lock is released.
func (p *longPolls) recheck(q *queue) {
	if q.waiters.first != nil && !slices.Contains(p.toCheck, q) {
		p.toCheck = append(p.toCheck, q)
	}
}

// recheckWoken marks the queues in which the engine made a message receivable.
func (s *Server) recheckWoken() {
	p := &s.longPoll
	p.woken = s.engine.Woken(p.woken[:0])
	if len(p.polled) == 0 {
		return
	}
	for _, woken := range p.woken {
		p.recheck(s.byARN[woken.Key()])
	}
}

// serveWaiters receives for waiters, messagesPerHold messages at most, and reports
// whether there may be more to hand out.
func (s *Server) serveWaiters() (more bool) {
	s.recheckWoken()
	p := &s.longPoll
	if len(p.toCheck) == 0 {
		return false
	}
	now, budget := s.clock.now(), messagesPerHold
	for len(p.toCheck) > 0 {
		q := p.toCheck[0]
		for w := q.waiters.first; w != nil; w = q.waiters.first {
			if budget < w.max && budget < messagesPerHold {
				return true
			}
			// A queue that is over its limit in flight has nothing for a long
			// poll; SQS reports that to short polls only.
			w.deliveries, _ = s.engine.Receive(now, q.engine, w.max, w.visibility, w.deliveries[:0])
			if len(w.deliveries) == 0 {
				break
			}
			budget -= len(w.deliveries)
			s.removeWaiter(q, w)
			w.ready <- struct{}{}
		}
		p.toCheck = slices.Delete(p.toCheck, 0, 1)
		s.armTimer(q)
		// The receive may have dead-lettered into another queue, or have stopped at the engine's
		// limit of work; then this queue is marked again.
		s.recheckWoken()
	}
	return false
}

// armTimer sets the timer for the next hidden message of a queue that is polled.
func (s *Server) armTimer(q *queue) {
	if q.waiters.first == nil {
		return
	}
	next, waits := s.engine.Next(q.engine)
	p := &s.longPoll
	if !waits || !p.due.IsZero() && !next.Before(p.due) {
		return
	}
	p.due = next
	if p.timer == nil {
		p.timer = time.AfterFunc(s.clock.until(next), s.wake)
	} else {
		p.timer.Reset(s.clock.until(next))
	}
}

// wake serves the waiters of queues whose hidden messages are due. It may find nothing due,
// if a message has been hidden again since the timer was set.
func (s *Server) wake() {
	s.mu.Lock()
	defer s.stopOnPanic()
	p := &s.longPoll
	p.due = time.Time{}
	now := s.clock.now()
	for _, q := range p.polled {
		if next, waits := s.engine.Next(q.engine); waits && !next.After(now) {
			p.recheck(q)
		} else {
			s.armTimer(q)
		}
	}
	s.serveAndUnlock()
}

// serveAndUnlock serves the waiters of queues that have changed, and unlocks.
func (s *Server) serveAndUnlock() {
	for s.refusal() == nil && s.serveWaiters() {
		s.mu.Unlock()
		s.mu.Lock()
	}
	if len(s.awaited) > 0 {
		s.announceEmpty()
	}
	s.mu.Unlock()
}
