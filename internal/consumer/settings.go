package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Settings configure a machine. The shell has filled in the defaults. While the machine runs,
// only Rate changes, by [Machine.SetRate].
type Settings struct {
	plan.Settings // HandlerTimeout, Lease, Via and DeadLetterURL

	Queue  Queue
	CopyTo Queue // where copies of messages to be tried again go: Queue, or the retry lane

	Retry         retry.Policy
	Concurrency   int           // how many handlers may run at once, at first
	Prefetch      int           // how many messages may wait for a handler
	Batch         Batch         // of consumers whose handlers get several messages
	Rate          float64       // handlers started a second; 0: no limit
	LongPoll      time.Duration // how long a receive waits for a message
	PollTimeout   time.Duration // how long a receive can take before the SDK gives up
	StopBudget    time.Duration
	SoftBudget    time.Duration // the part of it before handlers are told to stop
	InFlightQuota int           // negative: it is not watched
	FIFO          FIFO
	Seed          uint64 // of all random choices

	BreakerOff bool // no breaker opens
	Threshold  int  // how many messages must have failed before a breaker opens
	Keyed      bool // each Delivery.Key has a breaker of its own
	HasProbe   bool // there is a Config.Outage.Probe

	TellSettled bool // there is an Observer.Settled
	AfterDelete bool // there is a Config.AfterDelete
}

// Batch limits what makes a batch. The zero Batch is that of a consumer whose handlers get
// one message at a time.
type Batch struct {
	Size   int           // the most messages of a batch
	Linger time.Duration // how long the first waits for others
	Bytes  int           // the most bytes of a batch
}

// Queue names a queue. The zero Queue stands for none.
type Queue struct {
	URL, Name string
	FIFO      bool
}

// MaxBatch is SQS's limit of entries in a batch request.
const MaxBatch = sqslimit.Entries

const (
	maxBatchBytes = 1_000_000 // of a SendMessageBatch; SQS's limit is 1 MiB

	// sendAtOnce is how many requests of an outbox may be under way at once: as many as
	// the library's client keeps connections. Without a limit, the end of a batch of
	// 10,000 messages would start 1,000 requests.
	sendAtOnce = 256
	// renewAtOnce and renewAtMost are how many heartbeat requests may be under way at once: the
	// former while that renews all leases in time, the latter to hold 100,000 messages in any case.
	renewAtOnce = 8
	renewAtMost = 1000

	maxLinger   = 250 * time.Millisecond
	drainLinger = 5 * time.Millisecond
)

// newCalls returns the machine that decides which settlements share a request. bytes limits
// the size of a request; zero means no limit. On a FIFO queue no settlement waits for
// others, because its group waits for the acknowledgement.
func (s *Settings) newCalls(bytes int) calls.Machine[*Delivery] {
	set := calls.Settings{Entries: MaxBatch, Bytes: bytes, Requests: sendAtOnce, Linger: maxLinger, Hurried: drainLinger}
	if s.Queue.FIFO {
		set.Linger = 0
	}
	return calls.New[*Delivery](set)
}

// batchSize returns how many messages a handler gets at once, at most.
func (s *Settings) batchSize() int { return max(1, s.Batch.Size) }

// takesCopies reports whether messages may be requeued.
func (s *Settings) takesCopies() bool { return !s.Queue.FIFO && s.Via != plan.ViaVisibility }

// hasRetryLane reports whether copies of messages to be tried again go to another queue.
func (s *Settings) hasRetryLane() bool { return s.CopyTo != s.Queue }
