package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/telemetry"
	"github.com/reprise-sqs/reprise/retry"
)

// consumeFlags are the flags of every command that consumes queues: the settings of one
// queue, or a file with those of many.
type consumeFlags struct {
	config   string
	queue    string
	settings delivery.Settings
}

func (f *consumeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", "", "`file` with queues and flags, in YAML; the command line and the environment win (see docs/config.md)")
	f.settings.Register(cmd.Flags())
}

// consumed is a queue to consume, with its settings from all sources.
type consumed struct {
	*delivery.Settings
	name   string            // a name or a URL
	queue  *configfile.Queue // nil: it is not from a file
	values map[string]configfile.Setting

	content string // of its files, before config and handler were made of them
	config  reprise.Config
	target  reprise.Handler
	handler reprise.Handler // the target, or what protects it from duplicates
	located located
}

// explain adds to an error the place in the file of the setting that it is about.
func (c *consumed) explain(err error) error {
	bad, ok := errors.AsType[*delivery.Error](err)
	if !ok {
		return c.at(err)
	}
	if s, found := c.values[bad.Name]; found {
		return usage(s.Errorf("%w", bad.Problem))
	}
	return usage(c.at(bad))
}

// placed adds to err the place in the file of the setting that it is about or, for the queue
// itself, of the queue.
func (c *consumed) placed(err error, setting string) error {
	if err == nil {
		return nil
	}
	s, found := c.values[setting]
	if !found {
		return c.at(err)
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		return &failure{failed.code, s.Errorf(": %w", failed.err)}
	}
	return s.Errorf(": %w", err)
}

// at adds to an error the place of the queue in the file.
func (c *consumed) at(err error) error {
	if c.queue == nil {
		return err
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		return &failure{failed.code, c.queue.Errorf("%w", failed.err)}
	}
	return c.queue.Errorf("%w", err)
}

// queues returns the queues to consume: those of the file, or the one that the flags are
// about. given has the flags of the command line and of the environment, which win.
func (f *consumeFlags) queues(given []*pflag.Flag, file configfile.Config) ([]*consumed, error) {
	if f.config == "" {
		c := &consumed{name: f.queue}
		if err := c.collect(nil, nil, given); err != nil {
			return nil, err
		}
		return []*consumed{c}, c.check(file.Pools)
	}
	var found []*consumed
	for i, q := range file.Queues {
		if !q.Consumed || f.queue != "" && f.queue != q.Name {
			continue
		}
		c := &consumed{name: q.Name, queue: &file.Queues[i]}
		if err := c.collect(file.Settings, q.Consume, given); err != nil {
			return nil, usage(err)
		}
		if err := c.check(file.Pools); err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	switch {
	case len(found) > 0:
		return found, nil
	case f.queue != "":
		return nil, usage(fmt.Errorf("--config %s has no queue %q with consume: correct --queue, or leave it out for all queues of the file", f.config, f.queue))
	}
	return nil, usage(fmt.Errorf("--config %s has no queue to consume: give a queue of its list the key consume, with a target", f.config))
}

// collect fills in the settings: those of all queues, then those of this one, then those
// given.
func (c *consumed) collect(all, own []configfile.Setting, given []*pflag.Flag) error {
	c.Settings, c.values = new(delivery.Settings), make(map[string]configfile.Setting)
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	c.Register(flags)
	c.RegisterShare(flags)
	if err := c.apply(flags, all); err != nil {
		return err
	}
	c.ShareAll()
	if err := c.apply(flags, own); err != nil {
		return err
	}
	c.override(flags, given)
	c.Complete()
	return nil
}

// apply applies settings of the file. Those that are not about a queue are left out.
func (c *consumed) apply(flags *pflag.FlagSet, settings []configfile.Setting) error {
	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
	}
	c.Override(names)
	for _, s := range settings {
		if flags.Lookup(s.Name) == nil {
			continue
		}
		if err := s.Apply(flags); err != nil {
			return err
		}
		c.values[s.Name] = s
	}
	return nil
}

// override applies the flags that were given.
func (c *consumed) override(flags *pflag.FlagSet, given []*pflag.Flag) {
	var names []string
	for _, flag := range given {
		names = append(names, flag.Name)
		delete(c.values, flag.Name)
	}
	c.Override(names)
	for _, from := range given {
		to := flags.Lookup(from.Name)
		if to == nil {
			continue
		}
		if list, ok := from.Value.(pflag.SliceValue); ok {
			_ = to.Value.(pflag.SliceValue).Replace(list.GetSlice()) // the flag has taken them before
		} else {
			_ = to.Value.Set(from.Value.String())
		}
		to.Changed = true
	}
}

// check reports the problems of the settings that can be found without a call.
func (c *consumed) check(pools []configfile.Pool) error {
	name, err := queueName("--queue", c.name)
	if err != nil {
		return usage(c.at(err))
	}
	if c.DeadLetter != "" {
		if _, err := queueName("--dead-letter", c.DeadLetter); err != nil {
			return usage(c.at(err))
		}
	}
	if c.ToQueue != "" {
		if _, err := queueName("--to-queue", c.ToQueue); err != nil {
			return usage(c.at(err))
		}
	}
	if err := c.Check(name); err != nil {
		return c.explain(err)
	}
	if c.Pool != "" && !slices.ContainsFunc(pools, func(p configfile.Pool) bool { return p.Name == c.Pool }) {
		return usage(c.values["pool"].Errorf(" is %q, which is not one of pools: add it there, with its concurrency", c.Pool))
	}
	return nil
}

