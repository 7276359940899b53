package reprise_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

var (
	fleetSeeds = flag.Int("fleet.seeds", 40, "how many fleets TestFleet runs, each from a seed of its own")
	fleetFrom  = flag.Uint64("fleet.from", 1, "the first seed of TestFleet")
)

// TestFleet runs up to three consumers of one queue, on a slow network, through
// faults of SQS, handlers of every temper, crashes, stops and restarts, and holds
// the invariants below. A seed fixes all of that but the order in which
// goroutines that are due at the same instant run: a rare failure may need to be
// replayed more than once.
func TestFleet(t *testing.T) {
	seeds := *fleetSeeds
	if testing.Short() {
		seeds = min(seeds, 10)
	}
	for i := range seeds {
		seed := *fleetFrom + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, seed)
				f.live()
				f.settleDown()
				f.checkEnd()
			})
			if t.Failed() {
				t.Logf("replay it: go test -run '^TestFleet$' -fleet.seeds=1 -fleet.from=%d -count=20 -failfast .", seed)
			}
		})
	}
}

// The invariants, whatever happens.
const (
	neverEarly      = "a consumer does not run a message before the time that a handler of its own has set"
	givenUpForGood  = "a consumer does not run a message again that a handler of its own has called a permanent failure"
	oneAtATime      = "a consumer runs a message, and a FIFO group, once at a time"
	concurrency     = "no more handlers run at once than Config.Concurrency"
	numbered1ToMax  = "attempts are numbered from 1, to no more than MaxAttempts and, before there is a copy, the receives or the runs"
	knowsTheMessage = "what is run is what was sent"
	everyOneCounted = "each delivery is counted as a duplicate or with what became of it"
	nothingHeld     = "nothing is held and nobody receives after a drain"
	withinBudget    = "Run returns within the stop budget"
	saysHowItEnded  = "Run returns nil after a clean drain, otherwise ErrDrainTimeout"
	nothingIsLost   = "each message is handled, or dead-lettered with its story"
	nothingIsLeft   = "when the faults have ended, the queue is worked off"
	inOrder         = "the messages of a FIFO group succeed in the order in which they were sent"
)

const (
	maxFleetLease = 22 * time.Second
	unsendable    = 4096 // bytes: larger messages are refused by the dead-letter queue
	clockTime     = "15:04:05.000"
)

// fleet is the consumers of one queue, and what is known of its messages.
type fleet struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand // of the goroutine that plays the operator
	fifo   bool
	faults []sqsserver.Fault
	cfg    reprise.Config
	queue  *reprisetest.Queue
	dead   *reprisetest.Queue
	nodes  []*node // running
	starts int     // nodes so far

	mu    sync.Mutex
	parts map[string]*part   // by the id under which the message was first sent
	order map[string][]*part // by group, in the order of their first success
}

// part is one message of the fleet's.
type part struct {
	body, group string
	handled     bool
	runs        int
	permanent   bool      // a handler has called it a permanent failure
	notBefore   time.Time // set by a handler on the node
	setBy       int
	setFor      string // which copy
	givenUpBy   int    // the node that has heard so
	givenUpID   string // of which copy
	history     []string
}

// node is one consumer, from its start to its stop or crash. Its fields below
// number are guarded by fleet.mu.
type node struct {
	*reprisetest.Consumer
	number   int
	crashed  bool
	handlers int
	running  map[string]int // by message id and by FIFO group
}

// newFleet makes a queue, faults and a configuration from seed.
func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{
		t:      t,
		seed:   seed,
		random: rand.New(rand.NewPCG(seed, 0)),
		parts:  make(map[string]*part),
		order:  make(map[string][]*part),
	}
	f.fifo = f.random.IntN(2) == 0
	var attributes map[string]string
	if f.fifo {
		attributes = fifoQueue
	}
	f.queue = reprisetest.NewQueue(t, attributes)
	f.dead = f.queue.NewDeadLetterQueue(1000)
	f.dead.SetAttributes(map[string]string{"MaximumMessageSize": fmt.Sprint(unsendable)})
	for range f.random.IntN(4) {
		f.faults = append(f.faults, f.fault())
	}
	f.queue.Fault(f.faults...)
	f.cfg = reprise.Config{
		Concurrency: 1 + f.random.IntN(12),
		Prefetch:    f.random.IntN(22) - 1,
		Lease:       2*time.Second + time.Duration(f.random.Int64N(int64(maxFleetLease/time.Second-1)))*time.Second,
		StopBudget:  time.Duration(1+f.random.IntN(30)) * time.Second,
		Retry: retry.Policy{
			Backoff:     retry.Exponential{Base: time.Second, Max: time.Duration(1+f.random.IntN(60)) * time.Second},
			MaxAttempts: []int{-1, 3, 5}[f.random.IntN(3)],
			MaxAge:      -1,
		},
	}
	if f.random.IntN(3) == 0 {
		f.cfg.HandlerTimeout = 3 * time.Second
	}
	if f.fifo {
		f.cfg.FIFO = reprise.FIFO(f.random.IntN(3))
	}
	return f
}

