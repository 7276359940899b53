package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Settings are what a machine is made of. They do not change while it runs. Defaults are
// filled in: nothing here is zero for want of a value.
type Settings struct {
	plan.Settings // HandlerTimeout, Lease, Via and DeadLetterURL

	Queue  Queue
	CopyTo Queue // where copies go that come again: Queue, or that of the retry lane

	Retry         retry.Policy
	Concurrency   int           // how many handlers may run at once, at first
	Prefetch      int           // how many messages may wait for one
	Batch         Batch         // of consumers whose handlers get several messages
	Rate          float64       // handlers started a second; 0: no limit
	LongPoll      time.Duration // how long a receive waits for a message
	PollTimeout   time.Duration // how long a receive can take before the SDK gives up
	StopBudget    time.Duration
	SoftBudget    time.Duration // of that, until handlers are told to stop
	InFlightQuota int           // negative: it does not matter
	FIFO          FIFO
	Seed          uint64 // of all that is left to chance

	BreakerOff bool // no breaker opens
	Threshold  int  // how many messages must have failed before one does
	Keyed      bool // each Delivery.Key has a breaker of its own
	HasProbe   bool // a probe tests whether a dependency is available again

	TellSettled bool // Settled messages are to be told of
	AfterDelete bool // there is something to do for each deleted message
}

// Batch says what makes a batch of messages that are ready. The zero Batch is of consumers
// whose handlers get one message at a time.
type Batch struct {
	Size   int           // the most messages of a batch
	Linger time.Duration // how long the first waits for others
	Bytes  int           // the most bytes of a batch
}

// Queue is a queue by its names. The zero Queue stands for none.
type Queue struct {
	URL, Name string
	FIFO      bool
}

// MaxBatch is how many entries a batch request of SQS has at most.
const MaxBatch = 10

const (
	maxBatchBytes = 1_000_000 // of a SendMessageBatch; SQS's limit is 1 MiB

	// sendAtOnce is how many requests of an outbox may be under way together, or the end
	// of a batch of 10,000 would be 1,000: as many as the library's client keeps
	// connections.
	sendAtOnce = 256
	// renewAtOnce is how many heartbeat requests may be under way together.
	renewAtOnce = 8

	maxLinger   = 250 * time.Millisecond
	drainLinger = 5 * time.Millisecond
)

// newCalls returns what decides on the requests of an outbox. A request has at most so
// many bytes; zero means no limit. On a FIFO queue no settlement waits for others, since
// its group waits for the acknowledgement.
func (s *Settings) newCalls(bytes int) calls.Machine[*Delivery] {
	set := calls.Settings{Entries: MaxBatch, Bytes: bytes, Requests: sendAtOnce, Linger: maxLinger, Hurried: drainLinger}
	if s.Queue.FIFO {
		set.Linger = 0
	}
	return calls.New[*Delivery](set)
}

// batchSize is how many messages a handler gets at once, at most.
func (s *Settings) batchSize() int { return max(1, s.Batch.Size) }

// takesCopies reports whether messages may be requeued.
func (s *Settings) takesCopies() bool { return !s.Queue.FIFO && s.Via != plan.ViaVisibility }

// hasRetryLane reports whether copies that come again go to another queue.
func (s *Settings) hasRetryLane() bool { return s.CopyTo != s.Queue }
