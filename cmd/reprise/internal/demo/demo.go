// Package demo shows the main job on real input: hundreds of webhooks, a queue, a
// service that has a bad day, and a consumer that loses nothing. The parts talk
// over real HTTP, and at the end their books are compared.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/sender"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/retry"
)

// The queues.
const (
	queueName = "webhooks"
	deadName  = "webhooks-dead"
	region    = "us-east-1"
)

const (
	attemptTimeout = 2 * time.Second

	leastConcurrency = 16
	maxConcurrency   = 256

	// leastLimit is when the demo gives up waiting for messages to be settled, or
	// perMessage each where that is later.
	leastLimit = 35 * time.Second
	perMessage = 20 * time.Millisecond

	// stopBudget keeps an interrupted demo short.
	stopBudget = 6 * time.Second
)

// policy rides out the outage, with waits that a spectator can sit through.
var policy = retry.Policy{
	Backoff:     retry.Exponential{Base: 500 * time.Millisecond, Factor: 2, Max: 3 * time.Second},
	Jitter:      retry.Full,
	MaxAttempts: 9,
	MaxAge:      5 * time.Minute,
}

// Config says how to run the demo.
type Config struct {
	// Messages is how many are sent.
	Messages int
	// Seed makes the order of the messages, the service's moods and the jitter
	// repeatable.
	Seed uint64
	// Addr is where the SQS server listens.
	Addr string
	// Keep leaves everything running after the report, until drain.
	Keep bool
	// Out gets the progress and the report.
	Out *terminal.Terminal
	// Logger gets what should not happen.
	Logger *slog.Logger
}

// ErrBroken is returned by [Run] if a promise was broken; the report says which.
var ErrBroken = errors.New("a promise was broken: see the lines marked BROKEN")

// ErrUnfinished is returned by [Run] if messages were still waiting when the time
// was up.
var ErrUnfinished = errors.New("the time was up before every message was settled: is this machine very busy?")

// Run shows the demo. It ends by itself, or gently when drain is closed, or at once
// with ctx. The error is nil only if every promise was kept.
func Run(ctx context.Context, drain <-chan struct{}, cfg Config) error {
	bodies := shuffled(cfg.Messages, cfg.Seed)
	r := &run{cfg: cfg, bodies: bodies, tally: newTally(len(bodies))}
	r.progress = progress{out: cfg.Out, began: time.Now(), total: len(bodies), tally: r.tally}
	var err error
	r.service, err = startService(ctx, cfg.Seed, bodies, r.serviceChanged)
	if err != nil {
		return err
	}
	defer r.service.Close()
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: r.service.URL(), Queue: queueName, Connections: concurrency(len(bodies))})
	if err != nil {
		return err
	}
	defer target.Close()
	r.daemon, err = daemon.New(r.daemonConfig(target))
	if err != nil {
		return err
	}
	r.progress.service, r.progress.status = r.service, r.daemon.Consumer().Status
	return r.run(ctx, drain)
}

// run is one run of the demo.
type run struct {
	cfg      Config
	bodies   []string
	tally    *tally
	service  *service
	daemon   *daemon.Daemon
	progress progress
	final    *evidence // collected when the consumer has drained
}

// concurrency grows with many messages, so that they need not much more time.
func concurrency(messages int) int {
	return min(maxConcurrency, max(leastConcurrency, messages/20))
}

func (r *run) daemonConfig(target reprise.Handler) daemon.Config {
	return daemon.Config{
		Addr:   r.cfg.Addr,
		Region: region,
		Seed:   max(1, r.cfg.Seed), // 0 would be a random one
		Queues: []daemon.Queue{{Name: queueName, DeadLetter: deadName, MaxReceives: 10 * policy.MaxAttempts}},
		Consume: &daemon.Consume{
			Queue:   queueName,
			Handler: target,
			Config: reprise.Config{
				Concurrency:    concurrency(len(r.bodies)),
				Retry:          policy,
				HandlerTimeout: attemptTimeout,
				StopBudget:     stopBudget,
				Observer:       r.tally.observer(),
				Logger:         r.cfg.Logger,
			},
			Drained: func() { r.final = r.collect() },
		},
		Logger: r.cfg.Logger,
	}
}

