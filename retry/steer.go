package retry

import (
	"fmt"
	"time"
)

// Permanent marks err as one that no retry can mend: the message is
// dead-lettered now, even if another part of the error says otherwise. It
// unwraps to err.
//
// Like [RetryAfter] and [Release] it never returns nil, not even for a nil err:
// a handler that steers does not want its message deleted.
func Permanent(err error) error { return &permanentError{cause: err} }

// RetryAfter asks for the next attempt not before d after the end of this one,
// instead of the policy's wait, as a Retry-After header does. It is served
// exactly, without jitter; the policy's limits apply. A negative d is taken as
// 0. It unwraps to err and never returns nil.
func RetryAfter(d time.Duration, err error) error {
	return &delayError{cause: err, wait: max(d, 0)}
}

// Release asks for the message to be given back for d without an attempt being
// counted, for work that should not start now rather than work that failed. No
// limit of the policy applies. A negative d is taken as 0. It unwraps to reason
// and never returns nil.
func Release(d time.Duration, reason error) error {
	return &delayError{cause: reason, wait: max(d, 0), release: true}
}

// steering is an error by which a handler steers: one search for it clears the
// common case, that there is none.
type steering interface {
	error
	steers()
}

type permanentError struct{ cause error }

func (e *permanentError) Error() string { return because("permanent", e.cause) }
func (e *permanentError) Unwrap() error { return e.cause }
func (*permanentError) steers()         {}

// delayError is RetryAfter or Release: one type, so that Decide searches once
// for both and the outermost wins.
type delayError struct {
	cause   error
	wait    time.Duration
	release bool
}

func (e *delayError) Error() string {
	if e.release {
		return because(fmt.Sprintf("release for %v", e.wait), e.cause)
	}
	return because(fmt.Sprintf("retry after %v", e.wait), e.cause)
}

func (e *delayError) Unwrap() error { return e.cause }
func (*delayError) steers()         {}

func because(verdict string, cause error) string {
	if cause == nil {
		return verdict
	}
	return verdict + ": " + cause.Error()
}
