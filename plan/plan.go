// Package plan compares a retry policy with the queue that it is meant for, before production: how
// the two work together, where they conflict, and which permissions they need. It reads plain
// values and makes no calls.
//
// A [Schedule] has the earliest, the expected and the latest time of each attempt of a message, how
// its wait is carried out, and where the attempts end. [Check] returns the conflicts, each
// [Finding] with its remedy. [Features] lists the functions of a consumer with the permissions that
// each needs, and [IAM] makes the least-privilege policy from them.
package plan

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/retry"
)

// Queue has the values of a queue's attributes; [ReadQueue] reads it from them. A zero field means
// that the value is not known, unless the field says otherwise.
type Queue struct {
	// ARN is the queue's QueueArn.
	ARN string

	// FIFO queues keep the order of each message group.
	FIFO bool
	// HighThroughput reports whether the quota of a FIFO queue counts per message group: its
	// FifoThroughputLimit is perMessageGroupId.
	HighThroughput bool
	// ContentDeduplication is a FIFO queue's ContentBasedDeduplication.
	ContentDeduplication bool

	// Visibility is the queue's VisibilityTimeout, Retention its
	// MessageRetentionPeriod. Delay is its DelaySeconds; zero: none.
	Visibility, Retention, Delay time.Duration

	// MaxReceives is the RedrivePolicy's maxReceiveCount; zero if the queue has no
	// RedrivePolicy.
	MaxReceives int
	// DeadLetterARN is the RedrivePolicy's target; empty if there is none.
	DeadLetterARN string
	// DeadLetterRetention is the MessageRetentionPeriod of the dead-letter queue: of the consumer's
	// own, if it has one.
	DeadLetterRetention time.Duration

	// KMSKey is the KmsMasterKeyId: an id, an alias or an ARN of the key that the
	// queue is encrypted with. DeadLetterKMSKey is the dead-letter queue's. Empty:
	// none.
	KMSKey, DeadLetterKMSKey string
}

// Settings are a consumer's settings beside the policy.
type Settings struct {
	// HandlerTimeout is the longest time of one attempt; zero: no limit.
	HandlerTimeout time.Duration
	// Lease is the visibility timeout that is asked for at each receive and renewed;
	// zero: not known.
	Lease time.Duration
	// Via is how waits may be carried out: ViaVisibility if the consumer has no permission to send
	// to its queue.
	Via Via
	// DeadLetterURL is the consumer's dead-letter queue instead of the queue's own; empty: none.
	DeadLetterURL string
	// ByName reports whether the queue is given by its name, so that its URL must be looked up.
	ByName bool
	// Rate is how many messages a second are expected; zero: not known.
	Rate float64
	// FunctionTimeout is the timeout of the AWS Lambda function that an event source
	// mapping hands the messages to; zero: no function does.
	FunctionTimeout time.Duration
}

// Via is how the waits between attempts may be carried out.
type Via uint8

// Auto hides a message wherever that can serve its wait and sends a copy where it
// cannot. ViaVisibility never sends copies, ViaRequeue always does. On FIFO queues only visibility
// is used: a copy would lose its place.
const (
	ViaAuto Via = iota
	ViaVisibility
	ViaRequeue
)

var viaNames = [...]string{ViaAuto: "auto", ViaVisibility: "visibility", ViaRequeue: "requeue"}

// String returns the name that configuration files use.
func (v Via) String() string {
	if int(v) >= len(viaNames) {
		return fmt.Sprintf("Via(%d)", uint8(v))
	}
	return viaNames[v]
}

// The limits of SQS that matter for plans. See
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-quotas.html.
const (
	// DefaultRetention is SQS's own default, used if the attribute is unknown.
	DefaultRetention = 4 * 24 * time.Hour
	// MaxRetention is the longest that a queue keeps a message.
	MaxRetention = 14 * 24 * time.Hour
	// MaxReceives is the highest maxReceiveCount.
	MaxReceives = 1000
	// MaxInFlight is how many messages of a queue can be in flight: received, but neither deleted
	// nor visible again. A hidden message counts, a delayed one does not.
	MaxInFlight = 120_000
	// MaxDelay is the longest DelaySeconds.
	MaxDelay = carry.MaxDelay
)

// MaxAttempts returns the number of attempts that p allows on q: p's own, else the queue's
// maxReceiveCount, else the default of package retry. Negative: unlimited.
func MaxAttempts(p retry.Policy, q Queue) int {
	switch {
	case p.MaxAttempts != 0:
		return p.MaxAttempts
	case q.MaxReceives > 0:
		return q.MaxReceives
	}
	return retry.DefaultMaxAttempts
}

// retention is how long q keeps a message after it was sent: at least a minute, as every queue of
// SQS does.
func (q Queue) retention() time.Duration {
	if q.Retention <= 0 {
		return DefaultRetention
	}
	return max(q.Retention, time.Minute)
}

// takesCopies reports whether a wait on q may be served by a copy.
func (s Settings) takesCopies(q Queue) bool { return !q.FIFO && s.Via != ViaVisibility }

// hasDeadLetters reports whether there is a dead-letter queue.
func (s Settings) hasDeadLetters(q Queue) bool { return q.DeadLetterARN != "" || s.DeadLetterURL != "" }
