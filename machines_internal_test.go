package reprise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// machines is a fleet of consumers and the queue that they share, all of them state
// machines in one loop of virtual time. What happens to them is a list of acts, drawn
// from a seed.
type machines struct {
	loop    *world.Loop
	sqs     *world.Service
	queue   *world.Queue
	dead    *world.Queue
	fifo    bool
	calm    bool // nothing goes wrong but handlers
	cfg     Config
	nodes   []*machine // that were not stopped, crashed ones included
	starts  int
	parts   []*part // in the order of sending
	byBody  map[string]*part
	outages bool // breakers have opened, and what waits may be woken before its time
	leaky   bool // leases may have ended before their time, since the clock of SQS has been set
	outage  bool
	back    time.Time // the end of the latest outage
	mended  bool      // nothing goes wrong any more
	wrong   []string
}

// part is one message, and what has become of it and of its copies.
type part struct {
	body, group string
	number      int
	ran         bool
	handled     bool
	redriven    bool      // it has lost its place in its group
	permanent   bool      // a handler has called it a permanent failure
	hiddenUntil time.Time // SQS has confirmed to hide hiddenID until then, by the service's clock
	hiddenID    string
}

// machine is one consumer of the fleet.
type machine struct {
	*simulated
	f          *machines
	number     int
	handlers   int
	busy       map[string]int         // handlers, by message id and FIFO group
	worked     map[string]bool        // by message id: its handlers have succeeded
	copied     map[string]bool        // bodies of which SQS has confirmed a copy
	newest     map[string]*lease      // by message id: the latest receipt
	asked      map[string][]time.Time // by message id: the latest requests
	paused     bool
	stopped    bool
	told       int64          // messages of which it has said what became of them
	quietSince time.Time      // no handler has started since, while messages wait behind a breaker; zero otherwise
	leftAlone  map[uint64]int // what could be received while it had nothing to do
}

// lease is what a receipt stands for.
type lease struct {
	handle  string
	until   time.Time // by the service's clock, at the latest
	talking world.Action
}

const (
	machinesLive  = 5 * time.Hour   // until the faults end
	machinesEnd   = 120 * time.Hour // by then all is done
	machinesRange = 90 * time.Second
)

var machinesEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newMachines(seed uint64) *machines {
	l := world.NewLoop(machinesEpoch, seed)
	f := &machines{loop: l, sqs: l.NewService(), byBody: make(map[string]*part), fifo: l.Chance(0.4), calm: l.Chance(0.25)}
	suffix := ""
	if f.fifo {
		suffix = ".fifo"
	}
	receives := 1000
	if !f.fifo {
		receives = []int{3, 6, 1000, 1000}[l.Random.IntN(4)]
	}
	f.dead = f.sqs.Create("dead"+suffix, engine.Settings{FIFO: f.fifo, Visibility: time.Minute, Retention: 14 * 24 * time.Hour})
	f.queue = f.sqs.Create("main"+suffix, engine.Settings{FIFO: f.fifo, Visibility: time.Minute, Retention: 14 * 24 * time.Hour, DeadLetter: f.dead.Name(), MaxReceives: receives})
	f.configure()
	return f
}

// configure draws how the consumers that start from now on are configured.
func (f *machines) configure() {
	r := f.loop.Random
	f.cfg = Config{
		Concurrency: 1 + r.IntN(12),
		Prefetch:    r.IntN(22) - 1,
		Lease:       time.Duration(2+r.IntN(40)) * time.Second,
		StopBudget:  time.Duration(1+r.IntN(30)) * time.Second,
		Retry: retry.Policy{
			Backoff:     retry.Exponential{Base: time.Second, Max: time.Duration(1+r.IntN(60)) * time.Second},
			MaxAttempts: []int{-1, 3, 5}[r.IntN(3)],
			MaxAge:      -1,
		},
		seed: r.Uint64(),
	}
	switch r.IntN(8) {
	case 0: // waits of hours, beyond what SQS hides a message at a time too
		f.cfg.Retry.Backoff = retry.Exponential{Base: time.Duration(1+r.IntN(800)) * time.Minute, Max: 16 * time.Hour}
	case 1:
		f.cfg.Retry.Backoff = retry.Exponential{Base: time.Second, Max: time.Hour}
	}
	if r.IntN(3) == 0 {
		f.cfg.HandlerTimeout = 3 * time.Second
	}
	if f.fifo {
		f.cfg.FIFO = FIFO(r.IntN(3))
	} else {
		f.cfg.Via = []Via{ViaAuto, ViaAuto, ViaVisibility, ViaRequeue}[r.IntN(4)]
	}
}

