package consumer

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/retry"
)

// Outcome is what happens to a message.
type Outcome uint8

// The outcomes. Package reprise has the same, with what they mean to users.
const (
	OutcomeDelete     Outcome = iota // its work is done
	OutcomeRetry                     // it is received again when its backoff has ended
	OutcomeRelease                   // it is given back, and no attempt is counted
	OutcomeDeadLetter                // it is given up, and sent to the dead-letter queue
	OutcomeKeep                      // it is given up, and no dead-letter queue accepts it
	OutcomeLost                      // another consumer may have it
	OutcomeHold                      // of an attempt only: it is held, and runs again
	OutcomePark                      // it was received before it was due, and is hidden again
	outcomes
)

// OutcomeNames has the outcomes' names.
var OutcomeNames = [outcomes]string{"delete", "retry", "release", "dead-letter", "keep", "lost", "hold", "park"}

func (o Outcome) String() string { return OutcomeNames[o] }

// FIFO says what happens to a message group while its head has failed.
type FIFO uint8

// The choices. Package reprise has the same, with what they mean to users.
const (
	FIFOHold  FIFO = iota // its received messages are held, for short waits
	FIFOBlock             // all of them are given back to the queue
	FIFOSkip              // the head is given up
)

// Opinion is how the user's code judges an attempt: the methods of its error, and the
// functions of the policy. The zero Opinion stands for a success.
type Opinion struct {
	Err         error // its Error method neither blocks nor panics
	Cut         Cut
	Unavailable bool // the attempt failed because a dependency was unavailable
	Decision    retry.Decision
}

// Cut says whether a handler's error only passes on the end of its context, and why that
// ended.
type Cut uint8

// The causes.
const (
	CutNone      Cut = iota // the error is the handler's own
	CutStopping             // the consumer stops
	CutLeaseLost            // the message's lease has ended
	CutOther                // the handler's timeout, or another cause that the user's code has set
)

// Verdict is what the end of an attempt decides.
type Verdict struct {
	Outcome Outcome
	Reason  retry.Reason
	// Due is when the message should be visible again, on our clock; with OutcomeRelease,
	// zero means at once.
	Due time.Time
	Err error

	unavailable bool      // the attempt failed because a dependency was unavailable
	requeue     carry.Why // why a copy replaces the message; carry.Hidden: none does
	alone       bool      // the copy must run alone
	released    bool      // given up instead of given back: the run is no attempt
	carriedBy   time.Time // hidden until then at most, so that a copy can replace it before it expires
	untilRead   bool      // carriedBy holds only as long as the queue's retention is not known
}

// comesAgain reports whether the message goes back to its queue.
func (v *Verdict) comesAgain() bool {
	return v.Outcome == OutcomeRetry || v.Outcome == OutcomeRelease || v.Outcome == OutcomePark
}

// Failure says why SQS did not carry out a request, or one of its entries. It can be of
// several kinds. The zero Failure stands for success.
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
	// BySender: SQS says that the entry itself is at fault, and it is not a throttle.
	BySender
	// Rejected: SQS has answered that the client is at fault, so it carried out nothing of
	// the request. Without this kind, the request may have been carried out all the same.
	Rejected
	// Unacceptable: SQS refuses the content of the request, and will refuse it again.
	Unacceptable
	// Lasting: an operator has to grant a permission, fix credentials or create a queue.
	Lasting
	// Denied: a permission is missing; DeniedByKey: the permission to use the queue's key.
	Denied
	DeniedByKey
	// OverLimit: the queue's quota of messages in flight is used up.
	OverLimit
	// Damaged: no request was made, because the message does not match the digest that SQS
	// sent with it.
	Damaged
)

func (f *Failure) is(k FailureKind) bool { return f.Kinds&k != 0 }

// ErrUnanswered is the error of an entry that a reply does not mention.
var ErrUnanswered = errors.New("the reply did not mention this entry")

// releasedAtStop is the verdict on a message that a stop gives back; err is the error of
// its handler, if that ran. It has no Due: the message becomes visible at once, for
// another consumer.
func releasedAtStop(err error) Verdict {
	return Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, Err: err}
}
