package reprise

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// These files are the only ones of the fleets of machines that know the core of a
// consumer: simulated is its platform, simulated_work its workers, simulated_requests
// its requests, and simulated_sender is the shell of a Sender's machine.

// host is a process in a world of virtual time, with the consumers that run in it.
type host struct {
	*world.Process
	loop   *world.Loop
	latest time.Time     // that now has returned, when
	since  time.Duration // the loop had run for so long
}

func newHost(l *world.Loop, p *world.Process) *host {
	return &host{Process: p, loop: l, latest: p.Now(), since: l.Since()}
}

// now is the larger of what the wall clock and the time that has passed say, and never
// goes back, as [passed] and [elapsed] make of the clocks of a system.
func (h *host) now() time.Time {
	since := h.loop.Since()
	now := h.latest.Add(since - h.since)
	if wall := h.Process.Now(); wall.After(now) {
		now = wall
	}
	h.latest, h.since = now, since
	return now
}

// simulated is a consumer in a world of virtual time: its platform is a process of that
// world, its requests go over the process's links to queues of internal/engine, and its
// handlers are models. Nothing in it waits, and nothing runs beside it.
type simulated struct {
	*host
	*Consumer
	sqs       *world.Service
	link      *world.Link // of most requests
	beats     *world.Link // of heartbeats, which are not awaited so long
	queue     *world.Queue
	timer     *world.Timer
	model     model
	observer  observer
	running   []*shift
	receiving []*receiving
	ended     func(Report)
	stops     time.Time // when it was told to stop; zero: it was not
	seen      []entry   // reused
}

// model is what handlers are about to do with messages: one, or those of a batch.
type model func(messages []*Message) work

// work is what a handler is about to do.
type work struct {
	takes    time.Duration
	heeds    bool           // it returns when its context ends
	errs     func() []error // what it returns otherwise; nil: everything has succeeded
	finished func()
}

// observer is told what passes between a simulated consumer and the queue, and what the
// consumer tells its users.
type observer interface {
	arrived(d *engine.Delivery)                            // a receive has brought it
	asks(action world.Action, batch []entry)               // a request begins
	confirmed(action world.Action, e entry, c world.Entry) // SQS has carried out an entry
	answered(batch []entry)                                // the request has ended

	attempted(Attempt)
	settled(Settled)
	outageChanged(OutageEvent)
	expires(Expiring)
	deleted(*Message) // Config.AfterDelete
}

// entry is one of a request, as an observer sees it.
type entry struct {
	*Message
	handle  string
	outcome Outcome
	alone   bool // the copy is to run alone
}

// These are actions that are one call to SQS, and for which observers have several names.
const (
	heartbeat world.Action = "heartbeat"
	wakeUp    world.Action = "wake"
)

// simulation is what a simulated consumer is made of.
type simulation struct {
	spec
	sqs     *world.Service
	queue   *world.Queue
	latency world.Latency
}

// simulate makes a consumer that runs in h, and that of its retry lane if it has one. They
// have to be watched and started.
func simulate(h *host, of simulation) (all []*simulated, err error) {
	link := h.NewLink(of.latency, settleTimeout)
	of.url, of.client = urlOf(of.queue.Name()), attributesOnly{sqs: of.sqs, link: link}
	of.cfg.Logger = slog.New(slog.DiscardHandler)
	observe(&of.cfg)
	if of.batch == nil {
		of.handler = HandlerFunc(func(context.Context, *Message) error { panic("a model runs") })
	} else {
		of.batchHandler = BatchHandlerFunc(func(context.Context, []*Message) []error { panic("a model runs") })
	}
	c, err := of.consumer()
	if err != nil {
		return nil, err
	}
	for ; c != nil; c = c.retryLane {
		s := &simulated{host: h, Consumer: c, sqs: of.sqs, queue: of.sqs.Queue(c.queue.name), link: link}
		s.beats = h.NewLink(of.latency, min(heartbeatTimeout, c.cfg.Lease/5))
		s.timer = h.NewTimer(func() { s.ringAlarms(); s.interrupt() })
		s.platform = s
		s.makeContexts(context.WithValue(context.Background(), simulatedKey{}, s))
		all = append(all, s)
	}
	return all, nil
}

// simulateOne has one consumer consume that nobody watches.
func simulateOne(h *host, of simulation, m model) error {
	all, err := simulate(h, of)
	if err == nil {
		all[0].start(m, unobserved{})
	}
	return err
}

