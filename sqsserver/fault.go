package sqsserver

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is something that goes wrong on purpose, as plain data: what happens
// (Kind), to which requests (Action), and how often. It strikes requests over
// HTTP and direct calls of the server's methods alike.
//
// A fault sees chances, counts them, and strikes some. What a chance is depends
// on the kind: a request, an entry of a batch, or a message received. The zero
// values of the numbers strike every chance, for ever.
type Fault struct {
	Kind FaultKind

	// Action is the API name of the only action to strike, such as
	// "ReceiveMessage". Default: every action that the kind can strike.
	Action string

	// Skip is how many chances pass first. Default: none.
	Skip int

	// Every strikes each Nth chance after those. Default: 1, each one.
	Every int

	// Probability is the share, 0 to 1, of the chances selected so far that are struck, by a
	// generator seeded with Config.Seed. Default: 1.
	Probability float64

	// Limit is the number of strikes after which the fault ends. Default: no limit.
	Limit int

	// Delay is how late a slow reply is, and how soon an early redelivery may
	// come. Only these two kinds have one. Default: 1s.
	Delay time.Duration
}

// FaultKind is what goes wrong.
type FaultKind string

const (
	// FaultThrottle refuses a request with RequestThrottled, before any effect.
	FaultThrottle FaultKind = "throttle"

	// FaultServerError refuses a request with InternalFailure and status 500,
	// before any effect.
	FaultServerError FaultKind = "server-error"

	// FaultOverLimit refuses a receive with OverLimit, as SQS does a short poll of a
	// standard queue with 120,000 messages in flight. It strikes long polls too,
	// to which SQS then answers nothing; Config.InFlightLimit has the true behaviour.
	FaultOverLimit FaultKind = "over-limit"

	// FaultDropConnection cuts the connection before a request has an effect. A
	// direct call returns ErrReplyLost: a client cannot know when it was cut.
	FaultDropConnection FaultKind = "drop-connection"

	// FaultLoseReply carries a request out and loses the reply: over HTTP the
	// connection is cut, a direct call returns ErrReplyLost. Messages in the lost
	// reply of a ReceiveMessage stay in flight.
	FaultLoseReply FaultKind = "lose-reply"

	// FaultSlowReply carries a request out and holds the reply back for Delay, or
	// until the client gives up.
	FaultSlowReply FaultKind = "slow-reply"

	// FaultWrongCounts makes GetQueueAttributes report, for each of the approximate numbers of
	// messages, a random number up to twice the true one plus nine.
	FaultWrongCounts FaultKind = "wrong-counts"

	// FaultFailEntry fails an entry of a batch with InternalError, SenderFault
	// false, without effect. The rest of the batch is carried out.
	FaultFailEntry FaultKind = "fail-entry"

	// FaultDuplicate leaves a message visible that has just been received, so
	// that it is delivered again while the first receiver works on it.
	FaultDuplicate FaultKind = "duplicate"

	// FaultEarlyRedelivery hides a message for Delay at most, whatever timeout the receive or the
	// change of its visibility asked for.
	FaultEarlyRedelivery FaultKind = "early-redelivery"

	// FaultLoseDelete acknowledges a delete that has no effect: the message comes
	// again when its visibility timeout ends.
	FaultLoseDelete FaultKind = "lose-delete"

	// FaultStaleHandle refuses the receipt handle of a change of visibility or of a
	// delete, without effect: with ReceiptHandleIsInvalid, on a FIFO queue as
	// expired. The message stays in flight, and the handle works the next time.
	FaultStaleHandle FaultKind = "stale-handle"

	// FaultLoseLease takes a message from its receiver at the moment when the
	// receiver changes its visibility or deletes it, alone or in a batch. The
	// message becomes visible, and from then on the receipt handle is refused
	// with ReceiptHandleIsInvalid.
	FaultLoseLease FaultKind = "lose-lease"
)

// defaultFaultDelay is the Delay of a fault without one.
const defaultFaultDelay = time.Second

// ErrReplyLost is what a direct call returns when FaultLoseReply or
// FaultDropConnection strikes it. As with a cut connection, the request may have been carried out
// or not, and the AWS SDK's retryers retry it.
var ErrReplyLost error = replyLost{}

type replyLost struct{}

func (replyLost) Error() string {
	return "sqsserver: the connection broke before the reply (injected fault)"
}
func (replyLost) ConnectionError() bool { return true }

