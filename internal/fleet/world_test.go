package fleet_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// fleet is the consumers of one queue, what its seed has in store for them, and
// what is known of the queue's messages.
//
// A fleet repeats to the nanosecond. What is drawn while goroutines compete is
// therefore drawn from what it is about, not from a common sequence, and every
// request, reply and handler takes a time of its own, so that nothing happens at
// the same instant unless one goroutine does it.
type fleet struct {
	t        testing.TB
	seed     uint64
	through  tier
	random   *rand.Rand // of the goroutine that plays the operator
	fifo     bool
	receives int    // the queue's maxReceiveCount
	calm     bool   // nothing goes wrong but handlers: no faults, crashes, outages or jumps of the clock
	mute     bool   // copies may not get through, and what waits for one is hidden, not renewed
	forgets  bool   // replies do not mention all entries
	leaky    bool   // SQS may give a message away before its lease has ended
	twins    bool   // a copy may be there beside its original, or twice
	jumped   bool   // the server's clock has: what copies say of their time is not trusted
	outages  bool   // the handlers' dependency fails at times, and waits may be cut short
	signed   bool   // the consumers sign what they write, and some messages have forged histories
	curse    error  // the error of every send of some messages; nil: there are no such messages
	twice    uint64 // percentage of the deliveries that end before their lease does
	faults   []sqsserver.Fault
	cfg      reprise.Config // of the next node that starts
	queue    *reprisetest.Queue
	dead     *reprisetest.Queue
	nodes    []*node          // running
	named    map[string]*node // all there have been, by name
	starts   int              // nodes so far
	began    time.Time

	mu        sync.Mutex
	parts     map[string]*part // by token
	line      []*part          // in the order of sending
	handles   map[string]*hold // by receipt handle
	mayEnd    bool             // some policy gives messages up
	outage    bool             // the handlers' dependency does not answer
	backSince time.Time        // the end of the latest outage
	mended    bool             // nothing goes wrong any more
	crashes   int
	stranded  bool // a stop has cancelled a receive
	events    []event
	guilty    map[string]bool // invariants that are broken
}

const (
	maxFleetLease    = 22 * time.Second
	maxFleetReceives = 1000
	maxSlowReceive   = 2 * time.Second / 35 // with a journey there and back, less than what is kept off the shortest lease
	unsendable       = 4096                 // bytes: larger messages are refused by the dead-letter queue
	cursedLetters    = 13                   // at the end of the body of a message whose copies nothing takes
	forgedOrigin     = "a-forged-origin"    // in forged histories
)

// named is a test under another name, for what is seeded by the test's name.
type named struct {
	testing.TB
	name string
}

func (n named) Name() string { return n.name }

// newFleet makes a queue, faults and a configuration from seed.
func newFleet(t testing.TB, through tier, seed uint64) *fleet {
	f := &fleet{
		t:       t,
		seed:    seed,
		through: through,
		random:  rand.New(rand.NewPCG(seed, 0)),
		began:   time.Now(),
		named:   make(map[string]*node),
		parts:   make(map[string]*part),
		handles: make(map[string]*hold),
		guilty:  make(map[string]bool),
	}
	f.fifo = f.random.IntN(2) == 0
	f.calm = f.random.IntN(4) == 0
	f.signed = f.draw("signed")%4 == 0
	var attributes map[string]string
	if f.fifo {
		attributes = map[string]string{"FifoQueue": "true"}
	}
	f.receives = maxFleetReceives
	if !f.fifo {
		f.receives = []int{3, 6, maxFleetReceives, maxFleetReceives}[f.random.IntN(4)]
	}
	f.queue = reprisetest.NewQueue(named{t, fmt.Sprint("fleet-", seed)}, attributes)
	f.dead = f.queue.NewDeadLetterQueue(f.receives)
	f.dead.SetAttributes(map[string]string{"MaximumMessageSize": fmt.Sprint(unsendable)})
	f.configure()
	if !f.calm {
		f.disturb()
		f.maybeCurse()
	}
	return f
}

// configure draws how the nodes that start from now on are configured.
func (f *fleet) configure() {
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
	switch f.random.IntN(8) {
	case 0: // waits of hours, beyond what SQS hides a message at a time too
		f.cfg.Retry.Backoff = retry.Exponential{Base: time.Duration(1+f.random.IntN(800)) * time.Minute, Max: 16 * time.Hour}
	case 1:
		f.cfg.Retry.Backoff = retry.Exponential{Base: time.Second, Max: time.Hour}
	}
	if f.random.IntN(3) == 0 {
		f.cfg.HandlerTimeout = 3 * time.Second
	}
	if !f.fifo {
		f.cfg.Via = []reprise.Via{reprise.ViaAuto, reprise.ViaAuto, reprise.ViaVisibility, reprise.ViaRequeue}[f.random.IntN(4)]
	}
	if f.fifo {
		f.cfg.FIFO = reprise.FIFO(f.random.IntN(3))
	}
	f.mayEnd = f.mayEnd || f.cfg.Retry.MaxAttempts > 0 || f.cfg.FIFO == reprise.FIFOSkip
}

