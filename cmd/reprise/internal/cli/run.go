package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/plan"
)

// defaultAdminAddr has the port after the server's.
const defaultAdminAddr = "127.0.0.1:9325"

type runFlags struct {
	aws          awsFlags
	admin        string
	allowOrigins []string
	api          adminFlags
	consume      consumeFlags
	watch        watchFlags
	log          logFlags
}

func (a *app) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run (--queue URL|NAME (--url URL | --exec COMMAND | --worker COMMAND | --lambda NAME | --to-queue NAME) | --config FILE)",
		Short: "Deliver the messages of queues that exist to an HTTP endpoint, a command, a function or a queue",
		Long: `Deliver the messages of a queue that exists, on AWS, on reprise serve or on any
other server that speaks SQS; or those of many queues, by a file: see reprise
config --help.

The endpoint is --endpoint, else that of the AWS settings (AWS_ENDPOINT_URL_SQS,
AWS_ENDPOINT_URL, endpoint_url of the profile), of the queue's URL, or AWS's own.
` + aboutSettings + `

Messages that are given up go to the queue's own dead-letter queue, the target
of its RedrivePolicy, or to --dead-letter. If --retry sets no attempts, the
queue's maxReceiveCount is the limit.

` + delivery.AboutTarget + `

GET /health, GET /metrics and the admin API are served on --admin-addr. By default only
this machine can reach it. ` + aboutAdmin + `

` + aboutWatching + `

SIGTERM and the first Ctrl-C stop gracefully, within --stop-budget: running attempts
end, messages that have not begun are given back, and on AWS an idle consumer waits
for its last receive, up to --long-poll.
With exit code 5 these AWS settings or permissions do not lead to the queue:
restarting does not help until they are changed.`,
		Example: `  reprise run --queue https://sqs.eu-west-1.amazonaws.com/123456789012/orders --url http://localhost:8080/orders
  AWS_PROFILE=prod reprise run --queue orders --exec './ship.sh' --concurrency 4 --timeout 5m
  reprise run --queue orders --endpoint http://127.0.0.1:9324 --url http://localhost:8080 --admin-addr none
  reprise run --config reprise.yaml`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = run(func([]string) error { return a.runRun(cmd, &f) })
	flags := cmd.Flags()
	flags.StringVarP(&f.consume.queue, "queue", "q", "", "`URL or name` of the queue; with --config: only this one of the file")
	f.aws.register(flags)
	flags.StringVar(&f.admin, "admin-addr", defaultAdminAddr, "`host:port` for /health, /livez, /readyz, /scale, /metrics and the admin API, or unix:PATH; port 0: any free one; none: do not serve them")
	flags.StringSliceVar(&f.allowOrigins, "allow-origin", nil, "let --admin-addr be called by the host of this `origin`, scheme://host[:port], and by the origin's web pages; repeatable (default: localhost and loopback addresses)")
	f.api.register(flags)
	f.consume.register(cmd)
	f.watch.register(cmd)
	f.log.register(flags)
	return cmd
}

func (a *app) runRun(cmd *cobra.Command, f *runFlags) error {
	if f.consume.queue == "" && f.consume.config == "" {
		return usage(errors.New("--queue is missing: pass the URL or the name of the queue, or a file with --config"))
	}
	c := &consumption{app: a, flags: &f.consume, cmd: cmd, fresh: new(app).run}
	var err error
	if c.given, err = given(cmd); err != nil {
		return err
	}
	file, err := c.load(cmd)
	if err != nil {
		return err
	}
	c.logger, c.region, c.events = f.log.logger(a), f.aws.region, &f.api.events
	if err := checkOrigins(f.allowOrigins); err != nil {
		return err
	}
	queues, err := c.read(file)
	if err != nil {
		return err
	}
	api, err := f.api.config(a)
	if err != nil {
		return err
	}
	watching, err := f.watch.options(a, c.logger)
	if err != nil {
		return err
	}
	worker := daemon.WorkerConfig{Logger: c.logger, AllowedOrigins: f.allowOrigins, Watching: watching}
	if f.admin != "none" {
		worker.AdminAddr = f.admin
	}
	var found []foundQueue
	c.locate = func(queues []*consumed, _ configfile.Config) (err error) {
		found, err = f.findAll(a, queues, c.logger)
		return err
	}
	var w *daemon.Worker
	c.consume = func(all []daemon.Consume) (err error) {
		if w == nil { // not before the queues are found: an address is taken when all else is right
			if w, err = daemon.NewWorker(worker); err != nil {
				return err
			}
			adminOfWorker(api, w, worker)
		}
		return w.Consume(all)
	}
	if err := c.apply(queues, file); err != nil {
		return err
	}
	for i, q := range queues {
		found[i].announce(a, q)
	}
	if at := w.AdminURL(); at != "" {
		fmt.Fprintf(a.stdout, "admin         %s/health, /metrics, %s\n", at, admin.Path)
		a.announceDashboard(at)
	}
	f.watch.announce(a, watching, w.ProfilesURL())
	go c.watch()
	return settled(w.Run(a.ctx, a.drain))
}

