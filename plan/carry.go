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

// leg carries the message from an attempt at one time to the next at another. If that is impossible
// it returns why, and when the message is given up or deleted; leg is then what was carried before.
func (c *carrier) leg(from, to time.Duration) (leg Leg, halt Stop, when time.Duration) {
	now, due, kept := epoch, epoch.Add(to-from), epoch.Add(c.kept-from)
	var delivered struct { // the copy before
		leg Leg
		at  time.Time
	}
	for leg.Receives == 0 || due.Sub(now) >= time.Second { // a consumer holds a copy for the rest of its last second
		w := carry.Wait{
			Now: now, Due: due, Requested: now, Kept: kept, Receives: c.receives,
			Known:     leg.Copies > 0,
			Asked:     c.always && leg.Receives == 0,
			Miscounts: leg.Copies > 0 && c.receives > 1 && carry.HiddenForLong(kept, now),
		}
		if why := c.queue.Copies(w); c.copies && why != carry.Hidden {
			kept, now = now, now.Add(time.Duration(c.queue.Delay(w, why))*time.Second)
			c.receives = 1
			leg.Receives++
			leg.Copies++
			if leg.Copies > 1 { // until the last few, all copies are carried as this one was
				cycle := now.Sub(delivered.at)
				skipped := max(0, due.Sub(now)-c.queue.LongestCopy()-2*retry.MaxVisibility-MaxDelay)
				more := int(skipped / cycle)
				leg.Receives += more * (leg.Receives - delivered.leg.Receives)
				leg.Copies += more
				skipped -= skipped % cycle
				kept, now = kept.Add(skipped), now.Add(skipped)
			}
			delivered.leg, delivered.at = leg, now
			continue
		}
		switch since := from + now.Sub(epoch); {
		case !c.copies && c.queue.LastReceive(c.receives):
			return leg, StopReceives, since
		case !c.copies && c.gives && c.queue.ExpiresBefore(kept, due):
			return leg, StopRetention, since
		}
		until := due
		if latest := c.queue.CopyBy(kept); c.copies && due.After(latest) {
			until = latest
		}
		_, visible, parked := carry.Hide(now, now, until)
		if due.Before(visible) { // hidden for whole seconds
			visible = due
		}
		if expires := c.queue.Expires(kept); !c.copies && !visible.Before(expires) {
			return leg, StopRetention, max(from+expires.Sub(epoch), 0)
		}
		c.receives++
		leg.Receives++
		if now = visible; until.Equal(due) && !parked {
			break
		}
	}
	c.kept = from + kept.Sub(epoch)
	switch {
	case leg.Copies > 0:
		leg.Carry = CarryRequeue
	case leg.Receives > 1:
		leg.Carry = CarryPark
	default:
		leg.Carry = CarryHide
	}
	return leg, 0, 0
}
