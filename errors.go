package reprise

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

var (
	// ErrLeaseLost is the [context.Cause] of a handler's context when the lease
	// on its message has ended: another consumer may hold the message now. What
	// the handler returns is then ignored, except success, which still deletes.
	ErrLeaseLost = errors.New("reprise: the lease on the message was lost")

	// ErrStopping is the [context.Cause] of a handler's context when the consumer
	// is stopping and its budget is nearly used up. A handler that returns the
	// context's error then releases its message: no attempt is counted.
	ErrStopping = errors.New("reprise: the consumer is stopping")

	// ErrDrainTimeout is returned by [Consumer.Run] when the stop budget ended
	// before every message was settled. [Report] says what became of each.
	ErrDrainTimeout = errors.New("reprise: the stop budget ended before every message was settled")
)

// Permanent marks err as one that no retry can fix: the message is dead-lettered now. The
// result unwraps to err. See [retry.Permanent].
func Permanent(err error) error { return retry.Permanent(err) }

// RetryAfter asks for the next attempt after d at the earliest, instead of after the policy's
// backoff. The policy's limits still apply. The result unwraps to err. See
// [retry.RetryAfter].
func RetryAfter(d time.Duration, err error) error { return retry.RetryAfter(d, err) }

// Release gives the message back to the queue for d without counting an
// attempt, for work that should not start now rather than work that failed.
// SQS still counts the receive, so repeated releases of a message wait longer
// each time: at least 1 s, doubling up to 5 min. The result unwraps to reason. See
// [retry.Release].
//
// No attempt is counted exactly if the same process receives the message next, or if a copy
// with its history takes its place. Any other process, and each invocation of a Lambda function,
// may count the first release as an attempt, so that Message.Attempt is one too high; further
// releases add nothing, because copies are sent for them, unless Config.Via is ViaVisibility.
func Release(d time.Duration, reason error) error { return retry.Release(d, reason) }

// PanicError is the error of an attempt whose handler panicked.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the panicking goroutine's stack. A consumer logs each panic, but one stack in
	// 30 seconds at most; its observer gets them all.
	Stack []byte
}

// Error returns the panic's value as text, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// Unwrap returns the panic's value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errGoexit is the error of an attempt whose handler ended its goroutine.
var errGoexit = errors.New("handler called runtime.Goexit")
