package retry

import "fmt"

// Action is what happens to a message after a failed attempt. Zero is not an Action, so that a zero
// Decision is not mistaken for a real one.
type Action uint8

const (
	// ActionRetry runs the handler again, not before Decision.At.
	ActionRetry Action = iota + 1
	// ActionRelease gives the message back until Decision.At; no attempt counts.
	ActionRelease
	// ActionDeadLetter gives the message up.
	ActionDeadLetter
)

var actionNames = [...]string{
	ActionRetry:      "retry",
	ActionRelease:    "release",
	ActionDeadLetter: "dead-letter",
}

// String returns the action's name in logs and metrics.
func (a Action) String() string {
	if a == 0 || int(a) >= len(actionNames) {
		return fmt.Sprintf("Action(%d)", uint8(a))
	}
	return actionNames[a]
}

// Reason is why a Decision was made: a closed set, suitable as a metric label. Zero is not a
// Reason.
type Reason uint8

const (
	// ReasonPolicy retries by the policy's backoff, or by the rule for the error.
	ReasonPolicy Reason = iota + 1
	// ReasonRetryAfter retries when the handler asked, by [RetryAfter].
	ReasonRetryAfter
	// ReasonRelease releases because the handler asked, by [Release].
	ReasonRelease
	// ReasonPermanent dead-letters because the handler asked, by [Permanent].
	ReasonPermanent
	// ReasonAttempts dead-letters because MaxAttempts is reached.
	ReasonAttempts
	// ReasonAge dead-letters because MaxAge is reached.
	ReasonAge
	// ReasonReceives dead-letters because the queue's own maxReceiveCount leaves
	// no further receive. Decide never returns it: only a consumer can know.
	ReasonReceives
	// ReasonUnavailable holds or releases because a dependency of the handler is known to be
	// unavailable. Decide never returns it: only a consumer can know.
	ReasonUnavailable
	// ReasonRetention dead-letters because the queue's retention would end before the
	// message is run again. Decide never returns it: only a consumer can know.
	ReasonRetention
	// ReasonSkip dead-letters because of one failure, so that the message's group on
	// a FIFO queue goes on. Decide never returns it: only a consumer can know.
	ReasonSkip
	// ReasonCrash dead-letters because the message crashes the process that runs it. Decide never
	// returns it: only a consumer can know.
	ReasonCrash
)

var reasonNames = [...]string{
	ReasonPolicy:     "policy",
	ReasonRetryAfter: "retry-after",
	ReasonRelease:    "release",
	ReasonPermanent:  "permanent",
	ReasonAttempts:   "attempts",
	ReasonAge:        "age",
	ReasonReceives:   "receives",

	ReasonUnavailable: "unavailable",
	ReasonRetention:   "retention",
	ReasonSkip:        "skip",
	ReasonCrash:       "crash",
}

// String returns the reason's name in logs and metrics.
func (r Reason) String() string {
	if r == 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return reasonNames[r]
}