// unobserved is an observer that looks away.
type unobserved struct{ observer }

func (unobserved) arrived(*engine.Delivery)                   {}
func (unobserved) asks(world.Action, []entry)                 {}
func (unobserved) confirmed(world.Action, entry, world.Entry) {}
func (unobserved) answered([]entry)                           {}
func (unobserved) attempted(Attempt)                          {}
func (unobserved) settled(Settled)                            {}
func (unobserved) deleted(*Message)                           {}

// simulatedKey is the key of a consumer in its contexts: it shares its Config with that of
// its retry lane.
type simulatedKey struct{}

// observe has the observers of the consumers with cfg told what they tell their users.
func observe(cfg *Config) {
	of := func(ctx context.Context) observer { return ctx.Value(simulatedKey{}).(*simulated).observer }
	cfg.Observer = Observer{
		Attempt:  func(ctx context.Context, e Attempt) { of(ctx).attempted(e) },
		Settled:  func(ctx context.Context, e Settled) { of(ctx).settled(e) },
		Outage:   func(ctx context.Context, e OutageEvent) { of(ctx).outageChanged(e) },
		Expiring: func(ctx context.Context, e Expiring) { of(ctx).expires(e) },
	}
	cfg.AfterDelete = func(ctx context.Context, m *Message) { of(ctx).deleted(m) }
}

// start has s consume, with model for a handler.
func (s *simulated) start(model model, o observer) {
	s.model, s.observer = model, o
	learned := s.learn(context.Background())
	m := s.enter()
	m.Start(false)
	if !learned {
		m.LearnLater()
	}
	s.leave()
}

// The platform.

func (s *simulated) ring(in time.Duration) { s.timer.Set(s.Process.Now().Add(in)) }

func (s *simulated) startEffect(e consumer.Effect) {
	switch e.Kind {
	case consumer.Work:
		s.After(0, s.work)
	case consumer.Interrupt:
		ofMachine(e.Delivery).run.ctx.end(ErrLeaseLost)
	case consumer.Receive:
		s.receive(e.Poller, e.N)
	case consumer.Send:
		s.After(0, func() { s.send(e.Outbox, e.Batch) })
	case consumer.Heartbeat:
		s.After(0, func() { s.heartbeat(e.Batch) })
	case consumer.Wake:
		s.wake(e.Waking)
	case consumer.Count:
		s.After(0, s.readInFlight)
	case consumer.Learn:
		s.After(0, s.learnAgain)
	case consumer.Probe:
		s.After(s.loop.Between(time.Millisecond, time.Second), func() { s.runProbe(e.Gate, e.N, e.Started) })
	case consumer.RunAfterDelete:
		s.After(0, s.afterDelete)
	case consumer.TellReports:
		s.After(0, s.reportInOrder)
	case consumer.TellSettled:
		s.After(0, s.tellSettled)
	case consumer.Emptied:
		s.After(0, func() {
			if s.idle() {
				s.end(false)
			}
		})
	}
}

// Stopping.

// stop has the consumer drain. ended is called with its report.
func (s *simulated) stop(ended func(Report)) {
	s.ended, s.stops = ended, s.now()
	s.beginStop()
	soft := s.softBudget()
	stranded := false
	s.After(soft, func() {
		if s.ended == nil {
			return
		}
		stranded = s.stopHandlers()
		for len(s.receiving) > 0 {
			r := s.receiving[0]
			s.receiveEnds(r)
			s.enter().ReceiveFailed(r.poller, r.n, failureOf(context.Canceled))
			s.leave()
		}
		s.interrupt()
	})
	s.After(s.cfg.StopBudget, func() { s.end(stranded) })
	if s.idle() {
		s.end(false)
	}
}

// end ends the drain.
func (s *simulated) end(stranded bool) {
	if ended := s.ended; ended != nil {
		s.ended = nil
		ended(s.close(stranded, s.stops))
	}
}

// describe is how s is, for a reader of a failure.
func (s *simulated) describe() string {
	defer s.unlock()
	return fmt.Sprintf("%s: %v, rings at %v", s.queue.Name(), s.lock(), s.ringsAt)
}

// newSimulatedPool is NewPool, which goes by the clock of the system.
func newSimulatedPool(concurrency int) *Pool { return &Pool{machine: consumer.NewPool(concurrency)} }
