package reprise

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/plural"
)

// Calls counts requests to SQS by kind. Retries inside the SDK are not counted.
type Calls struct {
	Receives, Deletes, Visibilities, Heartbeats, Sends, Attributes int64
}

// Total is the number of requests of all kinds.
func (c Calls) Total() int64 {
	return c.Receives + c.Deletes + c.Visibilities + c.Heartbeats + c.Sends + c.Attributes
}

// Counts counts what happened to messages.
type Counts struct {
	// Received counts deliveries, duplicates included.
	Received int64
	// Duplicates counts deliveries of messages that the consumer held already: they are not
	// run twice.
	Duplicates int64
	// Attempts counts runs of the handler, Panics those that panicked. A batch is an
	// attempt of each of its messages, and panics once.
	Attempts, Panics int64
	// Batches counts runs of a BatchHandler.
	Batches int64
	// Deleted, Retried, Released, Parked, DeadLettered and Kept count settlements
	// that SQS acknowledged. Parked messages were received before they were due, and
	// hidden again without a run.
	Deleted, Retried, Released, Parked, DeadLettered, Kept int64
	// Held counts attempts after which a message of a FIFO queue was held, to be run
	// again: see FIFOHold, and BatchHandler.
	Held int64
	// Requeued counts those of Retried, Released and Parked for which a copy was
	// sent in place of the message.
	Requeued int64
	// Woken counts messages that were made visible before the end of their backoff.
	Woken int64
	// Expiring counts messages that were hidden although their queue will drop them before
	// they can be tried again.
	Expiring int64
	// Untrusted counts deliveries whose history was ignored: it was implausible or, with
	// Config.SigningKeys, none of the keys had signed it for that message.
	Untrusted int64
	// Lost counts messages whose lease ended before they were settled, when their handlers have
	// returned.
	Lost int64
	// LateHeartbeats counts leases that were nearly over when their heartbeat went out, LeasesEnded
	// those that ended while their messages were held: other consumers may have received these
	// messages, whatever became of them here. While there are any, and for five minutes
	// after, the health is degraded.
	LateHeartbeats, LeasesEnded int64
}

// Health is what a consumer is doing.
type Health uint8

// The states of a consumer.
const (
	// HealthNew: Run has not been called.
	HealthNew = Health(consumer.HealthNew)
	// HealthOK: receiving and settling.
	HealthOK = Health(consumer.HealthOK)
	// HealthDegraded: working, but a problem needs an operator's attention: see
	// Status.Problem.
	HealthDegraded = Health(consumer.HealthDegraded)
	// HealthFailing: receives fail; or all places are taken by handlers that ignore the end
	// of their contexts, or a bug has broken the consumer, which only a restart of the process
	// mends.
	HealthFailing = Health(consumer.HealthFailing)
	// HealthStopping: draining.
	HealthStopping = Health(consumer.HealthStopping)
	// HealthStopped: Run has returned.
	HealthStopped = Health(consumer.HealthStopped)

	healths = HealthStopped + 1
)

var healthNames = [healths]string{"new", "ok", "degraded", "failing", "stopping", "stopped"}

// String returns the state's name.
func (h Health) String() string { return nameOf(healthNames[:], uint8(h), "Health") }

// Status is a consumer's state at one moment.
type Status struct {
	Health Health
	// Problem describes what is wrong: empty if there is no problem.
	Problem string
	// Running, Waiting and Settling count the messages that this consumer holds: in a
	// handler, leased but not started, and finished but not yet acknowledged.
	Running, Waiting, Settling int
	// Processing counts all messages that this consumer holds: Running, Waiting and
	// Settling together.
	Processing int
	// InBackoff counts the failed messages that are not yet due: hidden by this process, or
	// held by it as FIFOHold says.
	InBackoff int
	// BackoffProblem is the beginning of the error of that one of them which failed last: empty
	// if there is none.
	BackoffProblem string
	// InFlight is the queue's count of messages in flight, which all processes hold or have
	// hidden, about a minute old.
	InFlight InFlight
	// Pollers counts the receives under way, and those that wait for room or for the end of
	// a backoff.
	Pollers int
	// Concurrency is how many handlers may run at once: see SetConcurrency.
	Concurrency int
	// Rate is how many handlers may start per second, 0 if there is no limit: see SetRate.
	Rate float64
	// Paused reports whether the whole consumer is paused.
	Paused bool
	// Breakers are the breakers that are not closed, and the keys that are paused, in order
	// of their keys: nil if there are none.
	Breakers []BreakerStatus
	// GivingUp is set while many different messages are given up and hardly one succeeds:
	// otherwise nil.
	GivingUp *GivingUp
	// LastReceive is when a receive last succeeded, LastSettle when SQS last
	// acknowledged a settlement: zero if never.
	LastReceive, LastSettle time.Time
	Counts                  Counts
	Calls                   Calls
}

// Report describes, at the end of Run, what happened to all messages.
type Report struct {
	Counts Counts
	Calls  Calls
	// Abandoned names the messages whose handlers did not return within the stop
	// budget. Their leases run out by themselves.
	Abandoned []string
	// Unsettled names the messages that were finished but whose settlement SQS did
	// not acknowledge in time; after a bug that has ended Run, all messages that were held.
	// They come again when their leases run out.
	Unsettled []string
	// AfterDeletes is for how many deleted messages Config.AfterDelete had not begun or not
	// returned within the stop budget.
	AfterDeletes int
	// Stranded reports whether a receive had to be cancelled. Messages that SQS had sent to
	// it, if any, become visible again after Config.Lease.
	Stranded bool
	// Took is how long the stop took.
	Took time.Duration
}

// Drained reports whether every message that the consumer held was settled, and every
// Config.AfterDelete has returned. See also Stranded.
func (r Report) Drained() bool {
	return len(r.Abandoned) == 0 && len(r.Unsettled) == 0 && r.AfterDeletes == 0
}

// String returns one line for a log.
func (r Report) String() string {
	var b strings.Builder
	n := r.Counts
	fmt.Fprintf(&b, "%d received, %s, %d deleted, %d retried, %d released, %d dead-lettered",
		n.Received, plural.Of(n.Attempts, "attempt"), n.Deleted, n.Retried, n.Released, n.DeadLettered)
	for _, extra := range []struct {
		count int64
		what  string
	}{
		{n.Parked, "parked"},
		{n.Requeued, "requeued as copies"},
		{n.Held, "failures of FIFO messages held here"},
		{n.Expiring, "left to expire"},
		{n.Kept, "kept because no dead-letter queue accepts them"},
		{n.Lost, "lost to the end of their lease"},
		{int64(len(r.Abandoned)), "abandoned in their handlers"},
		{int64(len(r.Unsettled)), "not settled in time"},
		{int64(r.AfterDeletes), "deleted without the end of AfterDelete"},
	} {
		if extra.count > 0 {
			fmt.Fprintf(&b, ", %d %s", extra.count, extra.what)
		}
	}
	fmt.Fprintf(&b, "; %s; stopped in %v", plural.Of(r.Calls.Total(), "call"), r.Took.Round(time.Millisecond))
	return b.String()
}
