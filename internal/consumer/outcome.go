package consumer

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Outcome is what becomes of a message.
type Outcome uint8

// The outcomes. Package reprise has the same, with what they mean to users.
const (
	OutcomeDelete     Outcome = iota // its work is done
	OutcomeRetry                     // it comes again when its backoff has ended
	OutcomeRelease                   // it is given back, and no attempt is counted
	OutcomeDeadLetter                // it is given up
	OutcomeKeep                      // it is given up, and no dead-letter queue takes it
	OutcomeLost                      // another consumer may have it
	OutcomeHold                      // of an attempt only: it is held, to be run again
	OutcomePark                      // it was received before it was due
	outcomes
)

var outcomeNames = [outcomes]string{"delete", "retry", "release", "dead-letter", "keep", "lost", "hold", "park"}

func (o Outcome) String() string { return outcomeNames[o] }

// FIFO says what becomes of a message group while its head has failed.
type FIFO uint8

// The choices. Package reprise has the same, with what they mean to users.
const (
	FIFOHold  FIFO = iota // what was received is held, for short waits
	FIFOBlock             // all is given back to the queue
	FIFOSkip              // the head is given up
)

// Opinion is what the user's code, the methods of the error and the functions of the
// policy, says of an attempt's end. The zero Opinion is of a success.
type Opinion struct {
	Err         error // its text is known: no method of it blocks or panics
	Cut         Cut
	Unavailable bool // what the handler needs was not there
	Decision    retry.Decision
}

// Cut says whether a handler's error only passes on that its context has ended, and why
// that has.
type Cut uint8

// The causes.
const (
	CutNot       Cut = iota // the error is the handler's own
	CutStopping             // the consumer stops
	CutLeaseLost            // the message's lease has ended
	CutElse                 // the handler's timeout, or a cause of the user's
)

// Verdict is what the end of an attempt decides.
type Verdict struct {
	Outcome Outcome
	Reason  retry.Reason
	// Due is when the message should be visible again, on our clock; zero with
	// OutcomeRelease: at once.
	Due time.Time
	Err error

	unavailable bool  // the attempt failed for want of what the handler needs
	requeue     cause // why a copy is to take the message's place
	alone       bool  // the copy is to run alone
	carried     bool  // hidden for now; a copy will carry it on in time
}

// comesAgain reports whether the message goes back to its queue.
func (v *Verdict) comesAgain() bool {
	return v.Outcome == OutcomeRetry || v.Outcome == OutcomeRelease || v.Outcome == OutcomePark
}

// Failure says why something that SQS was asked to do was not done. Kinds are not exclusive.
// The zero Failure stands for success.
type Failure struct {
	Err   error
	Kinds FailureKind
}

// FailureKind is a set of properties of a failure.
type FailureKind uint16

// The properties.
const (
	// OfEntry: SQS refused this entry of a request that it otherwise answered.
	OfEntry FailureKind = 1 << iota
	// BySender: of an entry: the fault is with the entry itself, and not a throttle.
	BySender
	// Rejected: of a request: SQS has answered that the client is at fault, so nothing of
	// it was done. Without it the request may have been carried out all the same.
	Rejected
	// Unacceptable: SQS refuses what is in the request; sent again it is refused again.
	Unacceptable
	// Lasting: somebody has to grant a permission, mend credentials or create a queue.
	Lasting
	// Denied: a permission is missing; DeniedByKey: that to use the queue's key.
	Denied
	DeniedByKey
	// OverLimit: the queue's quota of messages in flight is used up.
	OverLimit
	// Damaged: it was not asked: the message is not what SQS computed its digest of.
	Damaged
)

func (f *Failure) is(k FailureKind) bool { return f.Kinds&k != 0 }

// ErrUnanswered is the error of an entry that a reply does not mention.
var ErrUnanswered = errors.New("the reply did not mention this entry")
