package reprise

import "context"

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

// HandlerFunc is an adapter that makes an ordinary function a [Handler].
type HandlerFunc func(ctx context.Context, m *Message) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m *Message) error { return f(ctx, m) }

// MessageFrom returns the message of the handler that got ctx, or a context derived from it.
// It is for code that a handler calls, and for functions passed to [JSON], which do not get
// the message. For a message of a batch, pass the context that [MessageContext] returns. The
// result is nil outside of a handler.
func MessageFrom(ctx context.Context) *Message {
	m, _ := ctx.Value(messageKey{}).(*Message)
	return m
}

// messageKey is the key of a context's message.
type messageKey struct{}

// withMessage returns a context whose message is m: in a consumer ctx itself, otherwise a new
// one, for example in a test, or behind middleware that replaces the message.
func withMessage(ctx context.Context, m *Message) context.Context {
	if MessageFrom(ctx) == m {
		return ctx
	}
	return context.WithValue(ctx, messageKey{}, m)
}
