package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
)

// fleet is a fleet of consumers and the queues that they share, all of them state
// machines in one loop of virtual time. A list of acts, drawn from a seed, is done to
// them.
type fleet struct {
	nature
	loop    *world.Loop
	sqs     *world.Service
	queues  []*world.Queue     // that messages are sent to
	lane    *world.Queue       // for retries; nil: there is none
	dead    *world.Queue       // nil: there is none
	front   *simulation.Sender // nil: messages are sent without a Sender
	cfg     consumer.Settings  // of the consumers that start from now on
	nodes   []*node            // that were not stopped, crashed ones included
	starts  int
	killers int     // deadly messages
	parts   []*part // in the order of sending

	failed      bool            // the service has been down: what consumers have measured of losses is high
	outages     bool            // breakers have opened: messages may be woken before they are due
	leaky       bool            // leases may have ended early, because SQS's clock was set
	mayEnd      bool            // some consumer gives messages up by its policy
	unexplained bool            // some receives have outcomes that other consumers cannot know or explain
	ruled       bool            // some consumer's policy has rules
	impatient   bool            // some consumer retries so fast that crashes count as attempts
	down        map[string]bool // keys of which the dependency is down; "": of all
	back        time.Time       // the end of the latest outage
	mended      bool            // nothing goes wrong any more
	dependency  dependency
	wrong       []string
}

// node is a process with its consumers: one, or one for each queue, and those of retry
// lanes.
type node struct {
	*world.Process
	f         *fleet
	number    int
	pool      *simulation.Pool // that the fleet's consumers share; nil: they have none, or one with their retry lane
	consumers []*machine
	paused    bool
	stopped   bool
	started   time.Duration // since the fleet began
}

// machine is one consumer of a node.
type machine struct {
	*simulation.Consumer
	Name      string
	n         *node
	lane      *machine // the consumer of its retry lane; nil: there is none
	pool      *simulation.Pool
	f         *fleet
	handlers  int
	limit     int                    // the most handlers; when it is lowered, those that run may end
	wanted    int                    // the limit as soon as no more run
	busy      map[string]int         // handlers, by message id and FIFO group
	worked    map[string]time.Time   // by message id: when its handlers have succeeded
	givenUp   map[string]time.Time   // by message id: when it reported giving the message up, on its clock
	due       map[string]time.Time   // by message id: when it reported the next attempt to be due, on its clock
	copied    map[string]bool        // bodies of which SQS has confirmed a copy
	newest    map[string]*lease      // by message id: the latest receipt
	asked     map[string][]time.Time // by message id: the latest requests
	pausedKey map[string]bool
	told      int64                // messages whose outcome it has reported
	quiet     map[string]time.Time // by breaker key: since when messages wait behind it and no handler has started
	leftAlone map[uint64]int       // what could be received while it had nothing to do
}

// lease is the lease of a receipt handle.
type lease struct {
	receipt engine.Receipt
	from    time.Time // when it was received, by the service's clock
	until   time.Time // by the service's clock, at the latest
	talking bool      // a request about it is under way, namely:
	about   simulation.RequestKind
	asked   time.Time // when the latest request was made, by the service's clock
}

// part is one message, with the states of it and of its copies.
type part struct {
	body, group, key string
	number           int
	queue            *world.Queue
	kind             kind
	ran              bool
	handled          bool
	refused          bool      // its Sender reported that it was not sent
	redriven         bool      // it has lost its place in its group
	steered          bool      // a handler has chosen when it is retried
	permanent        bool      // a handler has called it a permanent failure
	kept             bool      // a consumer has kept it, because no dead-letter queue accepts it
	enqueued         time.Time // when it, or its latest copy, was sent, by the service's clock at the earliest
	kills            int       // processes, since it was redriven last
	hiddenUntil      time.Time // SQS has confirmed to hide hiddenID until then, by the service's clock
	hiddenID         string
	parked           []time.Time // when a copy of it was confirmed since its latest run
}

