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
	case c.always || c.copies && (hides > permitted || to >= expires):
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

// requeue carries the message by copies. A copy is delayed for its first quarter
// of an hour and then hidden, as often as it may be received and until a minute
// before its retention ends; then the next one is sent.
func (c *carrier) requeue(wait, to time.Duration) Leg {
	reach := max(c.retention-time.Minute, c.retention/2)
	if c.maxReceives <= MaxReceives {
		reach = min(reach, MaxDelay+time.Duration(c.maxReceives-1)*longestHide)
	}
	before := int(max(wait-1, 0) / reach) // copies before the last
	rest := wait - time.Duration(before)*reach
	c.receives = receivesOfCopy(rest)
	c.sent = to - rest
	return Leg{
		Carry:    CarryRequeue,
		Receives: before*receivesOfCopy(reach) + c.receives,
		Copies:   before + 1,
	}
}

// receivesOfCopy is how often a copy with a total wait of d is received.
func receivesOfCopy(d time.Duration) int {
	if d <= MaxDelay {
		return 1
	}
	return 1 + hidesFor(d-MaxDelay)
}

// hidesFor is how often a message must be hidden to wait for d: for the policy's allowed shortfall
// it is not hidden again.
func hidesFor(d time.Duration) int {
	if d <= longestHide {
		return 1
	}
	d -= retry.AllowedShortfall(d)
	return max(int((d+longestHide-1)/longestHide), 1)
}

// add adds, at most to the longest duration; b is not negative.
func add(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return maxDuration
}
