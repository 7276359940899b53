package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

type upFlags struct {
	server      serverFlags
	queue       string
	url         string
	exec        string
	contentType string
	retry       string
	concurrency int
	timeout     time.Duration
}

func (a *app) up() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up (--url URL | --exec COMMAND)",
		Short: "Run a server and deliver a queue's messages to an HTTP endpoint or a command",
		Long: `Run an SQS-compatible server, create a queue with a dead-letter queue, and
deliver every message that is sent to it.

--url posts the body. 2xx deletes the message; 429 and 503 with Retry-After are
retried not before that; 408, 425, 429, 5xx, redirects (not followed), failed
connections and timeouts are retried by the policy; every other 4xx
dead-letters. Headers are those of Elastic Beanstalk's workers: X-Aws-Sqsd-Msgid,
-Queue, -First-Received-At, -Receive-Count, -Attr-NAME; and X-Reprise-Attempt,
-Origin-Id, -Group-Id.

--exec runs the line by the shell, with the body on standard input and
REPRISE_MESSAGE_ID, _ORIGIN_ID, _QUEUE, _GROUP_ID, _ATTEMPT, _RECEIVE_COUNT,
_SENT_AT, _FIRST_RECEIVED_AT and _ATTR_NAME in the environment. Exit code 0
deletes the message, 100 dead-letters it, 101 gives it back without counting an
attempt, every other one is retried by the policy.

Dead letters lie in the queue NAME-dead, with their story in the message
attribute reprise-story.

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
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "jobs", "`name` of the queue")
	flags.StringVar(&f.url, "url", "", "`URL` to post messages to")
	flags.StringVar(&f.exec, "exec", "", "`command` to run for each message")
	flags.StringVar(&f.contentType, "content-type", "application/json", "Content-Type of the posts")
	flags.StringVar(&f.retry, "retry", "", "retry `policy` (default \""+policyText(retry.Policy{})+"\")")
	flags.IntVar(&f.concurrency, "concurrency", 10, "how many messages are worked on at once")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long one attempt may take")
	cmd.MarkFlagsOneRequired("url", "exec")
	cmd.MarkFlagsMutuallyExclusive("url", "exec")
	return cmd
}

func (a *app) runUp(f *upFlags) error {
	cfg, err := f.server.config(a)
	if err != nil {
		return err
	}
	var policy retry.Policy
	if err := policy.UnmarshalText([]byte(f.retry)); err != nil {
		return usage(fmt.Errorf("--retry: %w", err))
	}
	policy = policy.WithDefaults()
	switch {
	case f.concurrency < 1:
		return usage(fmt.Errorf("--concurrency is %d: pass 1 or more", f.concurrency))
	case f.timeout <= 0:
		return usage(fmt.Errorf("--timeout is %v: pass how long one attempt may take, like 30s", f.timeout))
	}
	handler, err := a.target(f)
	if err != nil {
		return usage(err)
	}
	dead := deadLetterName(f.queue)
	cfg.Queues = []daemon.Queue{{Name: f.queue, DeadLetter: dead, MaxReceives: maxReceives(policy)}}
	cfg.Consume = &daemon.Consume{Queue: f.queue, Handler: handler, Config: reprise.Config{
		Concurrency:    f.concurrency,
		Retry:          policy,
		HandlerTimeout: f.timeout,
		Logger:         cfg.Logger,
	}}
	d, err := f.server.start(cfg)
	if err != nil {
		return err
	}
	a.announce(d, cfg)
	fmt.Fprintf(a.stdout, "dead letters  %s\n", d.QueueURL(dead))
	fmt.Fprintf(a.stdout, "deliver to    %s\n", f.url+f.exec)
	fmt.Fprintf(a.stdout, "retry         %s\n", policyText(policy))

	err = d.Run(a.ctx, a.drain)
	if errors.Is(err, reprise.ErrDrainTimeout) {
		return unsettled(err)
	}
	return err
}

// target is where messages go.
func (a *app) target(f *upFlags) (reprise.Handler, error) {
	if f.exec != "" {
		target, err := forward.NewExec(forward.ExecConfig{Command: f.exec, Queue: f.queue, Stdout: a.stdout, Stderr: a.stderr})
		if err != nil {
			return nil, fmt.Errorf("--exec: %w", err)
		}
		return target, nil
	}
	target, err := forward.NewHTTP(forward.HTTPConfig{
		URL: f.url, Queue: f.queue, ContentType: f.contentType,
		UserAgent: "reprise/" + version(), Connections: f.concurrency,
	})
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	return target, nil
}

// deadLetterName is the name of the dead-letter queue of the queue called name: of
// the same kind, which SQS tells by the end of the name.
func deadLetterName(name string) string {
	base, fifo := strings.CutSuffix(name, ".fifo")
	if fifo {
		return base + "-dead.fifo"
	}
	return base + "-dead"
}

// maxReceives is the queue's own limit for a policy: far above its attempts, since
// stops and releases use up receives too. It only catches messages that kill the
// program.
func maxReceives(p retry.Policy) int {
	const limit, perAttempt = 1000, 10
	if p.MaxAttempts < 0 || p.MaxAttempts > limit/perAttempt {
		return limit
	}
	return p.MaxAttempts * perAttempt
}

// policyText is p with its defaults spelled out.
func policyText(p retry.Policy) string {
	text, err := p.WithDefaults().MarshalText()
	if err != nil {
		return err.Error() // only of backoffs that are functions
	}
	return string(text)
}
