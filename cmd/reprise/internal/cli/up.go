package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/retry"
)

type upFlags struct {
	server   serverFlags
	queue    string
	delivery deliveryFlags
}

func (a *app) up() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up (--url URL | --exec COMMAND)",
		Short: "Run a server and deliver a queue's messages to an HTTP endpoint or a command",
		Long: `Run an SQS-compatible server, create a queue with a dead-letter queue, and
deliver every message that is sent to it. Dead letters go to the queue NAME-dead.
To consume a queue that exists, on AWS or elsewhere, use reprise run.

` + aboutDelivery + `

` + aboutStorage + `

` + aboutServing,
		Example: `  reprise up --url http://localhost:8080/work
  reprise up --exec './ship.sh' --concurrency 4 --timeout 5m
  reprise up --queue orders --url http://localhost:8080 \
      --retry 'exponential(base=2s,factor=2,max=1h) jitter=full attempts=20 age=24h'`,
		Args: cobra.NoArgs,
		RunE: run(func([]string) error { return a.runUp(&f) }),
	}
	f.server.register(cmd)
	f.delivery.register(cmd)
	cmd.Flags().StringVar(&f.queue, "queue", "jobs", "`name` of the queue")
	return cmd
}

func (a *app) runUp(f *upFlags) error {
	cfg, err := f.server.config(a)
	if err != nil {
		return err
	}
	if strings.Contains(f.queue, "://") || strings.HasPrefix(f.queue, "arn:") {
		return usage(fmt.Errorf("--queue %s is a queue that exists, and up creates its own: use reprise run to consume it, or pass a name", f.queue))
	}
	consumer, err := f.delivery.config(cfg.Logger)
	if err != nil {
		return err
	}
	consumer.Retry = consumer.Retry.WithDefaults()
	handler, err := f.delivery.target(a, f.queue, cfg.Logger)
	if err != nil {
		return err
	}
	dead := deadLetterName(f.queue)
	cfg.Queues = []daemon.Queue{{Name: f.queue, DeadLetter: dead, MaxReceives: maxReceives(consumer.Retry)}}
	cfg.Consume = &daemon.Consume{Queue: f.queue, Handler: handler, Config: consumer}
	d, err := f.server.start(cfg)
	if err != nil {
		return err
	}
	warnOfEndpoint(d.URL(), cfg.Logger)
	a.announce(d, cfg)
	f.delivery.announce(a, d.QueueURL(dead), consumer.Retry)
	return settled(d.Run(a.ctx, a.drain))
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
