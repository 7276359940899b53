package plan

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/retry"
)

const maxDuration = math.MaxInt64

// carrier follows one message through its waits by the consumer's own rules, one hide or copy after the other.
type carrier struct {
	queue  carry.Queue
	copies bool // copies may be sent
	always bool // every wait is a copy
	gives  bool // there is a dead-letter queue, for messages that would expire

	receives int           // of the message or its last copy
	kept     time.Duration // since when the queue keeps it

	last struct { // the wait before, which one like it repeats
		wait, age time.Duration
		receives  int

		leg     Leg
		kept    time.Duration // from the end of the wait
		counted int           // receives at its end
	}
}

func newCarrier(q Queue, s Settings) carrier {
	return carrier{
		queue:    carry.Queue{MaxReceives: min(max(q.MaxReceives, 0), MaxReceives), Retention: q.retention()},
		copies:   s.takesCopies(q),
		always:   s.takesCopies(q) && s.Via == ViaRequeue,
		gives:    s.hasDeadLetters(q),
		receives: 1,
		kept:     -max(q.Delay, 0),
	}
}

// walk is a wait on its way. Its times are counted from some time, at which it begins.
type walk struct {
	now, due time.Time
	kept     time.Time // since when the queue keeps the message or its last copy
	leg      Leg       // so far

	delivered struct { // the copy before, when a consumer had received it
		leg Leg
		at  time.Time
	}
}

// leg carries the message from an attempt at one time to the next at another. If that is impossible
// it returns why, and when the message is given up or deleted; leg is then what was carried before.
// In a long schedule most waits are like the one before: that is not walked through again.
func (c *carrier) leg(from, to time.Duration) (leg Leg, halt Stop, when time.Duration) {
	last := &c.last
	wait, age, receives := to-from, from-c.kept, c.receives
	if last.leg.Receives > 0 && wait == last.wait && age == last.age && receives == last.receives {
		c.receives, c.kept = last.counted, to+last.kept
		return last.leg, 0, 0
	}
	if leg, halt, when = c.walk(from, to); halt == 0 {
		last.wait, last.age, last.receives = wait, age, receives
		last.leg, last.kept, last.counted = leg, c.kept-to, c.receives
	}
	return leg, halt, when
}

// walk is leg, step by step.
func (c *carrier) walk(from, to time.Duration) (leg Leg, halt Stop, when time.Duration) {
	w := &walk{now: epoch, due: epoch.Add(to - from), kept: epoch.Add(c.kept - from)}
	for w.leg.Receives == 0 || w.due.Sub(w.now) >= time.Second { // a consumer holds a copy for the rest of its last second
		why := carry.Hidden
		if c.copies {
			why = c.queue.Copies(c.waitOf(w))
		}
		switch {
		case why != carry.Hidden:
			c.copy(w, why)
		case !c.copies && c.queue.LastReceive(c.receives):
			return w.leg, StopReceives, from + w.now.Sub(epoch)
		case !c.copies && c.gives && c.queue.ExpiresBefore(w.kept, w.due):
			return w.leg, StopRetention, from + w.now.Sub(epoch)
		case !c.hide(w):
			return w.leg, StopRetention, max(from+c.queue.Expires(w.kept).Sub(epoch), 0)
		}
	}
	c.kept = from + w.kept.Sub(epoch)
	switch {
	case w.leg.Copies > 0:
		w.leg.Carry = CarryRequeue
	case w.leg.Receives > 1:
		w.leg.Carry = CarryPark
	default:
		w.leg.Carry = CarryHide
	}
	return w.leg, 0, 0
}

func (c *carrier) waitOf(w *walk) carry.Wait {
	return carry.Wait{
		Now: w.now, Due: w.due, Requested: w.now, Kept: w.kept, Receives: c.receives,
		Known:     w.leg.Copies > 0,
		Asked:     c.always && w.leg.Receives == 0,
		Miscounts: w.leg.Copies > 0 && c.receives > 1 && carry.HiddenForLong(w.kept, w.now),
	}
}

// copy has a copy replace the message, and a consumer receive it. Until the last few, all copies of a wait are carried as
// the one before was: they are counted at once.
func (c *carrier) copy(w *walk, why carry.Why) {
	delay := c.queue.Delay(c.waitOf(w), why)
	w.kept, w.now = w.now, w.now.Add(time.Duration(delay)*time.Second)
	c.receives = 1
	w.leg.Receives++
	w.leg.Copies++
	if w.leg.Copies > 1 {
		cycle := w.now.Sub(w.delivered.at)
		skipped := max(0, w.due.Sub(w.now)-c.queue.LongestCopy()-2*retry.MaxVisibility-MaxDelay)
		more := int(skipped / cycle)
		w.leg.Receives += more * (w.leg.Receives - w.delivered.leg.Receives)
		w.leg.Copies += more
		skipped -= skipped % cycle
		w.kept, w.now = w.kept.Add(skipped), w.now.Add(skipped)
	}
	w.delivered.leg, w.delivered.at = w.leg, w.now
}

// hide hides the message once, and has a consumer receive it. It reports false if the queue drops it before.
func (c *carrier) hide(w *walk) bool {
	until := w.due
	if latest := c.queue.CopyBy(w.kept); c.copies && w.due.After(latest) {
		until = latest
	}
	_, visible, parked := carry.Hide(w.now, w.now, until)
	if w.due.Before(visible) { // it was hidden for whole seconds
		visible = w.due
	}
	if !c.copies && !visible.Before(c.queue.Expires(w.kept)) {
		return false
	}
	c.receives++
	w.leg.Receives++
	w.now = visible
	if until.Equal(w.due) && !parked { // the wait ends, be it a little early
		w.now = w.due
	}
	return true
}
