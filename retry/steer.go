package retry

import (
	"errors"
	"fmt"
	"time"
)

// Permanent marks err as one that no retry can fix: the message is dead-lettered now, even if
// another part of the error asks for something else. It unwraps to err.
//
// Like [RetryAfter] and [Release] it never returns nil, not even for a nil err: a handler that
// calls it does not want its message deleted.
func Permanent(err error) error {
	return &steeringError{verdict: ReasonPermanent, cause: err}
}

// RetryAfter asks for the next attempt not before d after the end of this one,
// instead of the policy's wait, as a Retry-After header does. It is served
// exactly, without jitter; the policy's limits apply. A negative d counts as 0. The result unwraps
// to err and is never nil.
func RetryAfter(d time.Duration, err error) error {
	return &steeringError{verdict: ReasonRetryAfter, wait: max(d, 0), cause: err}
}

// Release asks for the message to be given back for d without an attempt being
// counted, for work that should not start now rather than work that failed. No
// limit of the policy applies. A negative d counts as 0. The result unwraps to reason and is never
// nil.
func Release(d time.Duration, reason error) error {
	return &steeringError{verdict: ReasonRelease, wait: max(d, 0), cause: reason}
}

// steeringError is the common type of all verdicts, so that one search handles the most frequent
// case, an error without a verdict.
type steeringError struct {
	verdict Reason
	wait    time.Duration
	cause   error
}

func (e *steeringError) Error() string {
	var text string
	switch e.verdict {
	case ReasonPermanent:
		text = "permanent"
	case ReasonRetryAfter:
		text = fmt.Sprintf("retry after %v", e.wait)
	case ReasonRelease:
		text = fmt.Sprintf("release for %v", e.wait)
	}
	if e.cause == nil {
		return text
	}
	return text + ": " + e.cause.Error()
}

func (e *steeringError) Unwrap() error { return e.cause }

// errPermanent matches every Permanent, in the sense of [errors.Is]: a search for it ignores the
// verdicts around and beside it.
var errPermanent = errors.New("permanent")

func (e *steeringError) Is(target error) bool {
	return target == errPermanent && e.verdict == ReasonPermanent
}

// steer returns the verdict in a handler's error: a Permanent anywhere, else the
// outermost, else a zero one.
func steer(err error) (verdict Reason, wait time.Duration) {
	e, ok := errors.AsType[*steeringError](err)
	switch {
	case !ok:
		return 0, 0
	case errors.Is(err, errPermanent):
		return ReasonPermanent, 0
	}
	return e.verdict, e.wait
}
