package reprise

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// machines is a fleet of consumers and the queues that they share, all of them state
// machines in one loop of virtual time. What happens to them is a list of acts, drawn
// from a seed.
//
// machines_draw says what a fleet can be, machines_acts what can happen to it,
// machines_handlers what its handlers do, and machines_invariants, machines_progress and
// machines_end what must be true of it.
type machines struct {
	nature
	loop    *world.Loop
	sqs     *world.Service
	queues  []*world.Queue   // that messages are sent to
	lane    *world.Queue     // for retries; nil: there is none
	dead    *world.Queue     // nil: there is none
	front   *simulatedSender // nil: messages are sent without a Sender
	cfg     Config           // of the consumers that start from now on
	batch   *BatchConfig     // the same
	nodes   []*node          // that were not stopped, crashed ones included
	starts  int
	killers int     // deadly messages
	parts   []*part // in the order of sending
	byBody  map[string]*part

	outages     bool            // breakers have opened, and what waits may be woken before its time
	leaky       bool            // leases may have ended before their time, since the clock of SQS has been set
	mayEnd      bool            // some consumer gives messages up by its policy
	unexplained bool            // some receives have outcomes that other consumers cannot know or explain
	impatient   bool            // some consumer tries again so often that deaths are taken for attempts
	down        map[string]bool // keys of which the dependency is down; "": of all
	back        time.Time       // the end of the latest outage
	mended      bool            // nothing goes wrong any more
	dependency  dependency
	wrong       []string
}

// node is a process with its consumers: one, or one for each queue, and those of retry
// lanes.
type node struct {
	*host
	f         *machines
	number    int
	pool      *Pool // that the fleet's consumers share; nil: they have none, or one with their retry lane
	consumers []*machine
	paused    bool
	stopped   bool
}

// machine is one consumer of a node.
type machine struct {
	*simulated
	n         *node
	f         *machines
	handlers  int
	limit     int                    // of them: those that run when it is lowered may end
	wanted    int                    // the limit when as many have ended
	busy      map[string]int         // handlers, by message id and FIFO group
	worked    map[string]bool        // by message id: its handlers have succeeded
	givenUp   map[string]time.Time   // by message id: when it has said that it gives the message up, by its clock
	due       map[string]time.Time   // by message id: when it has said that a failed one is tried again, by its clock
	copied    map[string]bool        // bodies of which SQS has confirmed a copy
	newest    map[string]*lease      // by message id: the latest receipt
	asked     map[string][]time.Time // by message id: the latest requests
	pausedKey map[string]bool
	told      int64                // messages of which it has said what became of them
	quiet     map[string]time.Time // by key of a breaker: no handler has started since, while messages wait behind it
	leftAlone map[uint64]int       // what could be received while it had nothing to do
}

// lease is what a receipt stands for.
type lease struct {
	handle  string
	from    time.Time // when it was received, by the service's clock
	until   time.Time // by the service's clock, at the latest
	talking world.Action
}

// part is one message, and what has become of it and of its copies.
type part struct {
	body, group, key string
	number           int
	queue            *world.Queue
	kind             kind
	ran              bool
	handled          bool
	refused          bool      // its Sender has said that it was not sent
	redriven         bool      // it has lost its place in its group
	steered          bool      // a handler has said when it is to come again
	permanent        bool      // a handler has called it a permanent failure
	kept             bool      // a consumer has kept it, since nothing takes it as a dead letter
	enqueued         time.Time // when it, or its latest copy, was sent, by the service's clock at the earliest
	kills            int       // processes, since it was redriven last
	hiddenUntil      time.Time // SQS has confirmed to hide hiddenID until then, by the service's clock
	hiddenID         string
	parked           []time.Time // the last times at which a copy of it was confirmed while it waited
}

// kind is what is special about a message.
type kind uint8

const (
	plain   kind = iota
	crowded      // it has ten attributes, so that a copy of it has no room for a history
	large        // no copy of it can be sent, and the dead-letter queue does not take it
	corrupt      // its digest is wrong, so that no copy of it is sent
	cursed       // every request with a copy of it is refused
	deadly       // its handlers kill their process
	forged       // its sender has written a history into it
)

var machinesEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newMachines(seed uint64) *machines {
	l := world.NewLoop(machinesEpoch, seed)
	f := &machines{loop: l, sqs: l.NewService(), byBody: make(map[string]*part), down: make(map[string]bool), nature: drawNature(l.Random)}
	f.makeQueues()
	f.configure()
	if f.sender {
		p := l.Start("sender", 0, 0)
		f.front = newSimulatedSender(p, f.queues[0], world.Latency{Base: time.Millisecond, Spread: 4 * time.Millisecond, Most: time.Second}, f.answered)
	}
	return f
}

func (f *machines) makeQueues() {
	suffix := ""
	if f.fifo {
		suffix = ".fifo"
	}
	set := engine.Settings{FIFO: f.fifo, Visibility: time.Minute, Retention: 14 * 24 * time.Hour}
	takes := func(q *world.Queue, largest int) *world.Queue {
		q.Largest = largest
		q.Takes = func(m engine.Message) error { return f.takes(q, m) }
		return q
	}
	if !f.noDeadLetters {
		f.dead = takes(f.sqs.Create("dead"+suffix, set), 2500)
		set.DeadLetter, set.MaxReceives = f.dead.Name(), f.receives
	}
	set.Retention, set.Delay, set.InFlightLimit = f.retention, f.delay, f.quota
	f.queues = []*world.Queue{takes(f.sqs.Create("main"+suffix, set), 4096)}
	if f.pooled {
		f.queues = append(f.queues, takes(f.sqs.Create("urgent"+suffix, set), 4096))
	}
	if f.laned {
		f.lane = takes(f.sqs.Create("again", set), 4096)
	}
}