// disturb draws what goes wrong with the queue from now on.
func (f *fleet) disturb() {
	f.faults = nil
	hears := f.random.IntN(3) == 0
	for range f.random.IntN(4) {
		if hears {
			f.faults = append(f.faults, f.faultElsewhere())
			continue
		}
		f.faults = append(f.faults, f.fault())
	}
	f.forgets = !hears && f.random.IntN(6) == 0
	f.mute = f.mute || f.curse != nil
	for _, fault := range f.faults {
		f.mute = f.mute || fault.Action == "" || fault.Action == "SendMessageBatch"
	}
	f.queue.Fault(f.faults...)
	// Not one of the server's faults: those of receives are drawn when a message
	// comes, and two polls may get theirs at one instant.
	f.twice = 0
	if !f.fifo && f.random.IntN(4) == 0 {
		f.leaky, f.twice = true, 1+uint64(f.random.IntN(30))
		if slices.ContainsFunc(f.faults, keepsOriginals) {
			f.twice = 1 // originals that outlive their copies are copied again: millions soon
		}
	}
}

// keepsOriginals reports whether by fault nearly no copy is sent, or no original deleted.
func keepsOriginals(fault sqsserver.Fault) bool {
	return fault.Probability > 0.5 && slices.Contains([]string{"", "SendMessageBatch", "DeleteMessageBatch"}, fault.Action)
}

// curses are ways in which what is between a consumer and its queue may refuse one message.
var curses = []error{
	&types.InvalidMessageContents{},
	&smithy.GenericAPIError{Code: "RequestEntityTooLarge", Fault: smithy.FaultClient},
	&smithy.GenericAPIError{Code: "Confused", Fault: smithy.FaultClient}, // nobody knows it
	&smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer},
	errors.New("read: connection reset by peer"),
}

// maybeCurse draws whether there are messages whose copies are refused, and every
// request with them in it, for as long as they are there. In a FIFO queue such a
// message keeps its group waiting, as it should.
func (f *fleet) maybeCurse() {
	if n := f.draw("curse") % 16; !f.fifo && n < uint64(len(curses)) {
		f.curse, f.mute = curses[n], true
	}
}

// faultElsewhere draws something that goes wrong nearly always, but with no change
// of visibility.
func (f *fleet) faultElsewhere() sqsserver.Fault {
	kinds := []sqsserver.FaultKind{sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection, sqsserver.FaultLoseReply}
	actions := []string{"ReceiveMessage", "DeleteMessageBatch", "SendMessageBatch"}
	fault := sqsserver.Fault{Action: actions[f.random.IntN(len(actions))], Probability: 0.9}
	if fault.Action == "SendMessageBatch" {
		kinds = kinds[:3] // ten copies for one would be millions soon
	}
	fault.Kind = kinds[f.random.IntN(len(kinds))]
	return fault
}

