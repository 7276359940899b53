// Package budget tracks how much of a queue's quota of messages in flight is used: messages that
// any consumer has received or hidden, and that are not yet deleted. Beyond the quota SQS returns
// no more messages, mostly without an error: the queue looks empty.
//
// SQS counts approximately and about a minute late. A [Budget] therefore projects its readings by
// their own growth, and decides in time which waits should be delayed copies, which are not in
// flight.
//
// It is plain data, and its methods are functions of their arguments: no clock, no timer and no
// requests of its own.
package budget

import "time"

const (
	// Every is the shortest time between two reads of the queue's counts.
	Every = time.Minute
	// Stale is how long one reading counts.
	Stale = 5 * time.Minute
	// ahead is how far a reading is projected: SQS's count is about a minute old, and our reading
	// is too.
	ahead = 2 * time.Minute
	// Decay is the factor of an earlier growth from one reading to the next.
	Decay = 0.9
)

// From these parts of the quota on, waits of at least these durations are not spent in flight: the
// longest first, because they relieve the quota most per call.
const (
	highPressure = 0.8
	mostPressure = 0.9
	fullPressure = 0.95

	longWait  = 10 * time.Minute
	shortWait = time.Minute
	anyWait   = 2 * time.Second
)

// Reading is SQS's numbers for a queue.
type Reading struct {
	Hidden, Visible int       // messages in flight, and waiting to be received
	Quota           int       // how many may be in flight; 0 or less: unknown
	At              time.Time // when it was read
}

// Budget is what is known about a queue's messages in flight. The zero Budget knows nothing.
type Budget struct {
	last      Reading
	rate      float64   // by which the count grows, per second
	spilled   int       // copies sent to relieve it since the last reading
	lookAt    time.Time // the earliest time of the next read
	refusedAt time.Time // when a receive was refused because of the quota
}

// Read adds a reading.
func (b *Budget) Read(r Reading) {
	if since := r.At.Sub(b.last.At); !b.last.At.IsZero() && since > 0 {
		// The growth without our copies. Earlier growth is not forgotten at once, because the
		// copies of other consumers, which we do not see, may be the reason why the count has
		// stopped growing.
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

// Rate returns the expected growth of the count, in messages per second.
func (b *Budget) Rate() float64 { return b.rate }

// Look reports whether the counts may be read again at now. See LookAgain.
func (b *Budget) Look(now time.Time) bool { return !now.Before(b.lookAt) }

// LookAgain sets the time from which the counts may be read again.
func (b *Budget) LookAgain(at time.Time) { b.lookAt = at }

// Spilled counts a copy that was sent to relieve the quota.
func (b *Budget) Spilled() { b.spilled++ }

// Refuse notes that a receive was refused because of the quota.
func (b *Budget) Refuse(now time.Time) { b.refusedAt = now }

// Received notes that a receive has brought messages.
func (b *Budget) Received() { b.refusedAt = time.Time{} }

// Refused reports whether a receive was refused because of the quota not long ago.
func (b *Budget) Refused(now time.Time) bool {
	return !b.refusedAt.IsZero() && now.Sub(b.refusedAt) <= 2*Every
}

// fresh reports whether there is a reading that still counts.
func (b *Budget) fresh(now time.Time) bool {
	return !b.last.At.IsZero() && b.last.Quota > 0 && now.Sub(b.last.At) <= Stale
}

// pressure is the known part of the quota that will soon be used.
func (b *Budget) pressure(now time.Time) float64 {
	if !b.fresh(now) {
		return 0
	}
	soon := float64(b.last.Hidden) + b.rate*ahead.Seconds()
	return soon / float64(b.last.Quota)
}

// High reports whether so much of the quota will soon be used that it must be relieved.
func (b *Budget) High(now time.Time) bool { return b.pressure(now) >= highPressure }

// Spills reports whether a wait should be a delayed copy rather than in flight.
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
