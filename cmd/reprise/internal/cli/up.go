package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/retry"
)

type upFlags struct {
	server  serverFlags
	consume consumeFlags
}

func (a *app) up() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up (--url URL | --exec COMMAND | --worker COMMAND | --lambda NAME | --to-queue NAME | --config FILE)",
		Short: "Run a server and deliver a queue's messages to an HTTP endpoint or a command",
		Long: `Run an SQS-compatible server, create a queue with a dead-letter queue, and
deliver every message that is sent to it; or do so for many queues, by a file: see
reprise config --help. Dead letters go to the queue NAME-dead, unless the file says
otherwise. To consume a queue that exists, on AWS or elsewhere, use reprise run.

` + delivery.AboutTarget + `

` + aboutStorage + `

` + aboutServing + `

` + aboutWatching,
		Example: `  reprise up --url http://localhost:8080/work
  reprise up --exec './ship.sh' --concurrency 4 --timeout 5m
  reprise up --queue orders --url http://localhost:8080 \
      --retry 'exponential(base=2s,factor=2,max=1h) jitter=full attempts=20 age=24h'
  reprise up --config reprise.yaml`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = run(func([]string) error { return a.runUp(cmd, &f) })
	f.server.register(cmd)
	f.consume.register(cmd)
	cmd.Flags().StringVar(&f.consume.queue, "queue", "", "`name` of the queue (default jobs); with --config: only this one of the file is consumed")
	return cmd
}

func (a *app) runUp(cmd *cobra.Command, f *upFlags) error {
	if f.consume.config == "" {
		f.consume.queue = cmp.Or(f.consume.queue, "jobs")
	}
	c := &consumption{app: a, flags: &f.consume, cmd: cmd, fresh: new(app).up}
	var err error
	if c.given, err = given(cmd); err != nil {
		return err
	}
	file, err := c.load(cmd)
	if err != nil {
		return err
	}
	cfg, err := f.server.config(a)
	if err != nil {
		return err
	}
	c.logger, c.region, c.events = cfg.Logger, cfg.Region, &f.server.admin.events
	queues, err := c.read(file)
	if err != nil {
		return err
	}
	if cfg.Serving.Faults == nil {
		cfg.Serving.Faults = file.Faults
	}
	if cfg.Queues, err = upQueues(queues, file.Queues); err != nil {
		return err
	}
	d, err := f.server.start(a, cfg)
	if err != nil {
		return err
	}
	c.consume = d.Consume
	c.locate = func(queues []*consumed, file configfile.Config) error {
		created, err := upQueues(queues, file.Queues)
		if err == nil {
			err = d.CreateQueues(created)
		}
		if err != nil {
			return err
		}
		return locateOwn(d, queues)
	}
	if err := c.apply(queues, file); err != nil {
		return errors.Join(err, d.Close())
	}
	warnOfEndpoint(d.URL(), cfg.Logger)
	a.announce(d, cfg, f.server.admin.token != "")
	f.server.watch.announce(a, cfg.Watching, d.ProfilesURL())
	for _, q := range queues {
		dead := "by the queue's RedrivePolicy"
		if name := deadLetterOf(q, cfg.Queues); name != "" {
			dead = d.QueueURL(name)
		}
		q.announce(a, dead, q.Policy().WithDefaults())
	}
	go c.watch()
	return settled(d.Run(a.ctx, a.drain))
}

// upQueues returns the queues that the server creates: those of the file, or the one that
// the flags are about. A queue that is consumed gets a dead-letter queue if it has none.
func upQueues(consumed []*consumed, ofFile []configfile.Queue) (all []daemon.Queue, err error) {
	for _, q := range ofFile {
		if err := ownQueue(q.Name); err != nil {
			return nil, usage(q.Errorf("%w", err))
		}
		all = append(all, q.Queue)
	}
	for _, c := range consumed {
		if err := ownQueue(c.name); err != nil {
			return nil, usage(fmt.Errorf("--queue %w", err))
		}
		i := slices.IndexFunc(all, func(q daemon.Queue) bool { return q.Name == c.name })
		if i < 0 {
			i, all = len(all), append(all, daemon.Queue{Name: c.name})
		}
		if q := &all[i]; q.DeadLetter == "" && q.Attributes["RedrivePolicy"] == "" {
			q.DeadLetter, q.MaxReceives = cmp.Or(c.DeadLetter, deadLetterName(c.name)), maxReceives(c.Policy().WithDefaults())
		}
	}
	return all, nil
}

// locateOwn fills in where queues of the daemon's own server are.
func locateOwn(d *daemon.Daemon, queues []*consumed) error {
	for _, q := range queues {
		at := located{client: d.Client(), url: d.QueueURL(q.name), to: d.Client(), arn: d.QueueARN(q.name)}
		for _, other := range []struct {
			url           *string
			setting, name string
		}{{&at.deadLetter, "dead-letter", q.DeadLetter}, {&at.retryLane, "retry-lane", q.RetryLane}, {&at.toQueue, "to-queue", q.ToQueue}} {
			if other.name == "" {
				continue
			}
			if len(d.MissingQueues(other.name)) > 0 {
				return usage(q.placed(fmt.Errorf("the server has no queue %q: name one of the file's queues", other.name), other.setting))
			}
			*other.url = d.QueueURL(other.name)
		}
		q.located, q.config.Retry = at, q.config.Retry.WithDefaults()
	}
	return nil
}

// deadLetterOf returns the name of the queue that dead letters of q go to, empty if only the
// attribute RedrivePolicy says so.
func deadLetterOf(q *consumed, created []daemon.Queue) string {
	if q.DeadLetter != "" {
		return q.DeadLetter
	}
	i := slices.IndexFunc(created, func(c daemon.Queue) bool { return c.Name == q.name })
	return created[i].DeadLetter
}

// warnOfEndpoint warns if the environment names another endpoint than the server's own:
// the user may have meant a queue there.
func warnOfEndpoint(own string, logger *slog.Logger) {
	set := awsclient.EndpointFromEnvironment(own, "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL")
	if !sameEndpoint(set.URL, own) {
		logger.Warn("reprise up runs its own server and ignores the endpoint that is set; to consume a queue there, use reprise run",
			"variable", set.SetBy, "endpoint", set.URL, "own", own)
	}
}

// deadLetterName returns the name of the dead-letter queue of the queue called name. It
// must be of the same kind, standard or FIFO, which SQS sees by the suffix.
func deadLetterName(name string) string {
	base, fifo := strings.CutSuffix(name, ".fifo")
	if fifo {
		return base + "-dead.fifo"
	}
	return base + "-dead"
}

// maxReceives returns the queue's maxReceiveCount for a policy. It is far above the
// policy's attempts, since stops and releases use up receives too, and only catches
// messages that kill the program.
func maxReceives(p retry.Policy) int {
	const limit, perAttempt = 1000, 10
	if p.MaxAttempts < 0 || p.MaxAttempts > limit/perAttempt {
		return limit
	}
	return p.MaxAttempts * perAttempt
}
