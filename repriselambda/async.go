package repriselambda

import (
	"context"
	"time"
)

// PayloadHandler is the Handler of aws-lambda-go's package lambda: what
// lambda.NewHandler makes of a function of any shape that lambda.Start takes.
type PayloadHandler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Async returns h for a function that is invoked asynchronously and has a retry
// handler behind it: it never sees the envelope in which retries come, only
// the payload that was sent, to the byte. [AttemptFrom] tells which attempt it is.
//
//	lambda.Start(repriselambda.Async(lambda.NewHandler(handle)))
//
// A payload that is no envelope is passed on as it is, and is the first attempt, also
// if it has a member of that name: an envelope is an object of _retry_metadata and
// _original_payload alone, with a retry and a time in the former. Results and errors
// are those of h.
func Async(h PayloadHandler) PayloadHandler { return async{h} }

type async struct{ handler PayloadHandler }

// Invoke implements [PayloadHandler].
func (a async) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	attempt := AsyncAttempt{Number: 1}
	if w, ok := unwrap(payload); ok {
		payload = w.payload
		attempt = AsyncAttempt{Number: w.retry + 1, FirstFailed: w.failed}
	}
	return a.handler.Invoke(context.WithValue(ctx, attemptKey{}, attempt), payload)
}

// AsyncAttempt is one of the runs of a function for one event.
type AsyncAttempt struct {
	// Number is 1 for the first run, 2 for the second.
	Number int
	// FirstFailed is when Lambda first gave the event up, to the second: when the first
	// run had failed or, if it was not run in time, when it was too old for that. It is
	// zero if the event comes from Lambda itself.
	FirstFailed time.Time
}

type attemptKey struct{}

// AttemptFrom returns which attempt ctx is of: the first, unless a function under
// [Async] got it in an envelope. So it is the first always where the retry
// handler invokes directly, without envelopes.
func AttemptFrom(ctx context.Context) AsyncAttempt {
	if a, ok := ctx.Value(attemptKey{}).(AsyncAttempt); ok {
		return a
	}
	return AsyncAttempt{Number: 1}
}