// fault draws something that goes wrong now and then, or nearly always.
func (f *fleet) fault() sqsserver.Fault {
	kinds := []sqsserver.FaultKind{
		sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultLoseReply,
		sqsserver.FaultFailEntry, sqsserver.FaultLoseLease, sqsserver.FaultDuplicate,
	}
	if f.fifo {
		kinds = kinds[:5] // FIFO queues deliver nothing twice
	}
	fault := sqsserver.Fault{Kind: kinds[f.random.IntN(len(kinds))], Probability: 0.02 + 0.3*f.random.Float64()}
	switch fault.Kind {
	case sqsserver.FaultLoseLease:
		fault.Probability /= 4
	case sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultLoseReply:
		fault.Action = []string{"", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage"}[f.random.IntN(4)]
		if f.random.IntN(3) == 0 {
			fault.Probability = 0.9
		}
	}
	return fault
}

// live sends messages, and starts, crashes, stops and restarts consumers.
func (f *fleet) live() {
	f.send(20 + f.random.IntN(40))
	for range 1 + f.random.IntN(3) {
		f.nodes = append(f.nodes, f.start())
	}
	for range f.random.IntN(6) {
		time.Sleep(time.Duration(f.random.Int64N(int64(30 * time.Second))))
		f.send(f.random.IntN(10))
		i := f.random.IntN(len(f.nodes))
		if n := f.nodes[i]; f.random.IntN(2) == 0 {
			f.crash(n)
		} else {
			f.stop(n)
		}
		f.nodes[i] = f.start()
	}
	time.Sleep(time.Minute)
}

// settleDown ends the faults, waits until the queue is worked off, but for what
// cannot be, and stops the consumers.
func (f *fleet) settleDown() {
	f.queue.Fault()
	// What was given up while the dead-letter queue could not be reached may be
	// hidden for 12 hours, twice.
	for quiet := time.Now(); time.Since(quiet) < 30*time.Hour && slices.ContainsFunc(f.queue.Messages(), f.mustGo); {
		time.Sleep(time.Minute)
	}
	for _, n := range f.nodes {
		f.stop(n)
	}
	time.Sleep(3 * maxFleetLease) // handlers that nobody waited for end
}

// mustGo says that a message cannot stay in the queue for ever: all but those
// that may have been given up and that the dead-letter queue does not take.
func (f *fleet) mustGo(m sqsserver.MessageInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	givenUp := f.parts[originOf(f.t, m)].permanent || f.cfg.Retry.MaxAttempts > 0
	return !givenUp || len(m.Body) < unsendable
}

// send sends messages of five groups.
func (f *fleet) send(n int) {
	f.mu.Lock() // their handlers wait until they are known
	defer f.mu.Unlock()
	for range n {
		p := &part{group: fmt.Sprint("g", f.random.IntN(5))}
		p.body = fmt.Sprintf("%s-%03d", p.group, len(f.parts))
		m := sqsserver.SendMessageEntry{MessageBody: p.body}
		switch {
		case f.fifo:
			m.MessageGroupId, m.MessageDeduplicationId = p.group, p.body
		case f.random.IntN(30) == 0:
			m.MessageBody += strings.Repeat("x", unsendable)
		}
		f.parts[f.queue.SendMessage(m)] = p
	}
}

// start starts a consumer on a network of its own.
func (f *fleet) start() *node {
	f.starts++
	n := &node{number: f.starts, running: make(map[string]int)}
	cfg := f.cfg
	cfg.Observer = reprise.Observer{
		Received: func(_ context.Context, e reprise.Received) {
			f.note(e.Message.OriginID, "node %d receives %s, the %d. time; duplicate: %v", n.number, e.Message.ID[:8], e.Message.Receives, e.Duplicate)
		},
		Attempt: func(_ context.Context, e reprise.Attempt) {
			f.note(e.Message.OriginID, "node %d: attempt %d ends with %v: %v", n.number, e.Message.Attempt, e.Err, e.Outcome)
			f.judged(e)
		},
		Settled: func(_ context.Context, e reprise.Settled) {
			f.note(e.Message.OriginID, "node %d: settled: %v, by requeue %v, due %s, %v", n.number, e.Outcome, e.Requeued, e.Due.Format(clockTime), e.Err)
		},
	}
	slow := &slowNetwork{
		Client: f.queue.Direct(),
		random: rand.New(rand.NewPCG(f.seed, uint64(n.number))),
		most:   time.Duration(1+f.random.IntN(300)) * time.Millisecond,
	}
	n.Consumer = f.queue.ConsumeWith(slow, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		return f.handle(ctx, n, m)
	}), cfg)
	return n
}

