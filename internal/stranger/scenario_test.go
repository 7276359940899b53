package stranger_test

import (
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// scenario is all that is to happen, as plain data. The zero value of every field means the default or
// nothing, so that a scenario can be made smaller field by field. Times count from the beginning.
type scenario struct {
	Seed      uint64        // of the server's ids and faults
	Latency   time.Duration // of a request; 0: a millisecond
	Queue     queueSettings
	Sender    senderSettings
	Versions  []settings // of the program; none: the defaults
	Processes []process
	Messages  []message
	Faults    []spell
	Outages   []span // of what handlers depend on
	KeyDown   []keyOutage
	Jumps     []jump
	Changes   []change
	Acts      []act

	Neighbours []neighbour // in the pools of those versions that have one
}

// queueSettings are the attributes of a queue. MaxReceives and a dead-letter queue belong together: 0
// means that there is none.
type queueSettings struct {
	FIFO                         bool
	Delay, Visibility, Retention time.Duration
	MaxReceives                  int
	InFlightLimit                int
	SeparateDeadLetters          bool // the queue has no RedrivePolicy, consumers have a DeadLetterURL
}

type senderSettings struct {
	Linger     time.Duration
	Requests   int
	MaxWaiting int
	MaxBytes   int
	Tries      int
	TimeLimit  time.Duration // of each message
	NoIDs      bool          // on a FIFO queue that has ContentBasedDeduplication: messages have no deduplication id
}

// settings are a version of the program: the fields of reprise.Config that are plain data under their own names,
// and whether it uses the others.
type settings struct {
	Concurrency    int
	Prefetch       int
	LongPoll       time.Duration
	Rate           float64
	Retry          string // in the text form of package retry
	Rule           bool   // a rule for the errors of failRule
	Via            reprise.Via
	Lane           bool
	LaneShare      reprise.Share
	FIFO           reprise.FIFO
	InFlightQuota  int
	HandlerTimeout time.Duration
	Lease          time.Duration
	StopBudget     time.Duration
	Signed         bool
	Rotated        bool // it signs with the second key
	OutageOff      bool
	OwnUnavailable bool // an Outage.Unavailable of its own, which takes no timeout for an outage
	Threshold      int
	Keys           int // how many keys Outage.Key distinguishes; 0: there is no Key
	Probe          bool
	AfterDelete    bool
	Batch          bool
	BatchSize      int
	BatchLinger    time.Duration
	BatchBytes     int
	SDK            bool          // through the real client of the SDK
	Lambda         bool          // a function under an event source mapping, instead of a consumer
	Timeout        time.Duration // of the function
	EventSize      int           // records of an event, at most
	Instances      int           // invocations at once
	Pooled         bool          // in a pool, beside the neighbours
	Places         int           // of the pool
	Share          reprise.Share
}

// neighbour is another queue, whose consumer shares a pool. Nothing but its handlers fails there.
type neighbour struct {
	FIFO        bool
	Share       reprise.Share
	Concurrency int
	Prefetch    int
	Wait        time.Duration // after a failure
	Errands     []errand
}

// errand is a message of a neighbour: its first runs fail, and the next one succeeds.
type errand struct {
	At, Takes time.Duration
	Fails     int
}

type process struct {
	Version int
	From    time.Duration
	Until   time.Duration // 0: to the end, when it is stopped
	Crash   bool          // at Until; false: it is stopped
}

// message is one that is sent, and what its handlers do: run n takes step n, and later runs the last one.
type message struct {
	At         time.Duration
	Size       int // of the body, at least
	Attributes int
	Forged     forgery
	Group      int
	Tenant     bool // it names its group on a standard queue too
	Traced     bool // it has a trace header
	Delay      time.Duration
	Steps      []step // none: it succeeds at once
}

type forgery string

const (
	notForged    forgery = ""
	garbage      forgery = "garbage"       // a history that is no JSON
	plausible    forgery = "plausible"     // one as a consumer would write it, with attempts made
	invalidStory forgery = "invalid-story" // a story in the place of a dead letter's
)

type step struct {
	Result  result
	Takes   time.Duration
	Wait    time.Duration // of retryAfter and release
	Ignores bool          // the end of the context
}

type result string

const (
	succeed     result = ""
	fail        result = "fail"
	failRule    result = "fail-by-rule"
	permanent   result = "permanent"
	retryAfter  result = "retry-after"
	release     result = "release"
	panics      result = "panic"
	unavailable result = "unavailable"
	kill        result = "kill"    // the process, which is started again after Wait
	timeout     result = "timeout" // of the handler, no step's
)

// spell is a time in which a fault is set on the queue and the lane, or on the dead-letter queue.
type spell struct {
	When        span
	DeadLetters bool
	Kind        sqsserver.FaultKind
	Action      string
	Probability float64
	Delay       time.Duration
}

type span struct{ From, Until time.Duration }

func (s span) has(at time.Duration) bool { return at >= s.From && at < s.Until }

// keyOutage is an outage of what the messages of one key depend on: of the key of message Key and, without keys, of a
// quarter of the messages.
type keyOutage struct {
	When span
	Key  int
}

// jump is a time by which SQS's clock is suddenly ahead: the machine of all processes has slept for so long and its
// wall clock was not set, or SQS's clock differs from theirs.
type jump struct{ At, By time.Duration }

// change sets attributes of the queue while consumers run. A MaxReceives of 0 leaves the RedrivePolicy as it
// is, one below 0 removes it.
type change struct {
	At                           time.Duration
	Delay, Visibility, Retention time.Duration
	MaxReceives                  int
}

// act is what an operator does to a process.
type act struct {
	At      time.Duration
	Process int
	Do      operation
	N       int
	Key     int // it is about the key of message Key
}

type operation string

const (
	doWake           operation = "wake"
	doPause          operation = "pause" // for N seconds
	doProbe          operation = "probe"
	doPauseKey       operation = "pause-key" // for N seconds
	doWakeKey        operation = "wake-key"
	doProbeKey       operation = "probe-key"
	doWakeMessage    operation = "wake-message"  // message N
	doRetryMessage   operation = "retry-message" // message N, whose delay ends too
	doSetConcurrency operation = "set-concurrency"
	doSetPlaces      operation = "set-places" // of the pool
	doSetRate        operation = "set-rate"
)

// version returns the settings of a process.
func (s *scenario) version(p process) settings {
	if len(s.Versions) == 0 {
		return settings{}
	}
	return s.Versions[p.Version%len(s.Versions)]
}

// step returns what run n of a message does, from 1.
func (m *message) step(n int) step {
	if len(m.Steps) == 0 {
		return step{}
	}
	return m.Steps[min(max(n, 1), len(m.Steps))-1]
}

// innocent reports whether every run of the message succeeds.
func (m *message) innocent() bool {
	for _, s := range m.Steps {
		if s.Result != succeed {
			return false
		}
	}
	return m.Forged == notForged
}
