package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// defaultAdminAddr has the port after the server's.
const defaultAdminAddr = "127.0.0.1:9325"

type runFlags struct {
	queue        string
	deadLetter   string
	aws          awsFlags
	admin        string
	allowOrigins []string
	longPoll     time.Duration
	delivery     deliveryFlags
	log          logFlags
}

func (a *app) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run --queue URL|NAME (--url URL | --exec COMMAND)",
		Short: "Deliver the messages of a queue that exists to an HTTP endpoint or a command",
		Long: `Deliver the messages of a queue that exists, on AWS, on reprise serve or on any
other server that speaks SQS.

The endpoint is --endpoint, else that of the AWS settings (AWS_ENDPOINT_URL_SQS,
AWS_ENDPOINT_URL, endpoint_url of the profile), of the queue's URL, or AWS's own.
` + aboutSettings + `

Messages that are given up go to the queue's own dead-letter queue, the target
of its RedrivePolicy, or to --dead-letter. If --retry sets no attempts, the
queue's maxReceiveCount is the limit.

` + aboutDelivery + `

GET /health and GET /metrics are served on --admin-addr. By default only this
machine can reach it.

SIGTERM and the first Ctrl-C stop gracefully, within --stop-budget: running attempts
end, messages that have not begun are given back, and on AWS an idle consumer waits
for its last receive, up to --long-poll.
With exit code 5 these AWS settings or permissions do not lead to the queue:
restarting does not help until they are changed.`,
		Example: `  reprise run --queue https://sqs.eu-west-1.amazonaws.com/123456789012/orders --url http://localhost:8080/orders
  AWS_PROFILE=prod reprise run --queue orders --exec './ship.sh' --concurrency 4 --timeout 5m
  reprise run --queue orders --endpoint http://127.0.0.1:9324 --url http://localhost:8080 --admin-addr none`,
		Args: cobra.NoArgs,
		RunE: run(func([]string) error { return a.runRun(&f) }),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.queue, "queue", "q", "", "`URL or name` of the queue (required)")
	flags.StringVar(&f.deadLetter, "dead-letter", "", "`URL or name` of the queue for messages that are given up (default the target of the queue's RedrivePolicy)")
	f.aws.register(flags)
	flags.StringVar(&f.admin, "admin-addr", defaultAdminAddr, "`host:port` for /health and /metrics; port 0: any free one; none: do not serve them")
	flags.StringSliceVar(&f.allowOrigins, "allow-origin", nil, "let --admin-addr be called by the host of this `origin`, scheme://host[:port], and by the origin's web pages; repeatable (default: localhost and loopback addresses)")
	flags.DurationVar(&f.longPoll, "long-poll", 20*time.Second, "how long a receive waits for a message, in whole seconds up to 20s; on AWS an idle consumer takes as long to stop")
	f.delivery.register(cmd)
	f.log.register(flags)
	if err := cmd.MarkFlagRequired("queue"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (a *app) runRun(f *runFlags) error {
	logger, err := f.log.logger(a)
	if err != nil {
		return err
	}
	cfg, err := f.delivery.config(logger)
	if err != nil {
		return err
	}
	if cfg.LongPoll = f.longPoll; f.longPoll < time.Second || f.longPoll > 20*time.Second || f.longPoll%time.Second != 0 {
		return usage(fmt.Errorf("--long-poll is %v: pass whole seconds from 1s to 20s", f.longPoll))
	}
	if err := checkOrigins(f.allowOrigins); err != nil {
		return err
	}
	name, err := queueName("--queue", f.queue)
	if err != nil {
		return usage(err)
	}
	if f.deadLetter != "" {
		if _, err := queueName("--dead-letter", f.deadLetter); err != nil {
			return usage(err)
		}
	}
	handler, err := f.delivery.target(a, name, logger)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	queue, err := f.find(ctx, logger)
	if err != nil {
		return err
	}
	cfg.DeadLetterURL = queue.deadLetter
	worker := daemon.WorkerConfig{Client: queue.found.Client, QueueURL: queue.url, Handler: handler, Config: cfg, Logger: logger, AllowedOrigins: f.allowOrigins}
	if f.admin != "none" {
		worker.AdminAddr = f.admin
	}
	w, err := daemon.NewWorker(worker)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "queue         %s\n", queue.url)
	fmt.Fprintf(a.stdout, "SQS endpoint  %s\n", cmp.Or(queue.found.Endpoint.URL, "AWS"))
	fmt.Fprintf(a.stdout, "region        %s, credentials: %s\n", queue.found.Region, queue.found.Credentials)
	policy := cfg.Retry
	policy.MaxAttempts = plan.MaxAttempts(policy, queue.facts)
	f.delivery.announce(a, cmp.Or(f.deadLetter, queue.facts.DeadLetterARN, "none: messages that are given up stay in the queue, hidden"), policy)
	if at := w.AdminURL(); at != "" {
		fmt.Fprintf(a.stdout, "admin         %s/health, %s/metrics\n", at, at)
	}
	return settled(w.Run(a.ctx, a.drain))
}

// foundQueue is the queue that reprise run consumes.
type foundQueue struct {
	found      awsclient.Found
	url        string
	deadLetter string // the URL of --dead-letter; empty if it is not given
	facts      plan.Queue
}

