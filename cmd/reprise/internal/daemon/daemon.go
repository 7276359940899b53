// Package daemon runs the SQS server, and a consumer of one of its queues if one
// is wanted, as one thing with one life.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Account is the account of every queue.
const Account = "000000000000"

// Config says what a Daemon runs.
type Config struct {
	// Addr is the host:port to listen on. Port 0 takes any free one.
	Addr string
	// AllowRemote permits an Addr that other machines can reach.
	AllowRemote bool
	// Region is where Queues are created.
	Region string
	// Seed makes message ids repeatable. Default: random ones.
	Seed uint64
	// Journal says where what is acknowledged is kept; its Logger is this one's.
	// Default: in memory, until the Daemon ends.
	Journal journal.Options
	// Queues exist from the start. Those that the journal has get the attributes
	// given here, and keep the others.
	Queues []Queue
	// Consume is the consumer. Default: none.
	Consume *Consume
	// Serving is how the server treats those who call it.
	Serving Serving
	// Logger gets what an operator must know.
	Logger *slog.Logger
}

// Consume is a consumer to run beside the server.
type Consume struct {
	// Queue is the name of one of Config.Queues.
	Queue   string
	Handler reprise.Handler
	Config  reprise.Config
	// Drained is called when the consumer has drained, while the server still
	// answers. Default: nothing.
	Drained func()
}

// Daemon is a server and, if one is configured, its consumer. It is made by [New]
// and runs once.
type Daemon struct {
	cfg      Config
	listener net.Listener
	sqs      *sqsserver.Server
	journal  *journal.Journal // the server's; nil: none
	control  net.Listener     // of the journal's directory; nil: none
	http     *http.Server
	metrics  *metrics
	consumer *consumer // nil: none
	lambda   Lambda    // beside the server; nil: none
	steps    stopStack
}

// New checks cfg, takes the address, opens the journal and creates the queues, so
// that whatever can go wrong does so here. It serves nothing until [Daemon.Run]. A
// Daemon that is not run has to be closed.
func New(cfg Config) (_ *Daemon, err error) {
	d := &Daemon{cfg: cfg}
	d.metrics = newMetrics(func() *sqsserver.Server { return d.sqs })
	d.listener, err = listen("--addr", cfg.Addr, cfg.AllowRemote, len(cfg.Serving.Credentials) > 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err := d.openServer(); err != nil {
		return nil, err
	}
	d.http = newHTTPServer(d.routes(), cfg.Logger)
	d.http.ConnState = d.metrics.connection
	if err := d.createQueues(cfg.Queues); err != nil {
		return nil, err
	}
	if err := d.sqs.ReplaceFaults(cfg.Serving.Faults); err != nil {
		return nil, err
	}
	for _, queue := range d.sqs.MissingQueues(slices.Sorted(maps.Keys(cfg.Serving.Faults))...) {
		cfg.Logger.Warn("faults are set for a queue that does not exist; they strike once it is created", "queue", queue)
	}
	if c := cfg.Consume; c != nil {
		d.consumer, err = newConsumer(d.client(), d.QueueURL(c.Queue), c.Handler, c.Config, !cfg.Serving.NoMetrics)
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Close gives up the address and the journal of a Daemon that was not run.
func (d *Daemon) Close() error {
	err := d.listener.Close()
	if d.control != nil {
		err = errors.Join(err, d.control.Close())
	}
	if d.sqs != nil {
		err = errors.Join(err, d.closeServer())
	}
	return err
}

// URL is the server's endpoint, as programs on this machine can reach it.
func (d *Daemon) URL() string {
	if d.cfg.Serving.Certificate != nil {
		return localURL("https", d.listener)
	}
	return localURL("http", d.listener)
}

// QueueURL is the URL of the queue called name.
func (d *Daemon) QueueURL(name string) string { return d.URL() + "/" + Account + "/" + name }

// Messages returns what is in the queue called name, without receiving it.
func (d *Daemon) Messages(name string) ([]sqsserver.MessageInfo, error) {
	return d.sqs.Messages(name, sqsserver.Page{})
}

// Consumer is the consumer; nil if none is configured.
func (d *Daemon) Consumer() *reprise.Consumer {
	if d.consumer == nil {
		return nil
	}
	return d.consumer.Consumer
}

const (
	// httpStopBudget is how long requests under way may take to end. Long polls are
	// answered at once; but net/http waits 5 s for the first request of a connection
	// that was just opened.
	httpStopBudget = 8 * time.Second

	endPollsEvery = 100 * time.Millisecond
)

// Run works until drain is closed, then stops gently: the consumer drains within
// its stop budget, requests under way end. The end of ctx stops at once: handlers
// are cancelled and nothing is waited for; Run then returns the cause. Run returns
// nil after a clean stop, [reprise.ErrDrainTimeout] if the consumer's budget was
// not enough, and a [*StorageError] at once when the journal fails.
func (d *Daemon) Run(ctx context.Context, drain <-chan struct{}) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d.steps.push("the SQS server", func(context.Context) error { return d.closeServer() })
	if d.durable() {
		go d.watchStorage(ctx, fail)
	}
	if d.control != nil {
		d.startControl()
	}
	d.startHTTP(fail)
	if d.consumer != nil {
		// A draining consumer lets its long poll return by itself, up to 20 s later.
		d.consumer.start(ctx, fail, &d.steps, d.sqs.EndPolls, d.cfg.Consume.Drained)
	}
	if d.lambda != nil {
		d.lambda.Start()
		d.steps.push("the functions", d.lambda.Stop)
	}
	select {
	case <-drain:
	case <-ctx.Done():
	}
	err := d.steps.unwind(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// startHTTP serves, and pushes the steps that end serving.
func (d *Daemon) startHTTP(fail context.CancelCauseFunc) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := d.serve(); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serving on %v: %w", d.listener.Addr(), err))
		}
	}()
	d.steps.push("the HTTP server", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, httpStopBudget)
		defer cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- d.http.Shutdown(ctx) }()
		err := d.endPolls(stopped)
		if errors.Is(err, context.DeadlineExceeded) {
			// Mostly clients that send half a request. They learn no outcome, as of any
			// connection that breaks.
			d.cfg.Logger.Warn("requests that did not end are cut off", "after", httpStopBudget)
			err = d.http.Close()
		} else if err != nil {
			err = errors.Join(err, d.http.Close())
		}
		<-served
		return err
	})
}

// endPolls answers long polls until stopped says how stopping ended. Again and
// again, since a request that was on its way becomes one more. (Closing the SQS
// server would answer them too, but refuse that request: its client would take it
// for an outage.)
func (d *Daemon) endPolls(stopped <-chan error) error {
	for {
		d.sqs.EndPolls()
		select {
		case err := <-stopped:
			return err
		case <-time.After(endPollsEvery):
		}
	}
}
