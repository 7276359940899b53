// Package budget keeps track of how much of a queue's quota of messages in flight is
// used: received or hidden, by whomever, and not yet deleted. Beyond the quota SQS hands
// out no more messages, and mostly without an error: the queue just seems empty.
//
// SQS counts approximately and about a minute late. A [Budget] therefore projects its
// readings by their own growth, and says in time which waits are better spent as delayed
// copies, which are not in flight.
//
// It is plain data, and its methods are functions of what they are given: no clock, no
// timer and no requests of its own.
package budget

import "time"

const (
	// Every is how often the queue's counts are read at most.
	Every = time.Minute
	// Stale is how long one reading counts.
	Stale = 5 * time.Minute
	// ahead is how far a reading is projected: SQS's count is about a minute old, and so
	// is ours.
	ahead = 2 * time.Minute
	// Decay is what is left of an earlier growth from one reading to the next.
	Decay = 0.9
)

// From these parts of the quota on, waits of at least so long are not spent in flight:
// the longest first, which relieve it most for their calls.
const (
	highPressure = 0.8
	mostPressure = 0.9
	fullPressure = 0.95

	longWait  = 10 * time.Minute
	shortWait = time.Minute
	anyWait   = 2 * time.Second
)

// Reading is what SQS says of a queue.
type Reading struct {
	Hidden, Visible int       // messages in flight, and waiting to be received
	Quota           int       // how many may be in flight; 0 or less: unknown
	At              time.Time // when it was read
}

// Budget is what is known of a queue's messages in flight. The zero Budget knows nothing.
type Budget struct {
	last      Reading
	rate      float64   // by which the count grows, per second
	spilled   int       // copies sent to relieve it since the last reading
	lookAt    time.Time // not to be read again before
	refusedAt time.Time // a receive was refused for the quota
}

// Read takes in a reading.
func (b *Budget) Read(r Reading) {
	if since := r.At.Sub(b.last.At); !b.last.At.IsZero() && since > 0 {
		// As it would be without our copies; not forgotten at once, since other
		// consumers' copies, which we do not see, may be why it has stopped growing.
		grown := float64(r.Hidden - b.last.Hidden + b.spilled)
		if since > Stale {
			b.rate = 0
		}
		b.rate = max(grown/since.Seconds(), b.rate*Decay, 0)
	}
	b.spilled = 0
	b.last = r
	b.lookAt = r.At.Add(Every)
}

// Last returns the last reading: the zero Reading if there was none.
func (b *Budget) Last() Reading { return b.last }

// Rate returns by how many messages a second the count is expected to grow.
func (b *Budget) Rate() float64 { return b.rate }

// Look reports whether the counts may be read again at now. See LookAgain.
func (b *Budget) Look(now time.Time) bool { return !now.Before(b.lookAt) }

// LookAgain sets from when on the counts may be read again.
func (b *Budget) LookAgain(at time.Time) { b.lookAt = at }

// Spilled counts a copy that was sent to relieve the quota.
func (b *Budget) Spilled() { b.spilled++ }

// Refuse notes that a receive was refused for the quota.
func (b *Budget) Refuse(now time.Time) { b.refusedAt = now }

// Received notes that a receive has brought messages.
func (b *Budget) Received() { b.refusedAt = time.Time{} }

// Refused reports whether a receive was refused for the quota not long ago.
func (b *Budget) Refused(now time.Time) bool {
	return !b.refusedAt.IsZero() && now.Sub(b.refusedAt) <= 2*Every
}

// fresh reports whether there is a reading that still counts.
func (b *Budget) fresh(now time.Time) bool {
	return !b.last.At.IsZero() && b.last.Quota > 0 && now.Sub(b.last.At) <= Stale
}

// pressure is the part of the quota that will be used soon, as far as is known.
func (b *Budget) pressure(now time.Time) float64 {
	if !b.fresh(now) {
		return 0
	}
	soon := float64(b.last.Hidden) + b.rate*ahead.Seconds()
	return soon / float64(b.last.Quota)
}

// High reports whether so much of the quota will be used soon that it must be relieved.
func (b *Budget) High(now time.Time) bool { return b.pressure(now) >= highPressure }

// Spills reports whether a wait is to be spent as a delayed copy rather than in flight.
func (b *Budget) Spills(wait time.Duration, now time.Time) bool {
	switch pressure := b.pressure(now); {
	case pressure >= fullPressure:
		return wait >= anyWait
	case pressure >= mostPressure:
		return wait >= shortWait
	case pressure >= highPressure:
		return wait >= longWait
	}
	return false
}

// Full reports whether the quota is used up, as far as is known.
func (b *Budget) Full(now time.Time) bool {
	if b.Refused(now) {
		return true
	}
	return b.fresh(now) && b.last.Visible > 0 && float64(b.last.Hidden) >= fullPressure*float64(b.last.Quota)
}
