package repriselambda

import (
	"context"
	"time"
)

// PayloadHandler is the Handler of aws-lambda-go's package lambda: lambda.NewHandler makes one of
// any function that lambda.Start accepts.
type PayloadHandler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Async wraps h for a function that is invoked asynchronously and retried by a retry handler: h
// never sees the envelope of a retry, only the payload that was sent, byte for byte. [AttemptFrom]
// returns which attempt it is.
//
//	lambda.Start(repriselambda.Async(lambda.NewHandler(handle)))
//
// A payload that is not an envelope is passed on unchanged, as the first attempt, even if it has a
// member of one of these names: an envelope is an object with exactly the members _retry_metadata
// and _original_payload, with a retry and a time in the former. Results and errors are those of h.
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
	// FirstFailed is when Lambda first gave the event up, in whole seconds: when the first run had
	// failed or, if it did not run in time, when the event was too old. It is zero if the event
	// comes from Lambda itself.
	FirstFailed time.Time
}

type attemptKey struct{}

// AttemptFrom returns the attempt to which ctx belongs: the first, unless a function under [Async]
// got it in an envelope. So it is always the first if the retry handler invokes directly, without
// envelopes.
func AttemptFrom(ctx context.Context) AsyncAttempt {
	if a, ok := ctx.Value(attemptKey{}).(AsyncAttempt); ok {
		return a
	}
	return AsyncAttempt{Number: 1}
}