func (f *machines) start() *machine {
	f.starts++
	n := &machine{
		f: f, number: f.starts, busy: make(map[string]int), worked: make(map[string]bool), copied: make(map[string]bool),
		newest: make(map[string]*lease), asked: make(map[string][]time.Time),
	}
	cfg := f.cfg
	cfg.seed += uint64(n.number) //nolint:gosec // G115: a small number
	cfg.Name = fmt.Sprint("node-", n.number)
	cfg.Observer.Settled = n.settled
	cfg.Observer.Attempt = n.attempted
	cfg.Observer.Outage = n.outageChanged
	ahead := time.Duration(0)
	if !f.calm {
		ahead = f.loop.Between(-2*time.Second, 2*time.Second)
	}
	p := f.loop.Start(cfg.Name, ahead, 1e-4*(f.loop.Random.Float64()-0.5))
	latency := world.Latency{Base: time.Millisecond, Spread: 4 * time.Millisecond, Most: min(cfg.Lease/30, 2*time.Second)}
	s, err := simulate(f.loop, p, f.queue, f.dead, latency, n.work, n, cfg)
	if err != nil {
		panic(err)
	}
	n.simulated = s
	f.nodes = append(f.nodes, n)
	return n
}

func (f *machines) pause(n *machine, paused bool) {
	if !n.Alive() || n.stopped {
		return
	}
	if n.paused = paused; paused {
		n.Pause()
		f.loop.Note(n.Name, "is paused", 0)
	} else {
		n.Resume()
	}
}

func (f *machines) stop(n *machine) {
	f.nodes = slices.DeleteFunc(f.nodes, func(other *machine) bool { return other == n })
	if !n.Alive() || n.stopped {
		return
	}
	n.stopped = true
	began := f.loop.Now()
	f.loop.Note(n.Name, "is told to stop", 0)
	n.stop(func(r Report) {
		f.loop.Note(n.Name, "has stopped", r.Counts.Received)
		if took := f.loop.Now().Sub(began); f.calm && took > n.cfg.StopBudget+time.Second {
			f.broken("a stop ends within its budget", "%s took %v of %v", n.Name, took, n.cfg.StopBudget)
		}
		if !r.Drained() {
			f.loop.Note(n.Name, "leaves work behind", int64(len(r.Abandoned)+len(r.Unsettled)))
			return
		}
		c := r.Counts
		if all := c.Duplicates + c.Deleted + c.Retried + c.Released + c.Parked + c.DeadLettered + c.Kept + c.Lost; c.Received != all || n.told != all-c.Duplicates {
			f.broken("each delivery is counted, and told, as a duplicate or with what became of it", "%s has told of %d: %+v", n.Name, n.told, c)
		}
		if s := n.Status(); s.Running+s.Waiting+s.Settling+s.Pollers != 0 {
			f.broken("nothing is held and nobody receives after a drain", "%s: %+v", n.Name, s)
		}
	})
}

// work is the model of a handler.
func (n *machine) work(m *Message) work {
	f, r := n.f, n.f.loop.Random
	p := f.byBody[m.Body]
	f.loop.Note(n.Name, "runs message", int64(p.number))
	p.ran = true
	n.quietSince = time.Time{}
	n.handlers++
	keys := []string{m.ID}
	if f.fifo {
		keys = append(keys, "group "+m.GroupID)
	}
	for _, key := range keys {
		n.busy[key]++
	}
	f.checkRun(n, p, m, keys)
	takes := time.Duration(1 + r.Int64N(int64(500*time.Millisecond)))
	if r.IntN(12) == 0 {
		takes = time.Duration(1 + r.Int64N(int64(3*n.cfg.Lease)))
		f.loop.Note(n.Name, "runs a message for long", int64(p.number))
	}
	return work{
		takes: takes, heeds: r.IntN(10) > 0,
		finished: func() {
			n.handlers--
			for _, key := range keys {
				n.busy[key]--
			}
		},
		err: func() error { return n.outcome(p, m) },
	}
}

var errOfHandler = errors.New("it failed")

// outcome draws what a handler returns.
func (n *machine) outcome(p *part, m *Message) error {
	f := n.f
	what := f.loop.Random.IntN(14)
	switch {
	case f.mended && p.permanent:
		what = 6
	case f.mended:
		what = 13
	case f.outage:
		return Unavailable(errOfHandler)
	}
	switch what {
	case 0:
		return &PanicError{Value: "burst"}
	case 1, 2, 3:
		return errOfHandler
	case 4:
		return RetryAfter(20*time.Second, errOfHandler)
	case 5:
		return Release(0, errOfHandler)
	case 6:
		p.permanent = true
		return Permanent(errOfHandler)
	}
	n.worked[m.ID], p.handled = true, true
	f.loop.Note(n.Name, "has done message", int64(p.number))
	return nil
}

func (n *machine) attempted(_ context.Context, e Attempt) {
	n.f.loop.Note(n.Name, "attempt: "+e.Outcome.String(), int64(n.f.byBody[e.Message.Body].number))
}

func (n *machine) outageChanged(_ context.Context, e OutageEvent) {
	n.f.outages = true
	n.f.loop.Note(n.Name, "breaker: "+e.State.String(), int64(e.Held))
}

func (n *machine) settled(_ context.Context, e Settled) {
	n.told++
	if e.Outcome == OutcomeLost && n.f.calm {
		n.f.broken("in calm, no lease is lost", "%s, by %s: %v", e.Message.Body, n.Name, e.Err)
	}
	n.f.loop.Note(n.Name, "settled: "+e.Outcome.String(), int64(n.f.byBody[e.Message.Body].number))
}