// findAll looks the queues up.
func (f *runFlags) findAll(a *app, queues []*consumed, logger *slog.Logger) ([]foundQueue, error) {
	ctx, stop := a.interruptible()
	defer stop()
	var found []foundQueue
	for _, q := range queues {
		at, err := f.find(ctx, q, logger)
		if err != nil {
			return nil, err
		}
		q.located = at.located
		found = append(found, at)
	}
	return found, nil
}

// announce prints where the queue was found, and how it is consumed.
func (q *foundQueue) announce(a *app, c *consumed) {
	fmt.Fprintf(a.stdout, "queue         %s\n", q.url)
	fmt.Fprintf(a.stdout, "SQS endpoint  %s\n", cmp.Or(q.found.Endpoint.URL, "AWS"))
	fmt.Fprintf(a.stdout, "region        %s, credentials: %s\n", q.found.Region, q.found.Credentials)
	policy := c.Policy()
	policy.MaxAttempts = plan.MaxAttempts(policy, q.facts)
	c.announce(a, cmp.Or(c.DeadLetter, q.facts.DeadLetterARN, "none: messages that are given up stay in the queue, hidden"), policy)
}

// foundQueue is a queue that reprise run consumes.
type foundQueue struct {
	located
	found awsclient.Found
	facts plan.Queue
}

// find looks up a queue, so that mistakes in the settings are reported before the first
// message is received.
func (f *runFlags) find(ctx context.Context, c *consumed, logger *slog.Logger) (q foundQueue, err error) {
	problem := func(err error, setting, name string) error {
		return c.placed(accessError(ctx, err, "--"+setting, name, q.found), setting)
	}
	if q.found, err = awsclient.Find(ctx, f.aws.endpoint, f.aws.region, c.name); err != nil {
		return q, problem(err, "queue", c.name)
	}
	q.client = q.found.Client
	if endpoint := q.found.Endpoint; strings.Contains(c.name, "://") && endpoint.URL != "" && !sameEndpoint(endpoint.URL, c.name) {
		logger.Warn("the queue's URL names another host than the endpoint that is set: the endpoint is called", "queue", c.name, "endpoint", endpoint.String())
	}
	for _, other := range []struct {
		url           *string
		setting, name string
	}{{&q.url, "queue", c.name}, {&q.deadLetter, "dead-letter", c.DeadLetter}, {&q.retryLane, "retry-lane", c.RetryLane}} {
		if other.name == "" {
			continue
		}
		if *other.url, err = resolve(ctx, q.client, other.name); err != nil {
			return q, problem(err, other.setting, other.name)
		}
	}
	if err := f.findTarget(ctx, c, &q); err != nil {
		return q, problem(err, "to-queue", c.ToQueue)
	}
	if q.deadLetter != "" && redrive.PathOf(q.deadLetter) == redrive.PathOf(q.url) {
		return q, usage(c.placed(fmt.Errorf("--dead-letter %q is the queue that is consumed: name another queue for messages that are given up", c.DeadLetter), "dead-letter"))
	}
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if api, ok := errors.AsType[smithy.APIError](err); ok && denials[api.ErrorCode()] {
		return q, nil // receiving may be permitted; the consumer reports what it could not read
	}
	if err != nil {
		return q, problem(err, "queue", c.name)
	}
	q.arn = out.Attributes[string(types.QueueAttributeNameQueueArn)]
	q.facts, _ = plan.ReadQueue(out.Attributes) // the consumer reports attributes that it does not understand
	return q, nil
}

// findTarget looks up the queue of --to-queue. A URL may lead to another region.
func (f *runFlags) findTarget(ctx context.Context, c *consumed, q *foundQueue) (err error) {
	if c.ToQueue == "" {
		return nil
	}
	q.to = q.client
	if strings.Contains(c.ToQueue, "://") {
		found, err := awsclient.Find(ctx, f.aws.endpoint, f.aws.region, c.ToQueue)
		if err != nil {
			return err
		}
		q.to = found.Client
	}
	q.toQueue, err = resolve(ctx, q.to, c.ToQueue)
	return err
}
