// Package plan holds a retry policy against the queue that it is meant for: what
// the two will do together, where they conflict, and which permissions that takes,
// before production shows it. It reads plain values and calls nothing.
//
// A [Schedule] says when each attempt of a message comes at the earliest, as
// expected and at the latest, how its wait is carried out, and where it ends.
// [Check] returns what will surprise somebody, each [Finding] with its remedy.
// [Features] lists what a consumer does with the permissions that each part needs,
// and [IAM] makes the least-privilege policy of them.
package plan

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Queue is what a queue's own attributes say; [ReadQueue] reads it from them. A
// zero field is one that is not known, unless it says otherwise.
type Queue struct {
	// ARN is the queue's QueueArn.
	ARN string

	// FIFO queues keep the order of each message group.
	FIFO bool
	// HighThroughput says that the quota of a FIFO queue counts per message group:
	// its FifoThroughputLimit is perMessageGroupId.
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
	// DeadLetterRetention is the MessageRetentionPeriod of the dead-letter queue:
	// of the consumer's, where it was given one.
	DeadLetterRetention time.Duration

	// KMSKey is the KmsMasterKeyId: an id, an alias or an ARN of the key that the
	// queue is encrypted with. DeadLetterKMSKey is the dead-letter queue's. Empty:
	// none.
	KMSKey, DeadLetterKMSKey string
}

// Settings is what a consumer adds to the policy.
type Settings struct {
	// HandlerTimeout is the longest one attempt may take; zero: no limit.
	HandlerTimeout time.Duration
	// Lease is the visibility timeout that is asked for at each receive and renewed;
	// zero: not known.
	Lease time.Duration
	// Via is how waits may be carried out. Where the consumer lacks the permission
	// to send to its queue, that is ViaVisibility.
	Via Via
	// DeadLetterURL is a dead-letter queue that the consumer was given, instead of
	// the queue's own; empty if none.
	DeadLetterURL string
	// ByName says that the queue is given by its name, and its URL asked for.
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
// cannot. ViaVisibility never sends copies, ViaRequeue always does. FIFO queues
// are served by visibility alone: a copy would lose its place.
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

// The limits of SQS that plans meet. See
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-quotas.html.
const (
	// DefaultRetention is SQS's own default, taken where the attribute is unknown.
	DefaultRetention = 4 * 24 * time.Hour
	// MaxRetention is the longest that a queue keeps a message.
	MaxRetention = 14 * 24 * time.Hour
	// MaxReceives is the highest maxReceiveCount.
	MaxReceives = 1000
	// MaxInFlight is how many messages of a queue can be received and neither
	// deleted nor visible again. A hidden message counts, a delayed one does not.
	MaxInFlight = 120_000
	// MaxDelay is the longest DelaySeconds.
	MaxDelay = 15 * time.Minute
)

// MaxAttempts returns the number of attempts that p allows on q: p's own, or the
// queue's maxReceiveCount where p leaves it open, or the default of package
// retry. Negative: unlimited.
func MaxAttempts(p retry.Policy, q Queue) int {
	switch {
	case p.MaxAttempts != 0:
		return p.MaxAttempts
	case q.MaxReceives > 0:
		return q.MaxReceives
	}
	return retry.DefaultMaxAttempts
}

// retention is how long q keeps a message from its sending: a minute at least, as
// every queue of SQS does.
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