// takes returns why q does not take a message.
func (f *machines) takes(q *world.Queue, m engine.Message) error {
	l := m.Payload.(*letter)
	size := len(l.body)
	for name, a := range l.attributes {
		size += len(name) + len(deref(a.DataType)) + len(deref(a.StringValue))
	}
	switch {
	case f.byBody[l.body].kind == cursed && !f.mended:
		return world.ErrUnacceptable
	case size > q.Largest, len(l.attributes) > maxAttributes:
		return world.ErrNotTaken
	}
	return nil
}

// all are the queues with messages that are yet to be worked off.
func (f *machines) all() []*world.Queue {
	if f.lane == nil {
		return f.queues
	}
	return append(slices.Clip(f.queues), f.lane)
}

// inQueues returns how many messages of the queues that are worked off are p.
func (f *machines) inQueues(p *part) (many int) {
	for _, q := range f.all() {
		for d := range q.All() {
			if f.partOf(&d) == p {
				many++
			}
		}
	}
	return many
}

func (f *machines) partOf(d *engine.Delivery) *part { return f.byBody[d.Payload.(*letter).body] }

// answered is called when the Sender has told what became of a message.
func (f *machines) answered(m engine.Message, err error) {
	p := f.byBody[m.Payload.(*letter).body]
	if p.refused = err != nil; p.refused {
		f.loop.Note("sender", "gives up message", int64(p.number))
		return
	}
	f.loop.Note("sender", "has sent message", int64(p.number))
}

// start starts a node.
func (f *machines) start() {
	f.starts++
	name, ahead := fmt.Sprint("node-", f.starts), time.Duration(0)
	if !f.calm {
		ahead = f.loop.Between(-2*time.Second, 2*time.Second)
	}
	p := f.loop.Start(name, ahead, 1e-4*(f.loop.Random.Float64()-0.5))
	n := &node{host: newHost(f.loop, p), f: f, number: f.starts}
	f.nodes = append(f.nodes, n)
	if f.pooled {
		n.pool = newSimulatedPool(f.cfg.Concurrency)
	}
	for i, q := range f.queues {
		f.add(n, q, i)
	}
	for _, m := range n.consumers {
		m.start(m.work, m)
	}
}

// add adds a consumer of q, the i-th queue, to n.
func (f *machines) add(n *node, q *world.Queue, i int) {
	cfg := f.cfg
	cfg.seed += uint64(16*n.number + i) //nolint:gosec // G115: small numbers
	cfg.Name = n.Name
	of := simulation{sqs: f.sqs, queue: q, spec: spec{batch: f.batch, pool: n.pool},
		latency: world.Latency{Base: time.Millisecond, Spread: 4 * time.Millisecond, Most: min(cfg.Lease/30, 2*time.Second)}}
	if f.pooled {
		cfg.Concurrency = 0
		of.share = Share{Priority: i * f.priority, Weight: 1 + 2*i}
	}
	if f.laned && i == 0 {
		cfg.RetryLane.URL = urlOf(f.lane.Name())
	}
	of.cfg = cfg
	consumers, err := simulate(n.host, of)
	if err != nil {
		panic(err)
	}
	for _, s := range consumers {
		n.consumers = append(n.consumers, &machine{
			simulated: s, n: n, f: f, limit: f.cfg.Concurrency, wanted: f.cfg.Concurrency, busy: make(map[string]int), worked: make(map[string]bool), givenUp: make(map[string]time.Time), due: make(map[string]time.Time), copied: make(map[string]bool),
			newest: make(map[string]*lease), asked: make(map[string][]time.Time), pausedKey: make(map[string]bool), quiet: make(map[string]time.Time),
		})
	}
}

func (f *machines) pause(n *node, paused bool) {
	if !n.Alive() || n.stopped {
		return
	}
	n.paused = paused
	for _, m := range n.consumers {
		if paused {
			m.Pause()
		} else {
			m.Resume()
		}
	}
	if paused {
		f.loop.Note(n.Name, "is paused", 0)
	}
}

func (f *machines) stop(n *node) {
	f.nodes = slices.DeleteFunc(f.nodes, func(other *node) bool { return other == n })
	if !n.Alive() || n.stopped {
		return
	}
	n.stopped = true
	f.loop.Note(n.Name, "is told to stop", 0)
	for _, m := range n.consumers {
		began := f.loop.Now()
		m.stop(func(r Report) { m.checkReport(r, f.loop.Now().Sub(began)) })
	}
}

func (f *machines) crash(n *node, after time.Duration) {
	if !n.Alive() {
		return
	}
	n.Crash()
	f.loop.After(after, "fate", f.start)
}

// states is how the consumers are, for a reader of a failure.
func (f *machines) states() string {
	var text strings.Builder
	for _, n := range f.nodes {
		for _, m := range n.consumers {
			if n.Alive() {
				fmt.Fprintf(&text, "%s: %s; ", n.Name, m.describe())
			}
		}
	}
	return text.String()
}
