package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
)

// Progress is how far a simulation has come.
type Progress struct {
	Time                       time.Duration // since its start, in its own time
	Arrived, Settled, Attempts int
}

// Run simulates a scenario. It calls progress, unless that is nil, several times a second of its own
// time. If ctx ends before the simulation does, Run returns what it has found until then together with the
// context's cause. Any other error names what is wrong with the scenario, and the result is nil.
func Run(ctx context.Context, s Scenario, progress func(Progress)) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("the scenario is invalid:\n%w", err)
	}
	s = s.WithDefaults()
	if s.Fluid {
		return runFluid(ctx, &s, progress)
	}
	r := newRun(&s)
	if err := r.begin(); err != nil {
		return nil, err
	}
	for ctx.Err() == nil && r.result.Stop == 0 {
		if err := r.slice(); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(Progress{r.loop.Since(), len(r.messages), r.settled, r.result.Attempts.Started})
		}
	}
	if r.result.Stop == 0 {
		r.result.Stop = StopInterrupted
		r.finish()
		return r.result, context.Cause(ctx)
	}
	r.finish()
	return r.result, nil
}

// epoch is when simulations begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// visibility is the queue's own visibility timeout, which no consumer uses.
const visibility = 30 * time.Second

// run is a simulation.
type run struct {
	*Scenario

	loop    *world.Loop
	service *world.Service
	queue   *world.Queue
	lane    *world.Queue // of retries; nil: there is none
	dead    *world.Queue // of all queues; nil: there is none
	pool    []*ofPool    // the scenario's own queue and the further ones; nil: there are no further ones
	nodes   []*node
	started int // nodes, in all

	messages []*message // in the order in which they were sent
	block    []message  // room for the next ones
	sources  int        // of traffic, that have not ended
	settled  int        // messages that are done or given up
	given    int        // times that a dead letter was confirmed
	moved    int        // messages that SQS itself has moved to the dead-letter queue
	oldest   int        // all messages before it are settled or expired

	tokens float64       // of the dependency's capacity
	filled time.Duration // when tokens were counted last
	second int64         // the second in which the dependency was last called
	calls  int           // in that second

	recoveries []recovery
	series     series
	now        Bucket // the present period
	running    int
	waiting    int
	pace       time.Duration // how long the next slice is
	result     *Result
}

// message is what is known of a message.
type message struct {
	sent, began, ended time.Duration // began of the first attempt, ended of the first success
	renewed            time.Duration // when a copy took its place
	number             uint32
	attempts           uint32
	state              state
	permanent, always  bool
	waits              bool
	queue              uint8 // in run.pool
}

type state uint8

const (
	open state = iota
	done
	given // up
)

func newRun(s *Scenario) *run {
	l := world.NewLoop(epoch, s.Seed)
	return &run{
		Scenario: s, loop: l, service: l.NewService(), series: newSeries(s.Bucket), pace: time.Second,
		tokens: s.Dependency.Burst, second: -1, result: &Result{Scenario: *s},
	}
}

// begin creates the queues, starts the consumers, and has the traffic, outages and restarts begin.
func (r *run) begin() error {
	suffix := ""
	if r.Queue.FIFO {
		suffix = ".fifo"
	}
	settings := engine.Settings{
		FIFO: r.Queue.FIFO, Delay: r.Queue.Delay, Visibility: visibility, Retention: r.Queue.Retention, InFlightLimit: r.Queue.InFlightQuota,
	}
	if !r.Queue.NoDeadLetters {
		r.dead = r.service.Create("dead"+suffix, engine.Settings{FIFO: r.Queue.FIFO, Retention: 2 * MaxHorizon})
		if r.Queue.MaxReceives > 0 {
			settings.DeadLetter, settings.MaxReceives = r.dead.Name(), r.Queue.MaxReceives
		}
	}
	r.queue = r.service.Create("main"+suffix, settings)
	if r.Fleet.RetryLane.Weight > 0 {
		ofLane := settings
		ofLane.Delay = 0
		r.lane = r.service.Create("retries", ofLane)
	}
	r.poolBegins(func(name string) *world.Queue { return r.service.Create(name+suffix, settings) })
	for queue := range max(len(r.pool), 1) {
		r.trafficBegins(uint8(queue)) //nolint:gosec // G115: at most maxPooled
	}
	r.outagesBegin()
	for range r.Fleet.Consumers {
		if err := r.start(); err != nil {
			return err
		}
	}
	for _, restart := range r.Fleet.Restarts {
		r.after(restart.At, func() { r.restart(restart) })
	}
	r.result.Notes = r.notes()
	return nil
}

