package reprise

import (
	"context"
	"encoding/json"
	"fmt"
)

// Handler works on one message. What it returns settles the message:
//
//   - nil deletes it;
//   - an ordinary error retries it after the policy's backoff;
//   - [Permanent] dead-letters it now;
//   - [RetryAfter] retries it not before the given wait;
//   - [Release] gives it back without counting an attempt.
//
// A panic counts as an error and costs one attempt. Handle is called
// concurrently, at most [Config].Concurrency calls at once, and on FIFO queues
// never for two messages of one group at the same time.
//
// The context ends when the handler should stop: [context.Cause] is
// [ErrLeaseLost] when another consumer may now hold the message, [ErrStopping]
// when the consumer's stop budget is nearly used up, and
// [context.DeadlineExceeded] after [Config].HandlerTimeout. It also ends when
// Handle returns.
type Handler interface {
	Handle(ctx context.Context, m *Message) error
}

// HandlerFunc lets an ordinary function be a [Handler].
type HandlerFunc func(ctx context.Context, m *Message) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m *Message) error { return f(ctx, m) }

// JSON returns a Handler that decodes the message's body into a T and passes
// it to f. A body that does not decode is a [Permanent] error: running the
// handler again cannot mend it.
func JSON[T any](f func(ctx context.Context, v T) error) Handler {
	return HandlerFunc(func(ctx context.Context, m *Message) error {
		var v T
		if err := json.Unmarshal([]byte(m.Body), &v); err != nil {
			return Permanent(fmt.Errorf("decoding the body as %T: %w", v, err))
		}
		return f(ctx, v)
	})
}