// crash ends a consumer as a killed process ends.
func (f *fleet) crash(n *node) {
	f.mu.Lock()
	n.crashed = true
	f.mu.Unlock()
	n.Crash()
	_ = n.Err() // of no interest, but it waits for the end of Run
}

// stop stops a consumer and checks its report.
func (f *fleet) stop(n *node) {
	report := n.Stop()
	if report.Took > f.cfg.StopBudget+time.Second {
		f.broken(withinBudget, nil, "node %d took %v of %v", n.number, report.Took, f.cfg.StopBudget)
	}
	if err := n.Err(); report.Drained() != (err == nil) || err != nil && !errors.Is(err, reprise.ErrDrainTimeout) {
		f.broken(saysHowItEnded, nil, "node %d returned %v; report %v", n.number, err, report)
	}
	if !report.Drained() {
		return
	}
	c := report.Counts
	if c.Received != c.Duplicates+c.Deleted+c.Retried+c.Released+c.Parked+c.DeadLettered+c.Kept+c.Lost {
		f.broken(everyOneCounted, nil, "node %d: %+v", n.number, c)
	}
	if s := n.Status(); s.Running+s.Waiting+s.Settling+s.Pollers != 0 {
		f.broken(nothingHeld, nil, "node %d: %+v", n.number, s)
	}
}

