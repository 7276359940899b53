package reprise

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/internal/sending"
)

// parcel is one message of a Sender, and the caller that waits for its result.
type parcel struct {
	sending.Message // the machine's part

	message  Outgoing
	ctx      context.Context // Submit's; Send watches its own
	tell     func(Sent)      // Submit's
	call     *sendCall       // Send's
	at       int             // its position in call.results
	sent     Sent            // its result in the latest request; at the end its final result
	admitted chan struct{}   // closed when a blocked Submit may return
	refused  error           // what that Submit returns
}

func parcelOf(m *sending.Message) *parcel { return m.Cargo.(*parcel) }

// sendCall is one call of Send. Sender.mu guards it until done is closed.
type sendCall struct {
	results []Sent
	left    int
	done    chan struct{} // closed when none is left
}

// answered counts one more final result.
func (c *sendCall) answered() {
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// fail sets err as the result of every message that has no error yet.
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

// step gives the machine an input, and applies the consequences. cause is the error of
// messages that the input gives up. Only step starts requests and sets the timer.
//
// It calls no user code: it returns the calls that the caller must make without the lock.
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

// userCalls are the calls of user code that follow from a step.
type userCalls struct {
	answered  []*parcel // whose submitters must be called
	complaint error     // to be logged; nil: nothing
}

// applyEffect carries out one effect. Calls of user code it adds to calls.
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
	case sending.Abandoned: // Send has returned already
		s.counts.Failed++
		p.call.results[p.at].Err = p.givenUp(cause)
		s.noteUnsent(p, p.call.results[p.at].Err)
	case sending.Complain:
		calls.complaint = p.sent.Err
	}
}

// answer passes p.sent on to the caller that waits for it. A message that never had room does
// not count as unsent: the Sender had not accepted it.
func (s *Sender) answer(p *parcel, from sending.State, calls *userCalls) {
	switch {
	case p.sent.Err == nil:
		s.counts.Sent++
	case from != sending.Outside:
		s.counts.Failed++
	}
	if p.sent.Err != nil && from != sending.Outside {
		s.noteUnsent(p, p.sent.Err)
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

// noteUnsent notes, for Close, that an accepted message has failed with err.
func (s *Sender) noteUnsent(p *parcel, err error) {
	if s.machine.Closing() {
		s.unsent = append(s.unsent, Unsent{Message: p.message, Err: err})
	}
}

// wakeBy sets the timer, unless it fires before that anyway: under load batches fill long
// before, and setting the timer for each would be in vain.
func (s *Sender) wakeBy(at, now time.Time) {
	switch {
	case s.timer == nil:
		s.tasks.Add(1)
		s.timer = time.AfterFunc(at.Sub(now), s.tick)
	case s.firesAt.IsZero():
		s.tasks.Add(1)
		s.timer.Reset(at.Sub(now))
	case !at.Before(s.firesAt) || !s.timer.Stop():
		return // tick sets it again
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

// givenUp returns the error of a message that is not sent again because of cause.
func (p *parcel) givenUp(cause error) error {
	err := cause
	if p.sent.Err != nil {
		err = fmt.Errorf("%w after %s, the last of which: %w", cause, plural.Of(p.Tries(), "request"), p.sent.Err)
	}
	return p.failure(err)
}

// failure returns err, wrapped in ErrUnconfirmed if SQS may have the message.
func (p *parcel) failure(err error) error {
	if p.Unsure() {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return err
}