// kind has the special properties of a message.
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

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newFleet(seed uint64) *fleet {
	l := world.NewLoop(epoch, seed)
	f := &fleet{loop: l, sqs: l.NewService(), down: make(map[string]bool), nature: drawNature(l.Random)}
	f.makeQueues()
	f.configure()
	if f.sender {
		p := l.Start("sender", 0, 0)
		latency := world.Latency{Base: time.Millisecond, Spread: 4 * time.Millisecond, Most: time.Second}
		f.front = simulation.NewSender(p, f.queues[0], latency, func(payload any) int { return len(partOf(payload).body) }, f.answered)
	}
	return f
}

func (f *fleet) makeQueues() {
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

// damaged reports whether the digest of a message is wrong. That of a dead letter is right.
func damaged(payload any) bool {
	p, first := payload.(*part)
	return first && p.kind == corrupt
}

// takes returns why q does not accept a message; nil: it does.
func (f *fleet) takes(q *world.Queue, m engine.Message) error {
	p := partOf(m.Payload)
	size, attributes := measure(m.Payload)
	if c, ok := m.Payload.(*simulation.Copy); ok {
		size, attributes = size+len(history.Attribute)+len("String")+len(c.History), attributes+1
	}
	switch {
	case p.kind == cursed && !f.mended:
		return world.ErrUnacceptable
	case size > q.Largest, attributes > mostAttributes:
		return world.ErrNotTaken
	}
	return nil
}

// all returns the queues whose messages consumers handle.
func (f *fleet) all() []*world.Queue {
	if f.lane == nil {
		return f.queues
	}
	return append(slices.Clip(f.queues), f.lane)
}

// inQueues returns how many messages in these queues are p or copies of it.
func (f *fleet) inQueues(p *part) (many int) {
	for _, q := range f.all() {
		for d := range q.All() {
			if partOf(d.Payload) == p {
				many++
			}
		}
	}
	return many
}

// partOf returns the message that a payload, a copy or a dead letter belongs to.
func partOf(payload any) *part {
	switch p := payload.(type) {
	case *simulation.Copy:
		return partOf(p.Payload)
	case *simulation.DeadLetter:
		return partOf(p.Payload)
	}
	return payload.(*part)
}

const (
	mostAttributes = 10 // of a message
	attributeSize  = len("attribute-0") + len("String") + len("x")
	storySize      = 500 // about
)

// measure returns the size of a message, without the history of a copy. A dead letter has a story if
// there is room for one.
func measure(payload any) (size, attributes int) {
	if c, ok := payload.(*simulation.Copy); ok {
		payload = c.Payload
	}
	p := partOf(payload)
	if p.kind == crowded {
		attributes = mostAttributes
	}
	size = len(p.body) + attributes*attributeSize
	if _, ok := payload.(*simulation.DeadLetter); ok && attributes < mostAttributes {
		size, attributes = size+storySize, attributes+1
	}
	return size, attributes
}

// answered is called when the Sender has reported the outcome of a message.
func (f *fleet) answered(m engine.Message, sent bool) {
	p := partOf(m.Payload)
	if p.refused = !sent; p.refused {
		f.loop.Note("sender", "gives up message", int64(p.number))
		return
	}
	f.loop.Note("sender", "has sent message", int64(p.number))
}

// start starts a node.
func (f *fleet) start() {
	f.starts++
	name, ahead := fmt.Sprint("node-", f.starts), time.Duration(0)
	if !f.calm {
		ahead = f.loop.Between(-2*time.Second, 2*time.Second)
	}
	p := f.loop.Start(name, ahead, 1e-4*(f.loop.Random.Float64()-0.5))
	n := &node{Process: p, f: f, number: f.starts, started: f.loop.Since()}
	f.nodes = append(f.nodes, n)
	if f.pooled {
		n.pool = simulation.NewPool(f.cfg.Concurrency)
	}
	for i, q := range f.queues {
		f.add(n, q, i)
	}
	for _, m := range n.consumers {
		m.Start()
	}
}

// add adds a consumer of q, the i-th queue, to n, and that of its retry lane.
func (f *fleet) add(n *node, q *world.Queue, i int) {
	share, pool := consumer.Share{Priority: i * f.priority, Weight: 1 + 2*i}, n.pool
	if !f.pooled {
		share.Weight = 1
	}
	if !f.laned || i > 0 {
		m := f.newMachine(n, q, i, nil)
		if pool != nil {
			m.join(pool, share)
		}
		return
	}
	if pool == nil {
		pool = simulation.NewPool(f.cfg.Concurrency)
	}
	m := f.newMachine(n, q, i, f.lane)
	m.lane = f.newMachine(n, f.lane, i, nil)
	m.lane.IsLaneOf(m.Consumer)
	m.join(pool, share)
	m.lane.join(pool, consumer.Share{Weight: 1})
}

// newMachine makes the consumer of q, which sends copies to lane if there is one.
func (f *fleet) newMachine(n *node, q *world.Queue, i int, lane *world.Queue) *machine {
	m := &machine{
		Name: n.Name, n: n, f: f, limit: f.cfg.Concurrency, wanted: f.cfg.Concurrency, busy: make(map[string]int), worked: make(map[string]time.Time), givenUp: make(map[string]time.Time), due: make(map[string]time.Time), copied: make(map[string]bool),
		newest: make(map[string]*lease), asked: make(map[string][]time.Time), pausedKey: make(map[string]bool), quiet: make(map[string]time.Time),
	}
	of := simulation.Spec{
		Settings: f.cfg, Process: n.Process, Service: f.sqs, Queue: q, Lane: lane,
		Latency: world.Latency{Base: time.Millisecond, Spread: 4 * time.Millisecond, Most: min(f.cfg.Lease/30, 2*time.Second)},
		Handler: func(msg *simulation.Message) simulation.Run { return m.work([]*simulation.Message{msg}) }, BatchHandler: m.work,
		Measure: measure,
		Damaged: damaged,
		Signs:   f.signed, CountsFail: true, Observed: true, Watcher: m,
		Attempted: m.attempted, Settled: m.settled, Deleted: m.deleted, Reported: m.reported,
	}
	of.Settings.Seed += uint64(16*n.number + i) //nolint:gosec // G115: small numbers
	if f.keyed {
		of.Key = func(payload any) string { return partOf(payload).key }
	}
	if f.probed {
		of.Probe, of.ProbeTakes = m.probe, func() time.Duration { return f.loop.Between(time.Millisecond, time.Second) }
	}
	c, err := simulation.New(of)
	if err != nil {
		panic(err)
	}
	m.Consumer = c
	n.consumers = append(n.consumers, m)
	return m
}

// join adds m to pool, with all places if it can.
func (m *machine) join(pool *simulation.Pool, share consumer.Share) {
	m.pool = pool
	pool.Join(m.Consumer, share, true)
}

// each calls do in a section of the machine of m's retry lane, if it has one, and in one of m's.
func (m *machine) each(do func(*consumer.Machine)) {
	if m.lane != nil {
		m.lane.Operate(do)
	}
	m.Operate(do)
}

func (f *fleet) pause(n *node, paused bool) {
	if !n.Alive() || n.stopped {
		return
	}
	n.paused = paused
	for _, m := range n.consumers {
		m.each(func(c *consumer.Machine) { c.SetPaused(paused) })
	}
	if paused {
		f.loop.Note(n.Name, "is paused", 0)
	}
}

func (f *fleet) stop(n *node) {
	f.nodes = slices.DeleteFunc(f.nodes, func(other *node) bool { return other == n })
	if !n.Alive() || n.stopped {
		return
	}
	n.stopped = true
	f.loop.Note(n.Name, "is told to stop", 0)
	for _, m := range n.consumers {
		began := f.loop.Now()
		m.Stop(func(left simulation.Left) { m.checkReport(left, f.loop.Now().Sub(began)) })
	}
}

func (f *fleet) crash(n *node, after time.Duration) {
	if !n.Alive() {
		return
	}
	n.Crash()
	f.loop.After(after, "fate", f.start)
}

// states describes the consumers, for the message of a failure.
func (f *fleet) states() string {
	var text strings.Builder
	for _, n := range f.nodes {
		for _, m := range n.consumers {
			if n.Alive() {
				fmt.Fprintf(&text, "%s: %s; ", n.Name, m.Consumer)
			}
		}
	}
	return text.String()
}
