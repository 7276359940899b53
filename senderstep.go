package reprise

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/internal/sending"
)

// parcel is one message of a Sender, and who waits for its answer.
type parcel struct {
	sending.Message // the Sender's machine's

	message  Outgoing
	ctx      context.Context // Submit's; Send watches its own
	tell     func(Sent)      // Submit's
	call     *sendCall       // Send's
	at       int             // its place among call's
	sent     Sent            // what its last request said of it; in the end, its answer
	admitted chan struct{}   // closed when a Submit that was blocked goes on
	refused  error           // why that Submit did not hand it over
}

func parcelOf(m *sending.Message) *parcel { return m.Cargo.(*parcel) }

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

// step gives the machine an input, and carries out what follows from it. cause is why
// messages are given up if the input gives any up. Everything that the Sender does goes
// through here: nothing else starts a request or sets the timer.
//
// It calls no code of the user's: it returns what is to be called without the lock.
func (s *Sender) step(cause error, input func(now time.Time)) (calls userCalls) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	input(now)
	for _, e := range s.machine.Effects() {
		s.applyEffect(e, cause, &calls)
	}
	s.machine.Done()
	if s.machine.Idle() {
		s.callers.retire() // idle goroutines are kept only while there is work
	} else {
		s.callers.retired = false
	}
	for batch := s.machine.Next(now); batch != nil; batch = s.machine.Next(now) {
		s.tasks.Add(1)
		s.callers.run(&s.mu, batch)
	}
	if at := s.machine.Deadline(); !at.IsZero() {
		s.wakeBy(at, now)
	}
	return calls
}

// userCalls are calls of the user's code that follow from a step.
type userCalls struct {
	answered  []*parcel // whoever submitted them is to be told
	complaint error     // to be logged; nil: nothing
}

// applyEffect carries out one effect, except for calls of the user's code.
func (s *Sender) applyEffect(e sending.Effect, cause error, calls *userCalls) {
	if e.Kind == sending.Flushed {
		close(e.Flush.Cargo.(chan struct{}))
		return
	}
	p := parcelOf(e.Message)
	switch e.Kind {
	case sending.Admitted:
		if p.admitted != nil {
			close(p.admitted)
		}
	case sending.Answered:
		if p.sent.Err != nil {
			p.sent.Err = p.failure(fmt.Errorf("sending to the queue %s: %w", s.queue.name, p.sent.Err))
		}
		s.answer(p, e.From, calls)
	case sending.GivenUp:
		if e.From == sending.Outside && p.tell != nil {
			p.refused = cause
			close(p.admitted)
			return
		}
		p.sent.Err = p.givenUp(cause)
		s.answer(p, e.From, calls)
	case sending.Abandoned: // nobody waits for p.call
		s.counts.Failed++
		p.call.results[p.at].Err = p.givenUp(cause)
	case sending.Complain:
		calls.complaint = p.sent.Err
	}
}

// answer passes p.sent on to whoever handed p over. A message that never had room does
// not count as unsent: the Sender had not taken it.
func (s *Sender) answer(p *parcel, from sending.State, calls *userCalls) {
	switch {
	case p.sent.Err == nil:
		s.counts.Sent++
	case from != sending.Outside:
		s.counts.Failed++
	}
	if s.machine.Closing() && p.sent.Err != nil && from != sending.Outside {
		s.unsent = append(s.unsent, Unsent{Message: p.message, Err: p.sent.Err})
	}
	if p.tell == nil {
		p.call.results[p.at] = p.sent
		p.call.answered()
		return
	}
	if calls.answered == nil {
		calls.answered = make([]*parcel, 0, maxBatch)
	}
	calls.answered = append(calls.answered, p)
}

// wakeBy sets the timer, unless it fires by then in any case: under load batches
// fill long before, and it would be set for each in vain.
func (s *Sender) wakeBy(at, now time.Time) {
	switch {
	case s.timer == nil:
		s.tasks.Add(1)
		s.timer = time.AfterFunc(at.Sub(now), s.tick)
	case s.firesAt.IsZero():
		s.tasks.Add(1)
		s.timer.Reset(at.Sub(now))
	case !at.Before(s.firesAt) || !s.timer.Stop():
		return // tick looks again
	default:
		s.timer.Reset(at.Sub(now))
	}
	s.firesAt = at
}

// tick is called when the timer fires.
func (s *Sender) tick() {
	defer s.tasks.Done()
	s.step(nil, func(now time.Time) {
		s.firesAt = time.Time{}
		s.machine.Due(now)
	})
}

// givenUp is the error of a message that is not sent again because of cause.
func (p *parcel) givenUp(cause error) error {
	err := cause
	if p.sent.Err != nil {
		err = fmt.Errorf("%w after %s, the last of which: %w", cause, plural.Of(p.Tries(), "request"), p.sent.Err)
	}
	return p.failure(err)
}

// failure is err, or an ErrUnconfirmed because of it.
func (p *parcel) failure(err error) error {
	if p.Unsure() {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return err
}
