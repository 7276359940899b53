package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/memory"
)

// lookAgain makes the hidden messages visible for which c would now decide otherwise than when
// it hid them: those that the queue would drop meanwhile, by a retention that was not known or
// was longer, and those that wait for want of a dead-letter queue. They keep their due times;
// the consumer that receives them copies them, hides them again or gives them up. old is what was
// known before.
func (c *Machine) lookAgain(old *Facts) {
	f := &c.facts
	found := f.DeadLetter.URL != "" && f.DeadLetter.URL != old.DeadLetter.URL
	if !found && !old.unread && f.retention() == old.retention() {
		return
	}
	c.expiring, c.unsure = expirations{}, time.Time{}
	if found {
		c.untaken = time.Time{} // they are woken
	}
	for r := range c.memory.All() {
		r.Announced = false
		c.lookAgainAt(r, found)
	}
	for _, d := range c.held {
		d.factsNew = true // one that is being hidden has its turn when it is hidden
	}
	if !c.waker.active {
		c.wakeNext(c.now)
	}
}

// lookAgainAt has r's message made visible if c would now decide otherwise on it; found: a
// dead-letter queue is known that was not before.
func (c *Machine) lookAgainAt(r *memory.Note, found bool) {
	if r.Handle != nil && !r.Waking && (r.Spent && found || c.outlasts(r.Sent, r.HiddenUntil)) {
		r.LookAgain, r.Waking = true, true
		c.waker.ids = append(c.waker.ids, r.ID)
	}
}

// outlasts reports whether a message that was sent then, by our clock, and is hidden until then, is
// hidden for too long: it could not be copied in time any more or, where no copies are sent,
// would be dropped.
func (c *Machine) outlasts(sent, hidden time.Time) bool {
	if c.takesCopies() {
		return !sent.IsZero() && hidden.After(c.facts.queue().CopyBy(sent))
	}
	return c.facts.queue().ExpiresBefore(sent, hidden)
}
