package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// Run is one run of a handler, after its end.
type Run struct {
	Started  time.Time
	Duration time.Duration
	// Err is what the handler returned: [ErrNoReturn] if it did not.
	Err error
	// Asked is what the handler asked for: OutcomeDelete, OutcomeRetry,
	// OutcomeRelease or OutcomeDeadLetter; or OutcomeLost, if it was interrupted since
	// the lease has ended. It is fit for a metric label. What the consumer makes of a
	// retry, the policy's limits decide: [reprise.Observer] tells.
	Asked reprise.Outcome
}

// ErrNoReturn is the error of a run that panicked or called [runtime.Goexit]. A
// [Recover] inside makes of a panic an error that tells more.
var ErrNoReturn = errors.New("middleware: the handler panicked or ended its goroutine")

// Metrics calls record after each run of the handler, on its goroutine: the place
// for a counter and a histogram of this handler's own. What the whole consumer
// does, [reprise.Observer] tells.
func Metrics(record func(ctx context.Context, m *reprise.Message, r Run)) Middleware {
	required("Metrics", record == nil)
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			r := Run{Started: time.Now(), Err: ErrNoReturn}
			// Deferred, and not recovering: whoever recovers shall see the panic's stack.
			defer func() {
				r.Duration = time.Since(r.Started)
				r.Asked = asked(ctx, r.Err)
				record(ctx, m, r)
			}()
			r.Err = next.Handle(ctx, m)
			return r.Err
		})
	}
}

// unlimited is a policy that gives nothing up by itself: what it decides is what
// the error asks for.
var unlimited = retry.Policy{MaxAttempts: -1, MaxAge: -1}

// asked returns what a handler asks for that ends with err. It reads the error as
// the consumer does.
func asked(ctx context.Context, err error) reprise.Outcome {
	if err == nil {
		return reprise.OutcomeDelete
	}
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		switch {
		case errors.Is(cause, reprise.ErrStopping):
			return reprise.OutcomeRelease
		case errors.Is(cause, reprise.ErrLeaseLost):
			return reprise.OutcomeLost
		}
	}
	switch unlimited.Decide(retry.Failure{N: 1, Err: err}).Action {
	case retry.ActionRelease:
		return reprise.OutcomeRelease
	case retry.ActionDeadLetter:
		return reprise.OutcomeDeadLetter
	}
	return reprise.OutcomeRetry
}

// required panics, for a constructor, if the function that it is about is missing.
func required(constructor string, missing bool) {
	if missing {
		panic("middleware: " + constructor + " was given a nil function: pass one, or leave the middleware out")
	}
}
