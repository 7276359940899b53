// Package daemon runs the SQS server and, if wanted, a consumer of one of its queues, which
// start and stop together.
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

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Account is the account of every queue.
const Account = "000000000000"

// Config configures a Daemon.
type Config struct {
	// Addr is the host:port to listen on. Port 0 takes any free one.
	Addr string
	// AllowRemote permits an Addr that other machines can reach.
	AllowRemote bool
	// Region is where Queues are created.
	Region string
	// Seed makes message ids repeatable. Default: random ones.
	Seed uint64
	// Journal configures the data directory; its Logger is replaced by this one's.
	// Default: messages are kept in memory, until the Daemon ends.
	Journal journal.Options
	// Queues exist from the start. Those that the journal has already get the
	// attributes given here, and keep their others.
	Queues []Queue
	// Serving is how the server treats its clients.
	Serving Serving
	// Watching is how the daemon is watched besides.
	Watching Watching
	// Logger gets what an operator must know. It is required.
	Logger *slog.Logger
}

// Daemon is a server and the consumers of its queues, if there are any. It is made by [New]
// and runs once.
type Daemon struct {
	consumers
	parts

	cfg      Config
	listener net.Listener
	sqs      *sqsserver.Server
	journal  *journal.Journal // the server's; nil if it keeps messages in memory
	control  net.Listener     // the socket in the journal's directory; nil if there is none
	http     *http.Server
	metrics  *metrics
	profiles *profiles // nil: none are served
	steps    stopStack
}

// New checks cfg, listens, opens the journal and creates the queues, so that mistakes in
// the configuration are found here. It serves nothing until [Daemon.Run]. A Daemon that is
// not run must be closed.
func New(cfg Config) (_ *Daemon, err error) {
	d := &Daemon{cfg: cfg}
	d.watching = cfg.Watching
	d.metrics = newMetrics(func() *sqsserver.Server { return d.sqs })
	d.metrics.registry.MustRegister(collect(d.collectCosts))
	d.listener, err = listen("--addr", cfg.Addr, cfg.AllowRemote, len(cfg.Serving.Credentials) > 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if cfg.Watching.PprofAddr != "" {
		if d.profiles, err = newProfiles(cfg.Watching.PprofAddr, cfg.Logger); err != nil {
			return nil, err
		}
	}
	if err := d.openServer(); err != nil {
		return nil, err
	}
	d.http = newHTTPServer(d.before(d.routes()), cfg.Logger)
	d.http.ConnState = d.metrics.connection
	if err := d.createQueues(cfg.Queues); err != nil {
		return nil, err
	}
	if err := d.sqs.ReplaceFaults(cfg.Serving.Faults); err != nil {
		return nil, err
	}
	for _, queue := range d.sqs.MissingQueues(slices.Sorted(maps.Keys(cfg.Serving.Faults))...) {
		cfg.Logger.Warn("faults are set for a queue that does not exist; they take effect once it is created", "queue", queue)
	}
	d.measured, d.answerPolls = !cfg.Serving.NoMetrics || cfg.Watching.Exporter != nil, d.sqs.EndPolls
	return d, nil
}

// Close releases the address and the journal of a Daemon that was not run.
func (d *Daemon) Close() error {
	err := errors.Join(d.listener.Close(), d.profiles.close())
	if d.control != nil {
		err = errors.Join(err, d.control.Close())
	}
	if d.sqs != nil {
		err = errors.Join(err, d.closeServer())
	}
	return err
}

// URL returns the server's endpoint, as programs on this machine can reach it.
func (d *Daemon) URL() string {
	if d.cfg.Serving.Certificate != nil {
		return localURL("https", d.listener)
	}
	return localURL("http", d.listener)
}

// QueueURL returns the URL of the queue called name.
func (d *Daemon) QueueURL(name string) string { return d.URL() + "/" + Account + "/" + name }

// QueueARN returns the ARN of the queue called name.
func (d *Daemon) QueueARN(name string) string {
	return "arn:aws:sqs:" + d.cfg.Region + ":" + Account + ":" + name
}

// ProfilesURL returns where profiles are served; empty: nowhere.
func (d *Daemon) ProfilesURL() string { return d.profiles.url() }

// MissingQueues returns those of the names that no queue of the server has.
func (d *Daemon) MissingQueues(names ...string) []string { return d.sqs.MissingQueues(names...) }

// Messages returns the messages of the queue called name, without receiving them.
func (d *Daemon) Messages(name string) ([]sqsserver.MessageInfo, error) {
	return d.sqs.Messages(name, sqsserver.Page{})
}

// Consume makes these the queues of the server that are consumed, see [Worker.Consume]. Their
// Client is d.Client, their URLs are those of d.QueueURL.
func (d *Daemon) Consume(queues []Consume) error { return d.replace(queues) }

const (
	// httpStopBudget is how long requests under way may take to end. Long polls are
	// answered at once, but net/http waits up to 5 s for the first request of a
	// connection that was just opened.
	httpStopBudget = 8 * time.Second

	endPollsEvery = 100 * time.Millisecond
)

// Run serves until drain is closed, then stops gracefully: the consumer drains within its
// stop budget, and requests under way end. The end of ctx stops everything at once:
// handlers are cancelled, and Run returns the cause without waiting. Run returns nil after
// a clean stop, [reprise.ErrDrainTimeout] if the consumer's budget was not enough, and a
// [*StorageError] at once when the journal fails.
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
	d.profiles.start(&d.steps, fail)
	d.startHTTP(fail)
	d.parts.start(&d.steps)
	d.startExporter(d.metrics.registry, &d.steps)
	d.consumers.start(ctx, fail)
	d.steps.push("the consumers", d.consumers.stop)
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

// startHTTP starts the HTTP server, and pushes the step that stops it.
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
			// These are mostly clients that have sent half a request. They do not learn
			// the outcome, as with any connection that breaks.
			d.cfg.Logger.Warn("cutting off requests that did not end in time", "after", httpStopBudget)
			err = d.http.Close()
		} else if err != nil {
			err = errors.Join(err, d.http.Close())
		}
		<-served
		return err
	})
}

// endPolls answers long polls until the HTTP server has stopped, whose error it returns. It
// does so repeatedly, since a request that was on its way can begin one more. (Closing the
// SQS server would answer them too, but refuse that request, which its client would take
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
