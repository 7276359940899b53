package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise"
)

// ErrTimeout is in the [context.Cause] of a handler's context that [Timeout] has ended, and in the
// error of an attempt that was interrupted by it. It is a [context.DeadlineExceeded], and so counts
// as unavailability: see [reprise.IsUnavailable].
var ErrTimeout = fmt.Errorf("middleware: the handler took too long: %w", context.DeadlineExceeded)

// Timeout ends the context of the handler inside it after limit. The attempt then ends as the
// handler does: one that returns the context's error has failed, and is retried by policy; a
// handler that ignores its context keeps running, because nothing can stop it.
//
// The cause distinguishes it from other ends: [ErrTimeout] here, [reprise.ErrStopping] for a stop,
// [reprise.ErrLeaseLost] for a lost lease. [reprise.Config].HandlerTimeout does the same for the
// handler with all its middleware; Timeout is for a part of it, or for one handler of several.
//
// A limit that is not positive is an error.
func Timeout(limit time.Duration) (Middleware, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("middleware: the time limit is %v: set a positive duration, or leave the middleware out", limit)
	}
	cause := fmt.Errorf("%w (limit %v)", ErrTimeout, limit)
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
			defer cancel()
			err := next.Handle(ctx, m)
			if passesOn(err) && context.Cause(ctx) == cause { //nolint:errorlint // this very limit, not one around it
				return fmt.Errorf("%w: %w", cause, err)
			}
			return err
		})
	}, nil
}

// passesOn reports whether err may be only the end of a context.
func passesOn(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