func (r *run) run(ctx context.Context, drain <-chan struct{}) error {
	r.introduce()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		err := r.daemon.Run(ctx, stop)
		select {
		case <-stop:
		default:
			fail(err) // it ended by itself
		}
		ended <- err
	}()

	settled, err := r.deliver(ctx, drain)
	r.cfg.Out.Done()
	reportable := err == nil || errors.Is(err, ErrUnfinished)
	if settled && r.cfg.Keep {
		err = r.report(r.collect())
		reportable = false // again
		r.invite()
		select {
		case <-drain:
		case <-ctx.Done():
		}
	}
	close(stop)
	if stopErr := <-ended; err == nil {
		err = stopErr
	}
	if reportable && ctx.Err() == nil {
		err = errors.Join(r.report(r.final), err)
	}
	return err
}

// deliver sends every message and watches until they are settled.
func (r *run) deliver(ctx context.Context, drain <-chan struct{}) (settled bool, err error) {
	if err := r.send(ctx); err != nil {
		return false, err
	}
	return r.watch(ctx, drain)
}

func (r *run) introduce() {
	out := r.cfg.Out
	out.Wrap(2, fmt.Sprintf("SQS at %s, a webhook service at %s", r.daemon.URL(), r.service.URL()))
	text, err := policy.MarshalText()
	if err == nil {
		out.Wrap(2, "Retry policy: "+string(text))
	}
	out.Printf("")
}

// send fills the queue, by the AWS SDK and real HTTP.
func (r *run) send(ctx context.Context) error {
	s := sender.Sender{
		Client:   awsclient.Local(r.daemon.URL(), region),
		QueueURL: r.daemon.QueueURL(queueName),
	}
	sent, err := s.Send(ctx, messages(r.bodies))
	if err != nil {
		return err
	}
	r.progress.say(fmt.Sprintf("%d messages sent in %d requests", sent.Sent, sent.Requests))
	return nil
}

// serviceChanged tells the story of the outage.
func (r *run) serviceChanged(s state) {
	if s == down {
		r.progress.say("the service goes down")
	} else {
		r.progress.say("the service is back")
	}
}

// watch shows progress until every message is settled, the time is up, or somebody
// stops the demo.
func (r *run) watch(ctx context.Context, drain <-chan struct{}) (settled bool, err error) {
	limit := time.NewTimer(max(leastLimit, time.Duration(len(r.bodies))*perMessage))
	defer limit.Stop()
	tick := time.NewTicker(r.progress.every())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.progress.show()
		case <-r.tally.settled:
			return true, nil
		case <-limit.C:
			return false, ErrUnfinished
		case <-drain:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// collect takes the evidence, when nothing moves any more.
func (r *run) collect() *evidence {
	waiting, err := r.daemon.Messages(queueName)
	dead, deadErr := r.daemon.Messages(deadName)
	if err := errors.Join(err, deadErr); err != nil {
		r.cfg.Logger.Error("reading the queues failed", "error", err)
	}
	return &evidence{bodies: r.bodies, service: r.service.pages(), consumer: r.tally.snapshot(), waiting: waiting, dead: dead}
}

// report prints the report, and returns ErrBroken if a promise was broken.
func (r *run) report(ev *evidence) error {
	findings, letters := ev.audit()
	report := report{
		out: r.cfg.Out, evidence: *ev, findings: findings, letters: letters,
		calls: r.daemon.Consumer().Status().Calls, took: time.Since(r.progress.began),
	}
	report.print()
	for _, f := range findings {
		if len(f.broken) > 0 {
			return ErrBroken
		}
	}
	return nil
}

// invite says what can be done with a demo that is kept running.
func (r *run) invite() {
	out := r.cfg.Out
	out.Printf("")
	out.Printf("Everything is left running until Ctrl-C. Try:")
	out.Printf("  reprise send --queue %s '{\"hello\":1}'", r.daemon.QueueURL(queueName))
	out.Printf("  aws sqs receive-message --endpoint-url %s --queue-url %s --message-attribute-names All", r.daemon.URL(), r.daemon.QueueURL(deadName))
	out.Printf("  curl %s/health", r.daemon.URL())
}