// faultKinds has the actions that each kind can strike.
var faultKinds = map[FaultKind]struct {
	perEntry bool     // a chance is an entry or a message, not a request
	delayed  bool     // it has a Delay
	actions  []string // none: all
}{
	FaultThrottle:       {},
	FaultServerError:    {},
	FaultDropConnection: {},
	FaultLoseReply:      {},
	FaultSlowReply:      {delayed: true},
	FaultOverLimit:      {actions: []string{actionReceiveMessage}},
	FaultWrongCounts:    {actions: []string{actionGetQueueAttributes}},
	FaultFailEntry: {perEntry: true, actions: []string{
		actionSendMessageBatch, actionDeleteMessageBatch, actionChangeMessageVisibilityBatch}},
	FaultDuplicate: {perEntry: true, actions: []string{actionReceiveMessage}},
	FaultEarlyRedelivery: {perEntry: true, delayed: true, actions: []string{
		actionReceiveMessage, actionChangeMessageVisibility, actionChangeMessageVisibilityBatch}},
	FaultLoseDelete:  {perEntry: true, actions: []string{actionDeleteMessage, actionDeleteMessageBatch}},
	FaultStaleHandle: {perEntry: true, actions: settlingActions},
	FaultLoseLease:   {perEntry: true, actions: settlingActions},
}

var settlingActions = []string{
	actionChangeMessageVisibility, actionChangeMessageVisibilityBatch,
	actionDeleteMessage, actionDeleteMessageBatch,
}

// Validate returns what is wrong with a fault, or nil.
func (f Fault) Validate() error {
	kind, known := faultKinds[f.Kind]
	switch {
	case !known:
		return fmt.Errorf("fault kind %q is unknown; use one of %q", f.Kind, slices.Sorted(maps.Keys(faultKinds)))
	case f.Action != "" && kind.actions != nil && !slices.Contains(kind.actions, f.Action):
		return fmt.Errorf("fault %s cannot strike the action %q; use one of %s, or none for all of them",
			f.Kind, f.Action, strings.Join(kind.actions, ", "))
	case f.Action != "" && actions[f.Action] == nil:
		return fmt.Errorf("fault %s names the action %q, which this server does not have; use one of %s",
			f.Kind, f.Action, strings.Join(slices.Sorted(maps.Keys(actions)), ", "))
	case !(f.Probability >= 0 && f.Probability <= 1):
		return fmt.Errorf("fault %s has the probability %v; use 0 to 1", f.Kind, f.Probability)
	case f.Skip < 0 || f.Every < 0 || f.Limit < 0:
		return fmt.Errorf("fault %s has a negative Skip, Every or Limit (%d, %d, %d); use 0 for the default",
			f.Kind, f.Skip, f.Every, f.Limit)
	case f.Delay < 0:
		return fmt.Errorf("fault %s has the delay %v; use 0 for the default, %v", f.Kind, f.Delay, defaultFaultDelay)
	case f.Delay > 0 && !kind.delayed:
		return fmt.Errorf("fault %s has the delay %v and nothing to delay; only %s and %s do",
			f.Kind, f.Delay, FaultSlowReply, FaultEarlyRedelivery)
	}
	return nil
}

// delay is the Delay in effect.
func (f Fault) delay() time.Duration { return cmp.Or(f.Delay, defaultFaultDelay) }

// FaultCount is a fault that is set, with what it has seen and done so far.
type FaultCount struct {
	Fault
	Chances int
	Strikes int
}

// exempt marks the context of requests that no fault may strike.
type exempt struct{}

// WithoutFaults returns a context that protects direct calls from faults that strike whole
// requests: for a test's own sends and inspections beside the traffic that it disturbs.
func WithoutFaults(ctx context.Context) context.Context {
	return context.WithValue(ctx, exempt{}, true)
}

// everyQueue is the name under which faults for all queues are kept.
const everyQueue = "*"

// SetFaults replaces the faults of a queue, named by its name, URL or ARN; none
// clears them. With "" or "*" it replaces those that are set for every queue,
// which act beside the queue's own. A queue need not exist yet, see
// [Server.MissingQueues]. The error names the first fault that is not valid, and
// then nothing has changed.
func (s *Server) SetFaults(queue string, faults ...Fault) error {
	for _, f := range faults {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("sqsserver: %w", err)
		}
	}
	s.faults.set(faultTarget(queue), faults)
	return nil
}

// ReplaceFaults replaces the faults of all queues. The keys of the map name queues as for
// SetFaults. Each request meets the former faults or the new ones. The error names the first fault
// that is not valid, and then nothing has changed.
func (s *Server) ReplaceFaults(all map[string][]Fault) error {
	for _, queue := range slices.Sorted(maps.Keys(all)) {
		for i, f := range all[queue] {
			if err := f.Validate(); err != nil {
				return fmt.Errorf("sqsserver: fault %d of queue %q: %w", i+1, queue, err)
			}
		}
	}
	s.faults.replace(all)
	return nil
}

