// Package retry decides what happens to a message whose handler failed: whether and when it is
// tried again, released, or dead-lettered.
//
// Everything here is a pure function: no clock is read and no state is kept, so
// the same [Failure] under the same [Policy] gives the same [Decision] in any
// process. A consumer, a Lambda function, a simulator and a dashboard with the same policy have the
// same schedule.
//
// A Policy waits by its [Backoff], spread by its [Jitter], until MaxAttempts or
// MaxAge is reached. A handler can decide by the error it returns: [Permanent], [RetryAfter],
// [Release]. [Visibility] converts the instant of a decision to the seconds that Amazon SQS
// accepts.
package retry

import (
	"math"
	"slices"
	"time"
)

// The limits of a [Policy] without limits of its own.
const (
	DefaultMaxAttempts = 20
	DefaultMaxAge      = 96 * time.Hour
)

// Policy defines when a failed message is tried again and when it is given up. The zero value is a
// good default: exponential backoff from 1 s, doubling, up to 12 h, with full jitter, 20 attempts
// and 96 hours.
type Policy struct {
	// Backoff gives the wait before each retry. Default: Exponential{}.
	Backoff Backoff

	// Jitter spreads the waits of different messages. Default: Full.
	Jitter Jitter

	// MaxAttempts limits the runs of the handler, the first included. Negative:
	// unlimited. Default: 20; a consumer uses the queue's maxReceiveCount first.
	MaxAttempts int

	// MaxAge limits the time from AgeFrom's instant to the last attempt. A wait of the policy that
	// would exceed it is cut short: the last attempt is then due at an instant drawn from the last
	// part of this age, at most a tenth of it, see LastRetry; without jitter, at this age. An
	// attempt that fails in that part is the last. A RetryAfter is never cut short: if it would
	// exceed MaxAge, the message is given up. Negative: unlimited. Default: 96h.
	MaxAge time.Duration

	// AgeFrom is the instant from which MaxAge counts. Default: FirstReceive.
	AgeFrom AgeFrom

	// Rules replace Backoff and Jitter, never the limits, for particular errors: the first rule
	// that matches wins. Default: none.
	Rules []Rule
}

// AgeFrom is the instant from which a message's age counts.
type AgeFrom uint8

const (
	// FirstReceive does not count the time that the message waited in a backlog.
	FirstReceive AgeFrom = iota
	// Sent counts from the time when the message was sent.
	Sent
)

// Failure is one failed attempt: a run of the handler that returned an error.
type Failure struct {
	// N is the number of this run, 1 for the first. Numbers below 1 count as 1.
	N int

	// Seed selects the jitter: the id under which the message was first sent,
	// with its generation where it was redriven.
	Seed string

	// Sent and First are when the message was sent and first received, by the
	// server's clock. A zero Sent stands for First. If the instant that AgeFrom names is still
	// unknown, MaxAge does not apply.
	Sent, First time.Time

	// Ended is the end of the run: waits count from it.
	Ended time.Time

	// Err is the handler's error. Nil counts as a plain error.
	Err error
}

// Decision is what happens to a message, and why.
type Decision struct {
	Action Action
	// At is the instant before which the message must not be handled again. For
	// ActionDeadLetter it is the end of the attempt.
	At     time.Time
	Reason Reason
}

// Decide returns what happens to a message after a failed attempt. It allocates nothing.
//
// A [Permanent] anywhere in the error wins; of [RetryAfter] and [Release] the
// outermost counts. No limit applies to a Release. MaxAttempts and MaxAge apply to a RetryAfter and
// to the policy's own waits alike.
func (p Policy) Decide(f Failure) Decision {
	verdict, wait := steer(f.Err)
	n := max(f.N, 1)
	switch {
	case verdict == ReasonPermanent:
		return Decision{Action: ActionDeadLetter, At: f.Ended, Reason: ReasonPermanent}
	case verdict == ReasonRelease:
		return Decision{Action: ActionRelease, At: f.Ended.Add(wait), Reason: ReasonRelease}
	case p.attemptsUsed(n):
		return Decision{Action: ActionDeadLetter, At: f.Ended, Reason: ReasonAttempts}
	case verdict == 0:
		verdict = ReasonPolicy
		backoff, jitter := p.scheduleFor(f.Err)
		wait = jitter.wait(backoff, newStream(f.Seed), n)
	}

	at := f.Ended.Add(wait)
	origin, limit := p.ageLimit(f.First, f.Sent)
	switch past := at.Sub(origin) > limit; {
	case verdict == ReasonRetryAfter && past:
		return Decision{Action: ActionDeadLetter, At: f.Ended, Reason: ReasonAge}
	case verdict == ReasonRetryAfter, at.Sub(origin) < limit-limit/lastShare: // f.Ended is not in the last part
	default:
		from, to, ok := p.LastRetry(f)
		if !ok {
			return Decision{Action: ActionDeadLetter, At: f.Ended, Reason: ReasonAge}
		}
		if past {
			at = from.Add(uniform(0, to.Sub(from), newStream(f.Seed).draw(lastDraw)))
		}
	}
	return Decision{Action: ActionRetry, At: at, Reason: verdict}
}

