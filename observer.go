package reprise

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Observer is told what a [Consumer] does. Nil funcs are skipped, so new events
// break nobody, and a consumer without an observer pays nothing. The funcs are
// called concurrently and must not block: they run on the consumer's own paths.
type Observer struct {
	// Received is called for each message received, perhaps while its handler
	// already runs.
	Received func(ctx context.Context, e Received)
	// Starting is called before each run of the handler, on its goroutine. The handler
	// gets the context that it returns, which must be ctx or derive from it, and so
	// does Attempt, without its end. The trail, at most 128 printable ASCII characters
	// without spaces, is what [Message].Trail says in what is told of this run from its
	// end on, and at the message's next attempt: telemetry leaves its trace context
	// there. An empty or longer one leaves the old one as it is. Before a batch it is
	// called for each message: what it returns is then [MessageContext].
	Starting func(ctx context.Context, m *Message) (handlerCtx context.Context, trail string)
	// Attempt is called after each run of the handler.
	Attempt func(ctx context.Context, e Attempt)
	// Settled is called when SQS has acknowledged what became of a message, or
	// when that could not be done.
	Settled func(ctx context.Context, e Settled)
	// Call is called after each request to SQS: the cost meter.
	Call func(ctx context.Context, e Call)
	// Expiring is called when a message was hidden that its queue will drop before it
	// can be tried again.
	Expiring func(ctx context.Context, e Expiring)
	// Finding is called at the start of Run for each conflict between the policy
	// and the queue, and whenever one appears later: a denied permission, which SQS
	// tells of only by a call that needs it, with what is off for want of it.
	Finding func(ctx context.Context, f plan.Finding)
	// Outage is called when a breaker opens, half-opens, ramps up or closes: in
	// that order, one call at a time.
	Outage func(ctx context.Context, e OutageEvent)
	// GivingUp is called when many different messages are given up and hardly one
	// succeeds, and again when that is over: in that order, one call at a time.
	GivingUp func(ctx context.Context, e GivingUp)
	// Stopped is called once, at the end of Run.
	Stopped func(r Report)
}

// Received is a message that has just been received.
type Received struct {
	Message *Message
	// Duplicate says that the same message was already in this consumer's hands:
	// it is not run twice, the newer receipt handle is used.
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
	// Reason says why, as a closed set fit for a metric label.
	Reason retry.Reason
	// Due is when the message is due again, on the consumer's clock: zero unless
	// the Outcome is OutcomeRetry, OutcomeRelease or OutcomeHold, and with the last
	// also where only the end of an outage is waited for.
	Due time.Time
}

// Settled is the end of a message's stay with this consumer.
type Settled struct {
	Message *Message
	Outcome Outcome
	// Requeued says that a copy has taken the message's place, under another id and
	// with the same OriginID.
	Requeued bool
	// Reason says why it is not deleted for its success, as a closed set fit for a
	// metric label: 0 for a success, and for what was lost before it was decided on.
	Reason retry.Reason
	// Due is when the message becomes visible again, on the consumer's clock:
	// zero unless it is to come again. It can lie up to a minute or 1 % before the
	// policy's time where SQS's 12-hour rule cuts the wait short.
	Due time.Time
	// Requests is how many requests it took to settle the message.
	Requests int
	// Err is why settling failed: nil unless the Outcome is OutcomeLost.
	Err error
}

// Expiring is a message that its queue will drop before it can be tried again:
// there is no dead-letter queue to put it in, and no copy can take its place.
type Expiring struct {
	Message *Message
	// At is when the queue drops it, on the consumer's clock.
	At time.Time
	// Outcome is what became of the message: OutcomeKeep if it was given up, else
	// why it waits.
	Outcome Outcome
}

// Call is one request to SQS.
type Call struct {
	Operation Operation
	// Entries is how many messages the request received or concerned.
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

// Outcome is what becomes of a message. It is a closed set, fit for a metric
// label.
type Outcome uint8

// The ways in which a message leaves a consumer.
const (
	// OutcomeDelete: the work is done, the message is deleted.
	OutcomeDelete = Outcome(consumer.OutcomeDelete)
	// OutcomeRetry: hidden until its backoff ends.
	OutcomeRetry = Outcome(consumer.OutcomeRetry)
	// OutcomeRelease: given back, no attempt counted.
	OutcomeRelease = Outcome(consumer.OutcomeRelease)
	// OutcomeDeadLetter: copied to the dead-letter queue with its story, deleted.
	OutcomeDeadLetter = Outcome(consumer.OutcomeDeadLetter)
	// OutcomeKeep: given up, but there is no dead-letter queue: hidden as long as
	// SQS permits, and not run again by this process.
	OutcomeKeep = Outcome(consumer.OutcomeKeep)
	// OutcomeLost: another consumer may have it; nothing more was done with it.
	OutcomeLost = Outcome(consumer.OutcomeLost)
	// OutcomeHold: held under its lease to be run again: with ReasonUnavailable since
	// a breaker is open, and no attempt is counted; otherwise for a short wait, see
	// FIFOHold, or, with ReasonRelease, since one before it of its group has failed in
	// the same batch. It is the outcome of an attempt only: the message stays.
	OutcomeHold = Outcome(consumer.OutcomeHold)
	// OutcomePark: received before it was due, and hidden again: its wait is longer
	// than SQS hides a message. Its handler did not run.
	OutcomePark = Outcome(consumer.OutcomePark)

	outcomes = OutcomePark + 1
)

var outcomeNames = [outcomes]string{"delete", "retry", "release", "dead-letter", "keep", "lost", "hold", "park"}

// String returns the outcome's name, fit for a metric label.
func (o Outcome) String() string { return nameOf(outcomeNames[:], uint8(o), "Outcome") }

// nameOf is the name of a value of an enumeration. What has none, since it comes from
// another version of the library, say, is its type and number.
func nameOf(names []string, value uint8, kind string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", kind, value)
}
