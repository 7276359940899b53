package reprise

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Observer is told what a [Consumer] does. Nil funcs are skipped, so that new events break no
// program, and a consumer without an observer has no cost. The funcs are called concurrently
// and must not block: they run in the consumer's own goroutines.
type Observer struct {
	// Received is called for each message received, perhaps while its handler
	// already runs.
	Received func(ctx context.Context, e Received)
	// Starting is called before each run of the handler, on its goroutine. The handler gets
	// the context that it returns, which must be ctx or derive from it; Attempt gets it
	// too, without its end. The trail is a text for the message's next attempt: telemetry
	// can keep its trace context there. It has at most 128 printable ASCII characters
	// without spaces, and becomes [Message].Trail at the end of this run. If it is empty
	// or not valid, the old one stays. Before a batch Starting is called for each message,
	// and [MessageContext] returns what it returned.
	Starting func(ctx context.Context, m *Message) (handlerCtx context.Context, trail string)
	// Attempt is called after each run of the handler.
	Attempt func(ctx context.Context, e Attempt)
	// Settled is called when SQS has acknowledged the settlement of a message, or when the
	// message was lost.
	Settled func(ctx context.Context, e Settled)
	// Call is called after each request to SQS, so that requests can be counted and timed.
	Call func(ctx context.Context, e Call)
	// Expiring is called when a message was hidden, and its queue will drop it before it can
	// be tried again.
	Expiring func(ctx context.Context, e Expiring)
	// Finding is called at the start of Run for each conflict between the policy and the
	// queue, and whenever one is found later. A denied permission is found by the first
	// call that needs it; the finding says which feature is off without it.
	Finding func(ctx context.Context, f plan.Finding)
	// Outage is called when a breaker opens, half-opens, ramps up or closes: in
	// that order, one call at a time.
	Outage func(ctx context.Context, e OutageEvent)
	// GivingUp is called when many different messages are given up and hardly one succeeds,
	// and again when that is over: in that order, one call at a time.
	GivingUp func(ctx context.Context, e GivingUp)
	// Stopped is called once, at the end of Run.
	Stopped func(r Report)
}

// Received is a message that has just been received.
type Received struct {
	Message *Message
	// Duplicate reports whether the consumer already held the same message: it is not run
	// twice, and the newer receipt handle is used.
	Duplicate bool
}

// Attempt is one run of the handler, at its end.
type Attempt struct {
	Message *Message
	// Started and Duration are on the consumer's clock.
	Started  time.Time
	Duration time.Duration
	// Err is what the handler returned; a *[PanicError] if it panicked.
	Err error
	// Outcome is what the consumer will now do with the message.
	Outcome Outcome
	// Reason says why. It is from a closed set, fit for a metric label.
	Reason retry.Reason
	// Due is when the message is due again, on the consumer's clock. It is zero unless the
	// Outcome is OutcomeRetry, OutcomeRelease or OutcomeHold. With OutcomeHold it is also
	// zero if the message only waits for the end of an outage.
	Due time.Time
}

// Settled is the settlement of a message, after which the consumer no longer holds it.
type Settled struct {
	Message *Message
	Outcome Outcome
	// Requeued reports whether a copy has replaced the message, with another id and the same
	// OriginID.
	Requeued bool
	// Reason says why the message did not succeed. It is from a closed set, fit for a metric
	// label: 0 for a success, and for a message that was lost before its verdict.
	Reason retry.Reason
	// Due is when the message becomes visible again, on the consumer's clock: zero unless
	// it goes back to its queue. It can be up to a minute or 1 % before the policy's time,
	// because SQS hides no message for more than 12 hours.
	Due time.Time
	// Requests is how many requests it took to settle the message.
	Requests int
	// Err is why settling failed: nil unless the Outcome is OutcomeLost.
	Err error
}

// Expiring is a message that its queue will drop before it can be tried again: there is no
// dead-letter queue for it, and no copy can replace it.
type Expiring struct {
	Message *Message
	// At is when the queue drops it, on the consumer's clock.
	At time.Time
	// Outcome is what happened to the message: OutcomeKeep if it was given up, otherwise why
	// it waits.
	Outcome Outcome
}

// Call is one request to SQS.
type Call struct {
	Operation Operation
	// Entries is how many messages the request received, or how many entries it had.
	Entries int
	// Failed is how many entries SQS refused in a request that succeeded.
	Failed   int
	Duration time.Duration
	Err      error
}

// Operation names an SQS action. It is a closed set, fit for a metric label.
type Operation uint8

// The actions that a consumer calls.
const (
	OpReceive Operation = iota
	OpDelete
	OpVisibility
	OpHeartbeat // ChangeMessageVisibilityBatch too, to renew leases
	OpSend
	OpAttributes
	operations
)

var operationNames = [operations]string{"ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "Heartbeat", "SendMessageBatch", "GetQueueAttributes"}

// String returns the action's name, and Heartbeat for renewals.
func (o Operation) String() string { return nameOf(operationNames[:], uint8(o), "Operation") }

// Outcome is what happens to a message. It is a closed set, fit for a metric label.
type Outcome uint8

// The ways in which a message leaves a consumer.
const (
	// OutcomeDelete: the work is done, the message is deleted.
	OutcomeDelete = Outcome(consumer.OutcomeDelete)
	// OutcomeRetry: hidden until its backoff ends.
	OutcomeRetry = Outcome(consumer.OutcomeRetry)
	// OutcomeRelease: given back to the queue, and no attempt is counted.
	OutcomeRelease = Outcome(consumer.OutcomeRelease)
	// OutcomeDeadLetter: copied to the dead-letter queue with its story, and deleted.
	OutcomeDeadLetter = Outcome(consumer.OutcomeDeadLetter)
	// OutcomeKeep: given up, but there is no dead-letter queue: hidden as long as
	// SQS permits, and not run again by this process.
	OutcomeKeep = Outcome(consumer.OutcomeKeep)
	// OutcomeLost: another consumer may have it; this one stopped working on it.
	OutcomeLost = Outcome(consumer.OutcomeLost)
	// OutcomeHold: held under its lease to run again. With ReasonUnavailable a breaker is
	// open, and no attempt is counted. With ReasonRelease a message before it in its group
	// has failed in the same batch. Otherwise it is held for a short wait: see FIFOHold. It
	// is an outcome of attempts only: the message is not settled.
	OutcomeHold = Outcome(consumer.OutcomeHold)
	// OutcomePark: received before it was due, because its wait is longer than SQS can hide
	// a message, and hidden again. Its handler did not run.
	OutcomePark = Outcome(consumer.OutcomePark)
)

// String returns the outcome's name, fit for a metric label.
func (o Outcome) String() string { return nameOf(consumer.OutcomeNames[:], uint8(o), "Outcome") }

// nameOf returns the name of a value of an enumeration. A value without a name, for example
// from another version of the library, is printed as its type and number.
func nameOf(names []string, value uint8, kind string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", kind, value)
}