// handle is the handler of node n. What it does is drawn from the seed, the
// message and how often it has run.
func (f *fleet) handle(ctx context.Context, n *node, m *reprise.Message) error {
	p, nth := f.enter(n, m)
	defer f.leave(n, m)

	h := fnv.New64a()
	fmt.Fprint(h, f.seed, m.OriginID, nth, n.number)
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	most := 500 * time.Millisecond
	if random.IntN(12) == 0 {
		most = 3 * f.cfg.Lease
	}
	took := time.Duration(random.Int64N(int64(most)))
	if stubborn := random.IntN(10) == 0; stubborn {
		time.Sleep(took)
	} else {
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch random.IntN(14) {
	case 0:
		panic("burst")
	case 1:
		runtime.Goexit()
	case 2, 3:
		return errUnavailable
	case 4:
		if ctx.Err() == nil { // otherwise nobody listens
			p.setBy, p.setFor, p.notBefore = n.number, m.ID, time.Now().Add(20*time.Second)
		}
		return reprise.RetryAfter(20*time.Second, errUnavailable)
	case 5:
		return reprise.Release(0, errUnavailable)
	case 6:
		p.permanent = true
		if ctx.Err() == nil {
			p.givenUpBy, p.givenUpID = n.number, m.ID
		}
		return reprise.Permanent(errUnavailable)
	}
	// Nobody may know of a run that has outlived its process or its lease: the one
	// is not handled by it, the other is out of the order.
	p.handled = p.handled || !n.crashed
	if f.fifo && ctx.Err() == nil && !slices.Contains(f.order[p.group], p) {
		f.order[p.group] = append(f.order[p.group], p)
	}
	return nil
}

// enter begins a run of m on n and checks that it may run.
func (f *fleet) enter(n *node, m *reprise.Message) (p *part, nth int) {
	f.note(m.OriginID, "node %d: attempt %d of %s begins", n.number, m.Attempt, m.ID[:8])
	f.mu.Lock()
	defer f.mu.Unlock()
	p = f.parts[m.OriginID]
	if p == nil || !strings.HasPrefix(m.Body, p.body) || f.fifo && m.GroupID != p.group {
		f.broken(knowsTheMessage, nil, "%+v", m)
		runtime.Goexit()
	}
	p.runs++
	n.handlers++
	if n.handlers > f.cfg.Concurrency {
		f.broken(concurrency, p, "%d handlers on node %d, %d are permitted", n.handlers, n.number, f.cfg.Concurrency)
	}
	for _, key := range f.exclusive(m) {
		if n.running[key]++; n.running[key] > 1 {
			f.broken(oneAtATime, p, "%s runs %d times on node %d", key, n.running[key], n.number)
		}
	}
	if early := time.Until(p.notBefore); p.setBy == n.number && early > 0 && (p.setFor == m.ID || f.unforked(m.OriginID)) {
		f.broken(neverEarly, p, "it runs %v early on node %d", early, n.number)
	}
	if p.givenUpBy == n.number && p.givenUpID == m.ID {
		f.broken(givenUpForGood, p, "it runs again on node %d", n.number)
	}
	if limit := f.cfg.Retry.MaxAttempts; m.Attempt < 1 || m.ID == m.OriginID && m.Attempt > max(m.Receives, p.runs) || limit > 0 && m.Attempt > limit {
		f.broken(numbered1ToMax, p, "attempt %d at receive %d on node %d, %d are permitted", m.Attempt, m.Receives, n.number, limit)
	}
	return p, p.runs
}

// leave ends a run of m on n.
func (f *fleet) leave(n *node, m *reprise.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.handlers--
	for _, key := range f.exclusive(m) {
		n.running[key]--
	}
}

// exclusive returns what a consumer may run only once at a time.
func (f *fleet) exclusive(m *reprise.Message) []string {
	if f.fifo {
		return []string{m.ID, m.GroupID}
	}
	return []string{m.ID}
}

// checkEnd checks what has become of the messages.
func (f *fleet) checkEnd() {
	left := make(map[string]bool)
	for _, m := range f.queue.Messages() {
		left[originOf(f.t, m)] = true
		if f.mustGo(m) {
			f.broken(nothingIsLeft, f.parts[originOf(f.t, m)], "it is %s, due %s", m.State, m.Due.Format(clockTime))
		}
	}
	told := make(map[string]bool)
	for _, m := range f.dead.Messages() {
		told[storyOf(f.t, m).Origin] = true
	}
	for id, p := range f.parts {
		if !p.handled && !told[id] && !left[id] {
			f.broken(nothingIsLost, p, "it is gone")
		}
	}
	for _, done := range f.order {
		for i, p := range done {
			if i > 0 && p.body < done[i-1].body {
				f.broken(inOrder, p, "it succeeded after %s", done[i-1].body)
			}
		}
	}
}

// judged takes back a time that is not in force: the message will not be retried.
func (f *fleet) judged(e reprise.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.parts[e.Message.OriginID]; p.setFor == e.Message.ID && e.Outcome != reprise.OutcomeRetry {
		p.setFor, p.notBefore = "", time.Time{}
	}
}

// unforked says that a lineage has one message in the queue and one history.
// There are more where a send's reply was lost, where a consumer crashed before it
// deleted an original, and where two held one message; each then has a time of its
// own.
func (f *fleet) unforked(origin string) bool {
	for _, fault := range f.faults {
		if fault.Kind == sqsserver.FaultDuplicate || fault.Kind == sqsserver.FaultLoseLease {
			return false
		}
	}
	n := 0
	for _, m := range f.queue.Messages() {
		if originOf(f.t, m) == origin {
			n++
		}
	}
	return n == 1
}

// originOf is the id under which the lineage of a message in the queue began.
func originOf(t *testing.T, m sqsserver.MessageInfo) string {
	t.Helper()
	if h := historyOf(t, m); h.Origin != "" {
		return h.Origin
	}
	return m.ID
}

// note adds a line to a message's history.
func (f *fleet) note(id, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.parts[id]; p != nil {
		p.history = append(p.history, time.Now().Format(clockTime)+" "+fmt.Sprintf(format, args...))
	}
}

// broken fails the test with the invariant that does not hold, and the last that
// happened to the message concerned, if it is one.
func (f *fleet) broken(invariant string, p *part, format string, args ...any) {
	f.t.Helper()
	var message strings.Builder
	fmt.Fprintf(&message, "seed %d breaks: %s\n\t%s", f.seed, invariant, fmt.Sprintf(format, args...))
	if p != nil {
		fmt.Fprintf(&message, "\n\tmessage %s:\n\t\t%s", p.body, strings.Join(p.history[max(0, len(p.history)-16):], "\n\t\t"))
	}
	c := f.cfg
	fmt.Fprintf(&message, "\n\tfifo %v (%v), concurrency %d, prefetch %d, lease %v, handler timeout %v, stop budget %v, faults %+v", f.fifo, c.FIFO, c.Concurrency, c.Prefetch, c.Lease, c.HandlerTimeout, c.StopBudget, f.faults)
	f.t.Error(message.String())
}