// after runs do at a time since the start.
func (r *run) after(at time.Duration, do func()) {
	r.loop.After(at-r.loop.Since(), "the scenario", do)
}

// The bounds of a slice: how many attempts it should have, and how long it is at the end, when the
// queue may become empty at any time.
const (
	sliceAttempts = 10_000
	lastSlices    = 10 * time.Second
)

// slice simulates a little more, within the present period.
func (r *run) slice() error {
	end := r.now.At + r.series.width
	if r.sources == 0 {
		end = min(end, r.loop.Since()+lastSlices)
	}
	end = min(end, r.loop.Since()+r.pace, MaxHorizon)
	if r.Horizon > 0 {
		end = min(end, r.Horizon)
	}
	before := r.result.Attempts.Started
	if err := r.loop.Run(end); err != nil {
		return fmt.Errorf("simulating: %w", err)
	}
	switch made := r.result.Attempts.Started - before; {
	case made > 2*sliceAttempts:
		r.pace = max(r.pace/2, time.Millisecond)
	case made < sliceAttempts/2:
		r.pace = min(r.pace*2, MaxHorizon)
	}
	switch {
	case r.sources == 0 && r.open() == 0 && r.running == 0 && r.Horizon == 0:
		r.result.Stop = StopSettled
	case end == MaxHorizon || end == r.Horizon:
		r.result.Stop = StopHorizon
	}
	if end >= r.now.At+r.series.width {
		r.sample()
	}
	return nil
}

// finish completes the result.
func (r *run) finish() {
	r.closeSecond() // the horizon, or the context, may have cut it short
	if r.loop.Since() > r.now.At {
		r.sample()
	}
	r.second, r.calls = -1, 0
	res := r.result
	res.Ended, res.Series = r.loop.Since(), r.series.all
	res.Attempts.Running = r.running
	left := make(map[*message]bool)
	for _, q := range r.worlds() {
		for _, d := range q.Messages() {
			left[messageOf(d.Payload)] = true
		}
	}
	for _, one := range r.messages {
		res.Messages.count(one, left)
		if one.state != open {
			res.countAttempts(int(one.attempts))
		}
	}
	times := make([]time.Duration, 0, len(r.messages)) // of both, one after the other
	for _, one := range r.messages {
		if one.attempts > 0 {
			times = append(times, one.began-one.sent)
		}
	}
	res.Wait = quantilesOf(times)
	times = times[:0]
	for _, one := range r.messages {
		if one.state == done {
			times = append(times, one.ended-one.sent)
		}
	}
	res.Latency = quantilesOf(times)
	r.recovered(left)
	res.Queues = r.queues(left)
}

// mostAttempts is the length of PerMessage at the most.
const mostAttempts = 1000

func (r *Result) countAttempts(n int) {
	n = min(n, mostAttempts)
	for len(r.PerMessage) <= n {
		r.PerMessage = append(r.PerMessage, 0)
	}
	r.PerMessage[n]++
}

// messageOf is the message whose payload, copy or dead letter p is.
func messageOf(p any) *message {
	switch p := p.(type) {
	case *simulation.Copy:
		return messageOf(p.Payload)
	case *simulation.DeadLetter:
		return messageOf(p.Payload)
	}
	return p.(*message)
}