// fault draws something that goes wrong now and then, or nearly always.
func (f *fleet) fault() sqsserver.Fault {
	kinds := []sqsserver.FaultKind{
		sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultLoseReply, sqsserver.FaultDropConnection,
		sqsserver.FaultSlowReply, sqsserver.FaultFailEntry, sqsserver.FaultFailEntry, sqsserver.FaultStaleHandle, sqsserver.FaultLoseLease,
		sqsserver.FaultLoseDelete,
	}
	if f.fifo {
		kinds = kinds[:9] // FIFO queues deliver nothing twice
	}
	fault := sqsserver.Fault{Kind: kinds[f.random.IntN(len(kinds))], Probability: 0.02 + 0.3*f.random.Float64()}
	switch fault.Kind {
	case sqsserver.FaultLoseDelete:
		f.leaky = true
	case sqsserver.FaultSlowReply:
		fault.Action = []string{"DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage"}[f.random.IntN(3)]
		if fault.Action == "ReceiveMessage" {
			fault.Delay = maxSlowReceive
		}
	case sqsserver.FaultLoseLease, sqsserver.FaultStaleHandle:
		f.leaky = true
		fault.Probability /= 4
	case sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultLoseReply, sqsserver.FaultDropConnection:
		fault.Action = []string{"", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage"}[f.random.IntN(4)]
		doubles := fault.Kind == sqsserver.FaultLoseReply && fault.Action == ""
		if f.random.IntN(3) == 0 && !doubles { // as elsewhere, ten copies for one would be too many
			fault.Probability = 0.9
		}
		f.twins = f.twins || doubles
	}
	return fault
}

// live sends messages and plays the operator for some hours or days.
func (f *fleet) live() {
	f.send(20 + f.random.IntN(40))
	for range 1 + f.random.IntN(3) {
		f.nodes = append(f.nodes, f.start())
	}
	for range 2 + f.random.IntN(6) {
		f.wait(30 * time.Second)
		f.send(f.random.IntN(12))
		f.act()
		f.checkProgress()
	}
	f.wait(2 * time.Minute)
}

// wait lets up to most pass.
func (f *fleet) wait(most time.Duration) { time.Sleep(time.Duration(f.random.Int64N(int64(most)))) }

// settleDown ends what goes wrong, waits until the queue is worked off, but for
// what cannot be, and stops the consumers.
func (f *fleet) settleDown() {
	f.queue.Fault()
	f.mu.Lock()
	f.mended = true
	f.mu.Unlock()
	// A message that was given up while the dead-letter queue could not be reached may
	// be hidden for 12 hours, twice, and one that failed before for as long as its
	// policy says.
	f.checkNewcomers()
	for since := time.Now(); time.Since(since) < 48*time.Hour && f.unfinished(); {
		time.Sleep(10 * time.Minute)
		f.checkProgress()
	}
	if f.outages {
		time.Sleep(longestRecovery + time.Minute)
		f.checkProgress()
	}
	for _, n := range f.nodes {
		f.stop(n)
	}
	f.checkNothingLeased()
	time.Sleep(3 * maxFleetLease) // handlers that nobody waited for end
}

// unfinished says that the queue has messages that cannot stay.
func (f *fleet) unfinished() bool {
	messages := f.queue.Messages()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(messages, f.mustGo)
}

// mustGo says that a message cannot stay in the queue for ever: all but those
// that may have been given up and that the dead-letter queue does not take. The
// caller holds f.mu.
func (f *fleet) mustGo(m messageInfo) bool {
	p := f.parts[tokenOf(m.Body)]
	givenUp := f.mayEnd || p.permanent || p.deadly || p.cursed() && f.receives < maxFleetReceives
	return !givenUp || len(m.Body) < unsendable && !p.cursed()
}

// send sends messages of five groups.
func (f *fleet) send(n int) {
	f.mu.Lock() // their handlers wait until they are known
	defer f.mu.Unlock()
	for range n {
		p := &part{runs: make(map[*node]*spell), attributes: f.attributes()}
		group := fmt.Sprint("g", f.random.IntN(5))
		p.token = fmt.Sprintf("%s-%03d", group, len(f.parts))
		p.body = p.token
		m := sqsserver.SendMessageEntry{MessageAttributes: p.attributes}
		switch {
		case f.fifo:
			p.group, m.MessageDeduplicationId = group, p.token
		case f.random.IntN(30) == 0:
			p.body += strings.Repeat("x", unsendable)
		case f.random.IntN(2) == 0: // of a fair queue
			p.group = group
		}
		if f.curse != nil && len(p.body) < unsendable && f.draw("cursed", p.token)%5 == 0 {
			p.body += strings.Repeat("x", cursedLetters)
		}
		m.MessageBody, m.MessageGroupId = p.body, p.group
		if f.signed && f.draw("forged", p.token)%5 == 0 {
			m.MessageAttributes = append(slices.Clone(p.attributes), f.forgedHistory())
		}
		p.id = f.queue.SendMessage(m)
		f.parts[p.token] = p
		f.line = append(f.line, p)
	}
}

// forgedHistory returns a history as anybody can write it who may send to the queue: of a message
// that waits for hours, has used up its attempts, and must then run alone.
func (f *fleet) forgedHistory() sqsserver.MessageAttribute {
	h := history.History{Queue: f.queue.Name(), Origin: forgedOrigin, Attempt: 5, Alone: 1}
	now := f.queue.Server().Now()
	h.Date(now, now, now, now.Add(6*time.Hour))
	return sqsserver.MessageAttribute{Name: reprise.HistoryAttribute, DataType: "String", StringValue: h.String()}
}

// signingKeys are those of the consumers. They are about to be replaced: the newer one signs for some
// nodes, the older one for others, and each node accepts both.
func signingKeys() [2]reprise.SigningKey {
	var keys [2]reprise.SigningKey
	for i := range keys {
		var err error
		if keys[i], err = reprise.NewSigningKey(fmt.Sprint("key-", i), bytes.Repeat([]byte{byte(i)}, 32)); err != nil {
			panic(err)
		}
	}
	return keys
}

// attributes draws the attributes of a message, in the order of their names.
func (f *fleet) attributes() (all []sqsserver.MessageAttribute) {
	for _, a := range []sqsserver.MessageAttribute{
		{Name: "bytes", DataType: "Binary.png", BinaryValue: []byte{0, 0xff, byte(len(f.parts))}},
		{Name: "count", DataType: "Number", StringValue: fmt.Sprint(len(f.parts))},
		{Name: "kind", DataType: "String.label", StringValue: "Größe <&>"},
	} {
		if f.random.IntN(4) == 0 {
			all = append(all, a)
		}
	}
	return all
}

// tokenOf returns what names a message and all copies of it: how its body begins.
func tokenOf(body string) string {
	token, _, _ := strings.Cut(body, "x")
	return token
}
