// Package demo shows the consumer at work: hundreds of webhooks, a queue, a service that fails in
// many ways, and a consumer that loses nothing. The parts talk over real HTTP, and at the end
// their records are compared.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	attemptTimeout = 2 * time.Second

	leastConcurrency = 16
	maxConcurrency   = 256

	leastThreshold = 5
	mostThreshold  = 20 // the default of reprise.Outage

	// leastLimit is when the demo gives up waiting for messages to be settled, or perMessage for
	// each message if that is longer.
	leastLimit = 75 * time.Second
	perMessage = 20 * time.Millisecond

	// stopBudget keeps an interrupted demo short.
	stopBudget = 6 * time.Second
)

// policy has enough attempts for the outage, with short waits for those who watch.
var policy = retry.Policy{
	Backoff:     retry.Exponential{Base: 500 * time.Millisecond, Factor: 2, Max: 3 * time.Second},
	Jitter:      retry.Full,
	MaxAttempts: 9,
	MaxAge:      5 * time.Minute,
}

// Config are the settings of the demo.
type Config struct {
	// Messages is the number of messages to send, from 1 to 100,000.
	Messages int
	// Seed makes the order of the messages, the service's failures and the jitter repeatable.
	Seed uint64
	// Keep leaves everything running after the report, until drain.
	Keep bool
	// Out gets the progress and the report.
	Out *terminal.Terminal
	// Logger gets unexpected problems.
	Logger *slog.Logger
}

// ErrBroken is returned by [Run] if a promise was broken; the report says which.
var ErrBroken = errors.New("a promise was broken: see the lines marked BROKEN")

// ErrUnfinished is returned by [Run] if messages were still waiting when the time
// was up.
var ErrUnfinished = errors.New("the time was up before every message was settled: is this machine very busy?")

// Run shows the demo. It ends by itself, or gracefully when drain is closed, or at once when ctx
// ends. The error is nil only if every promise was kept.
func Run(ctx context.Context, drain <-chan struct{}, cfg Config) (err error) {
	bodies := shuffled(cfg.Messages, cfg.Seed)
	r := &run{cfg: cfg, bodies: bodies, tally: newTally(len(bodies))}
	r.progress = progress{out: cfg.Out, began: time.Now(), total: len(bodies), tally: r.tally}
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
	r.queues, err = startQueues(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.queues.Close()) }()
	r.consumer, err = reprise.New(r.queues.client, r.queues.URL(queueName), target, r.consumerConfig())
	if err != nil {
		return err
	}
	r.progress.service, r.progress.status = r.service, r.consumer.Status
	return r.run(ctx, drain)
}

// run is one run of the demo.
type run struct {
	cfg      Config
	bodies   []string
	tally    *tally
	service  *service
	queues   *queues
	consumer *reprise.Consumer
	progress progress
}

// concurrency grows with the number of messages, so that many take little longer.
func concurrency(messages int) int {
	return min(maxConcurrency, max(leastConcurrency, messages/20))
}

// threshold is how many different messages open the breaker: as by default, unless there are too
// few messages for that in the outage.
func threshold(messages int) int {
	return min(mostThreshold, max(leastThreshold, messages/16))
}

func (r *run) consumerConfig() reprise.Config {
	return reprise.Config{
		Concurrency:    concurrency(len(r.bodies)),
		Retry:          policy,
		Outage:         reprise.Outage{Threshold: threshold(len(r.bodies))},
		HandlerTimeout: attemptTimeout,
		StopBudget:     stopBudget,
		Observer:       r.observer(),
		Logger:         r.cfg.Logger,
	}
}

// observer fills the tally, and prints changes of the breaker.
func (r *run) observer() reprise.Observer {
	o := r.tally.observer()
	o.Outage = func(_ context.Context, e reprise.OutageEvent) {
		r.tally.breaker(e)
		r.breakerChanged(e)
	}
	return o
}

func (r *run) run(ctx context.Context, drain <-chan struct{}) error {
	r.introduce()
	consuming, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watching, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	ended := make(chan error, 1)
	go func() {
		err := r.consumer.Run(consuming)
		if consuming.Err() == nil {
			fail(fmt.Errorf("the consumer ended by itself: %w", err))
		}
		ended <- err
	}()

	settled, err := r.deliver(watching, drain)
	r.cfg.Out.Done()
	reportable := err == nil || errors.Is(err, ErrUnfinished)
	if settled && r.cfg.Keep {
		err = r.report()
		reportable = false // reported already
		r.printCommands()
		select {
		case <-drain:
		case <-watching.Done():
		}
	}
	stop()
	if stopErr := r.drained(ctx, ended); err == nil {
		err = stopErr
	}
	if reportable && ctx.Err() == nil {
		err = errors.Join(r.report(), err)
	}
	return err
}