// located is where a queue is, and how it is reached.
type located struct {
	client                     *sqs.Client
	url, deadLetter, retryLane string // URLs
	arn                        string // the queue's

	to      *sqs.Client // of --to-queue
	toQueue string      // its URL
}

// prepare makes the configuration and the target, before anything is called. A target that is
// reached by a client of AWS is left to connect.
func (c *consumed) prepare(a *app, logger *slog.Logger) (err error) {
	c.content = c.Content()
	if c.config, err = c.Config(&a.secrets, logger); err != nil {
		return c.explain(err)
	}
	if c.Remote() {
		return nil
	}
	return c.makeTarget(a, logger, delivery.Surroundings{})
}

// connect makes the target that prepare has left. The queue has been located.
func (c *consumed) connect(a *app, region string, logger *slog.Logger) error {
	switch {
	case c.Function() != "":
		if name, err := arn.Parse(c.Function()); err == nil {
			region = name.Region
		}
		endpoint := awsclient.EndpointFromEnvironment("", "AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL")
		client, err := awsclient.NewLambda(a.ctx, endpoint, region)
		if err != nil {
			return &failure{exitAccess, c.placed(err, "lambda")}
		}
		return c.makeTarget(a, logger, delivery.Surroundings{Invoker: client, QueueARN: c.located.arn})
	case c.ToQueue != "":
		sender, err := reprise.NewSender(c.located.to, c.located.toQueue, reprise.SenderConfig{Logger: logger})
		if err != nil {
			return c.placed(err, "to-queue")
		}
		return c.makeTarget(a, logger, delivery.Surroundings{Sender: sender})
	}
	return nil
}

func (c *consumed) makeTarget(a *app, logger *slog.Logger, around delivery.Surroundings) (err error) {
	if around.Queue, err = queueName("--queue", c.name); err != nil {
		return usage(c.at(err))
	}
	around.Version, around.Secrets, around.Logger, around.Trace = version(), &a.secrets, logger, telemetry.Inject
	around.Stdout, around.Stderr = a.stdout.commands(), a.commandErrors()
	if c.target, err = c.Target(around); err != nil {
		return c.explain(err)
	}
	if c.handler, err = c.Once(c.target, around.Queue, a.stores(), logger); err != nil {
		return c.explain(err)
	}
	if !c.Payloads() {
		return nil
	}
	endpoint := awsclient.EndpointFromEnvironment("", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	client, err := awsclient.NewS3(a.ctx, endpoint)
	if err != nil {
		return &failure{exitAccess, c.placed(err, "payloads")}
	}
	c.handler, c.config.AfterDelete, err = c.Fetched(c.handler, client, logger)
	return c.placed(err, "payloads")
}

// stores returns where work that is done is remembered. Tables are found by the AWS settings.
func (a *app) stores() *delivery.Stores {
	a.once.DynamoDB = func() (dynamostore.Client, error) {
		endpoint := awsclient.EndpointFromEnvironment("", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
		client, err := awsclient.NewDynamoDB(a.ctx, endpoint)
		if err != nil {
			return nil, &failure{exitAccess, err}
		}
		return client, nil
	}
	return &a.once
}

// checkToQueue returns an error if messages would be moved to the queue that they come from.
func (c *consumed) checkToQueue() error {
	at := c.located
	if at.toQueue == "" || redrive.PathOf(at.toQueue) != redrive.PathOf(at.url) || !sameQueues(at.to.Options(), at.client.Options()) {
		return nil
	}
	return usage(c.placed(fmt.Errorf("%q is the queue that is consumed: messages would go round for ever; name another", c.ToQueue), "to-queue"))
}

// sameQueues reports whether two clients have the same queues, by account and name. Each region of AWS has others; a
// server with an address of its own may have one set for all regions.
func sameQueues(one, other sqs.Options) bool {
	return one.Region == other.Region || one.BaseEndpoint != nil && aws.ToString(one.BaseEndpoint) == aws.ToString(other.BaseEndpoint)
}

// consumer returns what a daemon needs to consume the queue, which has been prepared and
// located. Without a pool it is nil.
func (c *consumed) consumer(pool *reprise.Pool) daemon.Consume {
	cfg, at := c.config, c.located
	cfg.DeadLetterURL, cfg.RetryLane.URL = at.deadLetter, at.retryLane
	consume := daemon.Consume{
		Client: at.client, QueueURL: at.url, Handler: c.handler, Config: cfg, Target: c.PublicPlace(),
		Pool: pool, Share: c.Share, Settings: c.Fingerprint(cfg, c.content),
	}
	if closer, ok := c.target.(interface{ Close() }); ok {
		consume.Stopped = closer.Close
	}
	return consume
}

// announce prints where messages go, and what happens to those that fail.
func (c *consumed) announce(a *app, deadLetters string, policy retry.Policy) {
	fmt.Fprintf(a.stdout, "dead letters  %s\n", deadLetters)
	fmt.Fprintf(a.stdout, "deliver to    %s\n", c.PublicPlace())
	fmt.Fprintf(a.stdout, "retry         %s\n", delivery.PolicyText(policy))
}

// settled marks the error of a daemon or worker that could not settle all messages in
// time.
func settled(err error) error {
	if errors.Is(err, reprise.ErrDrainTimeout) {
		return unsettled(err)
	}
	return err
}