// The unexported methods have a pointer receiver: copying the policy would cost Decide more than
// its decision.

// scheduleFor returns the backoff and jitter for a plain error.
func (p *Policy) scheduleFor(err error) (Backoff, Jitter) {
	for i := range p.Rules {
		if r := &p.Rules[i]; r.Match != nil && r.Match(err) {
			return r.Backoff, r.Jitter
		}
	}
	return p.Backoff, p.Jitter
}

// attemptsUsed reports whether no attempt may follow after made attempts.
func (p *Policy) attemptsUsed(made int) bool {
	limit := p.MaxAttempts
	if limit == 0 {
		limit = DefaultMaxAttempts
	}
	return limit > 0 && made >= limit
}

// noAgeLimit is the limit of a message that may reach any age.
const noAgeLimit time.Duration = math.MaxInt64

// ageLimit returns the age that the message may reach, and from when it counts.
func (p *Policy) ageLimit(first, sent time.Time) (origin time.Time, limit time.Duration) {
	origin, limit = first, p.MaxAge
	if p.AgeFrom == Sent && !sent.IsZero() {
		origin = sent
	}
	switch {
	case limit < 0 || origin.IsZero():
		limit = noAgeLimit
	case limit == 0:
		limit = DefaultMaxAge
	}
	return origin, limit
}

// ageGrace is how far past MaxAge an attempt may still start. A retry that was cut short to MaxAge
// arrives a little later, because of SQS's whole seconds and the poll that receives it; without
// grace it would be given up without its run.
const ageGrace = time.Minute

// Exhausted reports whether attempt number next, started now, would exceed a limit, and which:
// [ReasonAttempts] or [ReasonAge]. The first attempt is never too old, however long the message was
// in its queue. A later one may start up to a minute past MaxAge, so that a retry that is due at
// MaxAge is run.
func (p Policy) Exhausted(next int, first, sent, now time.Time) (Reason, bool) {
	if next <= 1 {
		return 0, false
	}
	if p.attemptsUsed(next - 1) {
		return ReasonAttempts, true
	}
	if origin, limit := p.ageLimit(first, sent); now.Sub(origin)-ageGrace > limit {
		return ReasonAge, true
	}
	return 0, false
}

// Wait returns the jittered wait before retry n = 1, 2, ... of the message with
// this seed, by the policy's own Backoff and Jitter: rules and limits are not
// considered.
func (p Policy) Wait(seed string, n int) time.Duration {
	return p.Jitter.wait(p.Backoff, newStream(seed), max(n, 1))
}

// Bounds returns the least and the longest wait before retry n = 1, 2, ... that a
// message can draw from the policy's own Backoff and Jitter: rules and limits are
// not considered. Both ends are possible draws.
func (p Policy) Bounds(n int) (least, longest time.Duration) {
	return p.Jitter.bounds(p.Backoff, max(n, 1))
}

// WithDefaults returns the policy with every default filled in, also those of its backoffs. It
// decides the same, and is meant for display.
func (p Policy) WithDefaults() Policy {
	p.Backoff = backoffWithDefaults(p.Backoff)
	if p.MaxAttempts == 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	if p.MaxAge == 0 {
		p.MaxAge = DefaultMaxAge
	}
	p.Rules = slices.Clone(p.Rules)
	for i := range p.Rules {
		p.Rules[i].Backoff = backoffWithDefaults(p.Rules[i].Backoff)
	}
	return p
}