// find looks up the queue, so that mistakes in the settings are reported before the first
// message is received.
func (f *runFlags) find(ctx context.Context, logger *slog.Logger) (q foundQueue, err error) {
	if q.found, err = awsclient.Find(ctx, f.aws.endpoint, f.aws.region, f.queue); err != nil {
		return q, accessError(ctx, err, "--queue", f.queue, q.found)
	}
	if endpoint := q.found.Endpoint; strings.Contains(f.queue, "://") && endpoint.URL != "" && !sameEndpoint(endpoint.URL, f.queue) {
		logger.Warn("the queue's URL names another host than the endpoint that is set: the endpoint is called", "queue", f.queue, "endpoint", endpoint.String())
	}
	if q.url, err = resolve(ctx, q.found.Client, f.queue); err != nil {
		return q, accessError(ctx, err, "--queue", f.queue, q.found)
	}
	if f.deadLetter != "" {
		if q.deadLetter, err = resolve(ctx, q.found.Client, f.deadLetter); err != nil {
			return q, accessError(ctx, err, "--dead-letter", f.deadLetter, q.found)
		}
		if redrive.PathOf(q.deadLetter) == redrive.PathOf(q.url) {
			return q, usage(fmt.Errorf("--dead-letter %q is the queue that is consumed: name another queue for what is given up", f.deadLetter))
		}
	}
	out, err := q.found.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if api, ok := errors.AsType[smithy.APIError](err); ok && denials[api.ErrorCode()] {
		return q, nil // receiving may be permitted; the consumer reports what it could not read
	}
	if err != nil {
		return q, accessError(ctx, err, "--queue", f.queue, q.found)
	}
	q.facts, _ = plan.ReadQueue(out.Attributes) // the consumer reports attributes that it does not understand
	return q, nil
}

// resolve returns the URL of a queue that is given by URL or name.
func resolve(ctx context.Context, client *sqs.Client, queue string) (string, error) {
	if strings.Contains(queue, "://") {
		return queue, nil
	}
	out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil {
		return "", err
	}
	if aws.ToString(out.QueueUrl) == "" {
		return "", errors.New("the endpoint answers GetQueueUrl without a URL: check that it is one of SQS, or pass the queue's URL")
	}
	return *out.QueueUrl, nil
}

// queueName returns the name of a queue that the flag gives by URL or name.
func queueName(flag, queue string) (string, error) {
	if strings.HasPrefix(queue, "arn:") {
		return "", fmt.Errorf("%s %s is an ARN: pass the queue's URL or its name", flag, queue)
	}
	u, err := url.Parse(queue)
	if err != nil || !strings.Contains(queue, "://") {
		if queue == "" || strings.ContainsAny(queue, "/:") {
			return "", fmt.Errorf("%s %q is neither a name nor a URL: pass one like orders, or https://sqs.eu-west-1.amazonaws.com/123456789012/orders", flag, queue)
		}
		return queue, nil
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if u.Host == "" || len(path) < 2 {
		return "", fmt.Errorf("%s %s does not end in /account/name: pass the queue's URL as GetQueueUrl returns it", flag, queue)
	}
	return path[len(path)-1], nil
}

// sameEndpoint reports whether two URLs lead to the same host and port.
func sameEndpoint(a, b string) bool {
	first, err := url.Parse(a)
	if err != nil {
		return false
	}
	second, err := url.Parse(b)
	if err != nil {
		return false
	}
	return hostPort(first) == hostPort(second)
}

func hostPort(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if _, err := netip.ParseAddr(host); err != nil && sqsserver.IsLoopbackName(host) {
		host = "127.0.0.1" // to what localhost resolves nearly everywhere
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return host + ":" + port
}

// denials are SQS's error codes for requests that a policy of IAM or of the queue forbids.
var denials = map[string]bool{"AccessDenied": true, "AccessDeniedException": true}

// distrusted are the error codes for credentials that AWS does not accept.
var distrusted = map[string]bool{
	"InvalidClientTokenId": true, "SignatureDoesNotMatch": true, "ExpiredToken": true, "ExpiredTokenException": true,
	"InvalidSecurity": true, "MissingAuthenticationToken": true, "UnrecognizedClientException": true,
	"IncompleteSignature": true, "RequestExpired": true, "InvalidAccessKeyId": true,
}

// accessError explains why the queue that flag names cannot be consumed. Errors that only
// a change of the settings can mend exit with exitAccess.
func accessError(ctx context.Context, err error, flag, queue string, found awsclient.Found) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, missing := errors.AsType[*awsclient.SettingsError](err); missing {
		return &failure{exitAccess, err}
	}
	place := found.Endpoint.String()
	if found.Endpoint.URL == "" {
		place = "AWS in " + found.Region
	}
	if _, missing := errors.AsType[*types.QueueDoesNotExist](err); missing {
		return &failure{exitAccess, fmt.Errorf("queue %q does not exist at %s: correct %s, --region or --endpoint, or create it (CreateQueue; on a server of your own: reprise serve --queue)", queue, place, flag)}
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case ok && denials[api.ErrorCode()]:
		return &failure{exitAccess, fmt.Errorf("access to queue %q at %s is denied: %s: permit sqs:GetQueueUrl, or pass the queue's URL", queue, place, apiText(api.ErrorMessage()))}
	case ok && distrusted[api.ErrorCode()]:
		return &failure{exitAccess, fmt.Errorf("the AWS credentials are not accepted at %s: %s: %s: renew them, or choose others with AWS_PROFILE", place, apiText(api.ErrorCode()), apiText(api.ErrorMessage()))}
	}
	return queueError(ctx, err, "looking up", queue, found.Endpoint)
}
