package simulate

import (
	"fmt"
	"slices"
	"time"
)

// Result is what a simulation has found. Times count from its start.
type Result struct {
	// Scenario is what was simulated, with its defaults.
	Scenario Scenario
	// Stop is why it ended, at Ended.
	Stop  Stop
	Ended time.Duration
	// Last is when the last attempt ended.
	Last time.Duration

	Messages Messages
	Attempts Attempts
	// PerMessage has, at index n, how many messages were settled after n attempts, repeated ones
	// included; the last stands for all that needed more.
	PerMessage []int

	// Wait is the time from when a message was sent to its first attempt, Latency that to the end of
	// the attempt that succeeded.
	Wait, Latency Quantiles

	Series []Bucket
	// PeakRequests is the most requests that the dependency saw in a second; PeakInFlight the most
	// messages in flight; PeakOpen the most that were sent and not yet settled.
	PeakRequests, PeakInFlight, PeakOpen int

	Outages []Recovery
	// Queues has the part of each queue of a pool, the scenario's own first. Nil: it has no pool.
	Queues []OfQueue
	// Trace has the attempts of the first messages, in the order of their ends: see Scenario.Trace.
	Trace    []Traced
	Requests Requests
	// Notes are what a reader should know.
	Notes []string
}

// Stop is why a simulation ended.
type Stop uint8

const (
	// StopSettled: the queue was empty, and no traffic was left.
	StopSettled Stop = iota + 1
	// StopHorizon: the horizon was reached.
	StopHorizon
	// StopInterrupted: the context ended.
	StopInterrupted
)

var stopNames = [...]string{StopSettled: "settled", StopHorizon: "horizon", StopInterrupted: "interrupted"}

// String returns the reason in one word.
func (s Stop) String() string {
	if s == 0 || int(s) >= len(stopNames) {
		return fmt.Sprintf("Stop(%d)", uint8(s))
	}
	return stopNames[s]
}

// Messages counts messages by their state at the end. Arrived is the sum of the others.
type Messages struct {
	Arrived int
	Done    int // an attempt has succeeded
	Dead    int // given up, in the dead-letter queue
	Expired int // neither, and SQS has deleted them because of their age
	Left    int // still in the queue
}

// Attempts counts runs of the handler by how they ended. Started is the sum of the others.
type Attempts struct {
	Started     int
	Succeeded   int
	Failed      int // with a plain error
	Permanent   int // with a permanent error
	Unavailable int // in an outage of the dependency
	Rejected    int // beyond its capacity
	Cut         int // by a timeout, a stop, a crash or the end of a lease
	Running     int // at the end of the simulation
	// Repeated is how many of Succeeded, Failed and Permanent ran for a message that was done already.
	Repeated int
}

// Wasted is how many attempts could not have helped: in outages, beyond the capacity, cut short, or
// repeated.
func (a Attempts) Wasted() int { return a.Unavailable + a.Rejected + a.Cut + a.Repeated }

// Bucket is a period of [Result.Series].
type Bucket struct {
	// At is its start.
	At time.Duration
	// Arrived to Dead count what happened in the bucket; Peak is the most requests that the dependency got in one of its seconds.
	Arrived, Started, Failed, Done, Dead int
	Peak                                 int
	// How it was at its end. Waiting is how many messages have failed and wait for their next
	// attempt, Oldest the age of the oldest message that is neither done nor given up.
	Visible, InFlight, Delayed int
	Running, Waiting, Open     int
	Oldest                     time.Duration
}

// Recovery is what follows an outage.
type Recovery struct {
	Outage
	// Open is how many messages were unsettled when it began, Backlog when it ended.
	Open, Backlog int
	// Recovered is how long after its end the number of unsettled messages was back at what it was
	// before; Cleared is how long after it every message that was sent until then was settled.
	// Negative: not until the end of the simulation.
	Recovered, Cleared time.Duration
	// Requests is what the dependency saw during the outage, Peak the most requests in a second in
	// the ten minutes after its end.
	Requests, Peak int
	// Unsettled is how many of the messages of Backlog were unsettled at the end of the simulation.
	Unsettled int
}

// Requests counts requests to SQS by what they are for.
type Requests struct {
	Sends         int // of the producers, one for each message
	Receives      int // that brought messages
	EmptyReceives int
	Deletes       int
	Hides         int // waits before an attempt
	Renewals      int // heartbeats
	Wakes         int
	Copies        int
	DeadLetters   int
	// Failed is how many of them failed, or got no reply.
	Failed int
	// Units is what is billed for: each 64 KB of payload counts as a request.
	Units int
}

// Total is the sum of the requests.
func (r Requests) Total() int {
	return r.Sends + r.Receives + r.EmptyReceives + r.Deletes + r.Hides + r.Renewals + r.Wakes + r.Copies + r.DeadLetters
}

// The prices of a million units in US dollars, for the first 100 billion a month. The free million
// of each month is not deducted.
const (
	StandardPrice = 0.40
	FIFOPrice     = 0.50
)

// Cost returns the estimated price of the requests in US dollars.
func (r Result) Cost() float64 {
	price := StandardPrice
	if r.Scenario.Queue.FIFO {
		price = FIFOPrice
	}
	return float64(r.Requests.Units) / 1e6 * price
}

// Traced is an attempt of a message.
type Traced struct {
	Message int    // in the order in which they were sent, the first is 0
	ID      string // of the message as it was sent
	Attempt int    // its number, as the policy counts
	// Started and Ended are its times. Due is when the message is to be tried again; zero: never.
	Started, Ended, Due time.Duration
	Succeeded           bool
	Outcome             string // of the message: delete, retry, release, dead-letter, keep, lost or hold
}

// Quantiles describes durations. The zero Quantiles has none.
type Quantiles struct {
	Count                                 int
	Mean                                  time.Duration
	Least, P50, P90, P95, P99, P999, Most time.Duration
}

// quantilesOf sorts the durations.
func quantilesOf(all []time.Duration) Quantiles {
	n := len(all)
	if n == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	sum := 0.0
	for _, d := range all {
		sum += float64(d)
	}
	at := func(q float64) time.Duration { return all[min(int(q*float64(n)), n-1)] }
	return Quantiles{
		Count: n, Mean: time.Duration(sum / float64(n)),
		Least: all[0], P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), Most: all[n-1],
	}
}
