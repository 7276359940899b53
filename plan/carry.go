package plan

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const maxDuration = math.MaxInt64

// longestHide is how long one receive can hide a message.
var longestHide = func() time.Duration {
	seconds, _ := retry.Visibility(epoch, epoch, epoch.Add(2*retry.MaxVisibility))
	return time.Duration(seconds) * time.Second
}()

// carrier follows one message through its waits, under the queue's limits.
type carrier struct {
	copies bool // copies may be sent
	always bool // every wait is a copy

	maxReceives int // the queue's limit; the largest int if there is none
	retention   time.Duration

	receives int           // of the message or its last copy
	sent     time.Duration // when the message or its last copy was sent
}

func newCarrier(q Queue, s Settings) carrier {
	c := carrier{
		copies:      s.takesCopies(q),
		always:      s.takesCopies(q) && s.Via == ViaRequeue,
		maxReceives: math.MaxInt,
		retention:   q.retention(),
		receives:    1,
		sent:        -max(q.Delay, 0),
	}
	if q.MaxReceives > 0 {
		c.maxReceives = min(q.MaxReceives, MaxReceives)
	}
	return c
}

// leg carries the message from an attempt at one time to the next at another. If that is impossible
// it returns why, and when the message is given up or deleted.
func (c *carrier) leg(from, to time.Duration) (leg Leg, halt Stop, when time.Duration) {
	wait := to - from
	hides := hidesFor(wait)
	expires := add(c.sent, c.retention)
	permitted := c.maxReceives - c.receives
	switch {
	case c.always || c.copies && (hides > permitted || hides > 1 || min(to, from+longestHide) > add(c.sent, LongestCopy(c.retention))):
		return c.requeue(wait, to), 0, 0
	case hides > permitted:
		// The message is hidden as often as it may be received again, and given up at
		// its last permitted receive.
		if last := add(from, time.Duration(permitted)*longestHide); last < expires {
			return Leg{}, StopReceives, last
		}
		return Leg{}, StopRetention, max(expires, 0)
	case to >= expires:
		return Leg{}, StopRetention, max(expires, 0)
	}
	c.receives += hides
	leg = Leg{Carry: CarryHide, Receives: hides}
	if hides > 1 {
		leg.Carry = CarryPark
	}
	return leg, 0, 0
}

// requeue carries the message by copies: one now, which knows when it is due, another one
// each time that LongestCopy has passed, and one before the last hide if it is not the first: a
// consumer takes one receive of a copy before it is due for no attempt, and further ones for attempts.
func (c *carrier) requeue(wait, to time.Duration) Leg {
	reach, hides := LongestCopy(c.retention), hidesFor
	switch {
	case c.maxReceives == 1: // no consumer may receive a copy before it is due
		reach, hides = min(reach, MaxDelay), func(time.Duration) int { return 0 }
	case c.maxReceives <= MaxReceives:
		reach = min(reach, time.Duration(c.maxReceives-1)*longestHide)
	}
	before := int(max(wait-1, 0) / reach) // copies that last for as long as they can
	rest := wait - time.Duration(before)*reach
	leg := Leg{Carry: CarryRequeue, Receives: before * (1 + hides(reach)), Copies: before + 1}
	c.receives = 1
	switch {
	case rest <= min(MaxDelay, reach): // SQS delays it so long itself
	case rest > retry.MaxVisibility-time.Minute && rest < retry.MaxVisibility+MaxDelay:
		c.receives += hides(rest - MaxDelay) // delayed first, so that one receive hides it for the rest
	case hides(rest) > 1:
		n := hides(rest)
		leg.Receives, leg.Copies = leg.Receives+n, leg.Copies+1
		rest -= time.Duration(n-1) * longestHide
		if rest > MaxDelay {
			c.receives++
		}
	default:
		c.receives += hides(rest)
	}
	c.sent = to - rest
	leg.Receives += c.receives
	return leg
}

// LongestCopy returns how long a copy can wait on a queue of that retention until the next one must
// be sent: three quarters of the retention, and all but a day of it if that is longer. The rest is
// the time for a consumer to receive and copy it.
func LongestCopy(retention time.Duration) time.Duration {
	return retention - min(24*time.Hour, retention/4)
}

// hidesFor is how often a message must be hidden to wait for d: the last time serves for a little
// more than it takes.
func hidesFor(d time.Duration) int {
	n := 1 + max(int(d/longestHide)-2, 0)
	d -= time.Duration(n-1) * longestHide
	for ; d > longestHide+retry.AllowedShortfall(d); d -= longestHide {
		n++
	}
	return n
}

// add adds, at most to the longest duration; b is not negative.
func add(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return maxDuration
}