// drained waits for the consumer, which has been told to stop, to drain.
func (r *run) drained(ctx context.Context, ended <-chan error) error {
	for {
		r.queues.endPolls() // otherwise the consumer waits up to 20 s for them
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(endPollsEvery):
		}
	}
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
	out.Wrap(2, fmt.Sprintf("SQS at %s, a webhook service at %s", r.queues.endpoint(), r.service.URL()))
	text, err := policy.MarshalText()
	if err == nil {
		out.Wrap(2, "Retry policy: "+string(text))
	}
	out.Printf("")
}

// send sends the messages, with the AWS SDK over real HTTP.
func (r *run) send(ctx context.Context) error {
	s, err := reprise.NewSender(r.queues.client, r.queues.URL(queueName), reprise.SenderConfig{
		Requests: 1, // keeps the order, which the seed sets
		Tries:    6,
		Logger:   r.cfg.Logger,
	})
	if err != nil {
		return err
	}
	_, err = s.Send(ctx, messages(r.bodies)...)
	if _, closeErr := s.Close(ctx); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	status := s.Status()
	r.progress.say(fmt.Sprintf("%s sent in %s", plural.Of(status.Sent, "message"), plural.Of(status.Requests, "request")))
	return nil
}

// serviceChanged prints the beginning and the end of the outage.
func (r *run) serviceChanged(s state) {
	r.tally.service(s)
	if s == down {
		r.progress.say("the service goes down")
	} else {
		r.progress.say("the service is back")
	}
}

// breakerChanged prints changes of the consumer's breaker.
func (r *run) breakerChanged(e reprise.OutageEvent) {
	next := max(0, time.Until(e.NextProbe)).Seconds()
	switch {
	case e.State == reprise.BreakerOpen && e.Previous == reprise.BreakerClosed:
		r.progress.say(fmt.Sprintf("the breaker opens: messages are held, a canary in %.1f s", next))
	case e.State == reprise.BreakerOpen && e.Previous == reprise.BreakerHalfOpen:
		r.progress.say(fmt.Sprintf("a canary fails: %d held, the next in %.1f s", e.Held, next))
	case e.State == reprise.BreakerOpen:
		r.progress.say(fmt.Sprintf("the breaker opens again: %d held, a canary in %.1f s", e.Held, next))
	case e.State == reprise.BreakerRamping && e.Previous == reprise.BreakerClosed:
		r.progress.say("the service is overloaded: fewer messages are run at once")
	case e.State == reprise.BreakerRamping:
		r.progress.say("a canary succeeds: work begins again, slowly at first")
	case e.State == reprise.BreakerClosed:
		r.progress.say("the breaker closes: everything runs as before")
	}
}

// watch shows progress until every message is settled, the time is up, or the user stops the demo.
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

// collect collects the evidence when everything has ended.
func (r *run) collect() evidence {
	waiting, err := r.queues.messages(queueName)
	dead, deadErr := r.queues.messages(deadName)
	if err := errors.Join(err, deadErr); err != nil {
		r.cfg.Logger.Error("reading the queues failed", "error", err)
	}
	return evidence{
		bodies: r.bodies, threshold: threshold(len(r.bodies)), concurrency: concurrency(len(r.bodies)),
		service: r.service.snapshot(), consumer: r.tally.snapshot(), waiting: waiting, dead: dead,
	}
}

// report prints the report, and returns ErrBroken if a promise was broken.
func (r *run) report() error {
	ev := r.collect()
	findings, letters := ev.audit()
	report := report{
		out: r.cfg.Out, evidence: ev, findings: findings, letters: letters,
		calls: r.consumer.Status().Calls, took: time.Since(r.progress.began),
	}
	report.print()
	for _, f := range findings {
		if len(f.broken) > 0 {
			return ErrBroken
		}
	}
	return nil
}

// printCommands prints commands to try with a demo that is kept running.
func (r *run) printCommands() {
	out := r.cfg.Out
	out.Printf("")
	out.Printf("Everything is left running until Ctrl-C. Try:")
	out.Printf("  reprise send %s '{\"hello\":1}'", r.queues.URL(queueName))
	out.Printf("  aws sqs receive-message --endpoint-url %s --region us-east-1 --no-sign-request --queue-url %s --message-attribute-names All", r.queues.endpoint(), r.queues.URL(deadName))
}