// MissingQueues returns those of the queues, named as for SetFaults, that do not
// exist in any account or region: their faults strike nothing until they do.
func (s *Server) MissingQueues(queues ...string) (missing []string) {
	exists := make(map[string]bool)
	s.mu.Lock()
	for name := range s.queues {
		exists[name.name] = true
	}
	s.mu.Unlock()
	for _, queue := range queues {
		if target := faultTarget(queue); target != everyQueue && !exists[target] {
			missing = append(missing, target)
		}
	}
	return missing
}

// Faults returns the faults that SetFaults has set for the same queue, with
// their counts.
func (s *Server) Faults(queue string) []FaultCount {
	return s.faults.counts(faultTarget(queue))
}

// AllFaults returns all faults that are set, with their counts, by the name of the
// queue; those for every queue are those of "*".
func (s *Server) AllFaults() map[string][]FaultCount {
	all := make(map[string][]FaultCount)
	for _, queue := range s.faults.queues() {
		all[queue] = s.faults.counts(queue)
	}
	return all
}

func faultTarget(queue string) string {
	if queue == "" {
		return everyQueue
	}
	return queue[strings.LastIndexAny(queue, "/:")+1:]
}

// faultSet holds the faults that are set and decides which chance is struck.
type faultSet struct {
	active atomic.Bool // whether byQueue has faults; without any, reading this is the only cost
	seed   uint64

	mu      sync.Mutex
	byQueue map[string][]*activeFault
}

// activeFault is a fault that is set. It has a generator of its own, so that no other event changes
// which of its chances it strikes.
type activeFault struct {
	FaultCount
	random *rand.Rand
}

// set replaces the faults of the queue kept under that name.
func (s *faultSet) set(queue string, faults []Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(queue, faults)
	s.active.Store(len(s.byQueue) > 0)
}

// replace replaces the faults of all queues, which may be named in any way.
func (s *faultSet) replace(all map[string][]Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byQueue)
	for _, queue := range slices.Sorted(maps.Keys(all)) { // of two names of one queue the same counts each time
		s.put(faultTarget(queue), all[queue])
	}
	s.active.Store(len(s.byQueue) > 0)
}

// put is set for callers that hold the lock.
func (s *faultSet) put(queue string, faults []Fault) {
	delete(s.byQueue, queue)
	for i, f := range faults {
		hash := fnv.New64a()
		fmt.Fprintf(hash, "%s %d", queue, i)
		s.byQueue[queue] = append(s.byQueue[queue], &activeFault{
			FaultCount: FaultCount{Fault: f},
			random:     rand.New(rand.NewPCG(s.seed, hash.Sum64())),
		})
	}
}

// queues returns the names under which faults are set.
func (s *faultSet) queues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byQueue))
}

func (s *faultSet) counts(queue string) []FaultCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	var counts []FaultCount
	for _, f := range s.byQueue[queue] {
		counts = append(counts, f.FaultCount)
	}
	return counts
}

// injectedFault is a fault that strikes, or the zero value. It is small, since each entry of
// every batch has one.
type injectedFault struct {
	kind   FaultKind
	delay  time.Duration
	random uint64 // a random number, for a fault that needs one
}

// request returns the fault that strikes a request.
func (s *faultSet) request(queue, action string) injectedFault {
	return s.inject(queue, action, false)
}

// entry returns the fault that strikes an entry of a batch, the message of a single request,
// or a message received.
func (s *faultSet) entry(queue, action string) injectedFault {
	return s.inject(queue, action, true)
}

func (s *faultSet) inject(queue, action string, perEntry bool) injectedFault {
	if !s.active.Load() {
		return injectedFault{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, target := range [...]string{queue, everyQueue} {
		for _, f := range s.byQueue[target] {
			if f.applies(action, perEntry) && f.strikes() {
				return injectedFault{f.Kind, f.delay(), f.random.Uint64()}
			}
		}
	}
	return injectedFault{}
}

func (f *activeFault) applies(action string, perEntry bool) bool {
	kind := faultKinds[f.Kind]
	if kind.perEntry != perEntry || f.Action != "" && f.Action != action {
		return false
	}
	return kind.actions == nil || slices.Contains(kind.actions, action)
}

// strikes counts a chance and decides whether it is struck.
func (f *activeFault) strikes() bool {
	f.Chances++
	switch {
	case f.Limit > 0 && f.Strikes >= f.Limit:
		return false
	case f.Chances <= f.Skip:
		return false
	case f.Every > 1 && (f.Chances-f.Skip)%f.Every != 0:
		return false
	case f.Probability > 0 && f.random.Float64() >= f.Probability:
		return false
	}
	f.Strikes++
	return true
}
