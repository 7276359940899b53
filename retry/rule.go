package retry

import "errors"

// Rule replaces the policy's backoff and jitter for the errors that it matches. The policy's limits
// still apply.
type Rule struct {
	// Match must be pure and quick: it is called at every failure.
	Match func(error) bool
	// Backoff and Jitter have the zero values of [Policy]: Exponential{}, Full.
	Backoff Backoff
	Jitter  Jitter
}

// On returns a Rule for errors that are target, by [errors.Is].
func On(target error, backoff Backoff, jitter Jitter) Rule {
	match := func(err error) bool { return errors.Is(err, target) }
	return Rule{Match: match, Backoff: backoff, Jitter: jitter}
}

// OnType returns a Rule for errors of type E, by [errors.AsType].
func OnType[E error](backoff Backoff, jitter Jitter) Rule {
	match := func(err error) bool { _, ok := errors.AsType[E](err); return ok }
	return Rule{Match: match, Backoff: backoff, Jitter: jitter}
}
