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
	// Err is the handler's error: [ErrNoReturn] if it did not return.
	Err error
	// Asked is the verdict of the handler: OutcomeDelete, OutcomeRetry, OutcomeRelease or
	// OutcomeDeadLetter; or OutcomeLost, if it was interrupted because the lease has ended. It is
	// suitable as a metric label. The policy's limits decide what happens to a retry:
	// [reprise.Observer] reports it.
	Asked reprise.Outcome
}

// ErrNoReturn is the error of a run that panicked or called [runtime.Goexit]. An inner [Recover]
// turns a panic into an error with more details.
var ErrNoReturn = errors.New("middleware: the handler panicked or ended its goroutine")

// Metrics calls record after each run of the handler, on its goroutine: use it for a counter and a
// histogram of this handler. [reprise.Observer] reports on the whole consumer.
func Metrics(record func(ctx context.Context, m *reprise.Message, r Run)) Middleware {
	required("Metrics", record == nil)
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			r := Run{Started: time.Now(), Err: ErrNoReturn}
			// This is deferred and does not recover, so that code which recovers sees the panic's
			// stack.
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

// unlimited is a policy without limits: its decision is exactly what the error asks for.
var unlimited = retry.Policy{MaxAttempts: -1, MaxAge: -1}

// asked returns the verdict of a handler that ends with err. It reads the error as the consumer
// does.
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

// required panics, for a constructor, if the function is nil.
func required(constructor string, missing bool) {
	if missing {
		panic("middleware: " + constructor + " was given a nil function: pass one, or leave the middleware out")
	}
}
