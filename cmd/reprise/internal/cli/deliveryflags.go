package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

// deliveryFlags are the flags of every command that delivers a queue's messages: the
// target, and what happens to messages that fail.
type deliveryFlags struct {
	url         string
	exec        string
	contentType string
	retry       string
	concurrency int
	timeout     time.Duration
	stopBudget  time.Duration
	statuses    verdictFlags
	exits       verdictFlags
	flags       *pflag.FlagSet // knows which of them were given
	signing     signingFlags
}

// verdictFlags are codes to which users give another meaning than the default.
type verdictFlags struct{ permanent, retry, unavailable []string }

const aboutDelivery = `--url posts the body. 2xx deletes the message. 401 to 407, 410, 411, 414, 415, 421,
426, 429, 5xx, redirects (not followed), failed connections, certificates that are
not trusted and timeouts mean that the target is down or misconfigured: the policy
retries such messages, and when nearly all fail so, a circuit breaker holds them,
without counting attempts, until the target works again. 408 and 425 are retried by
the policy; every other 4xx dead-letters at once. With Retry-After, 429 and 503 are
retried no earlier than it says. Headers are those of Elastic Beanstalk's workers:
X-Aws-Sqsd-Msgid, -Queue, -First-Received-At, -Receive-Count, -Attr-NAME; and
X-Reprise-Attempt, -Origin-Id, -Group-Id, and -Left-Out, the number of attributes
that no header can carry, if there are any.

--exec runs the command line in a shell, with the body on standard input and
REPRISE_MESSAGE_ID, _ORIGIN_ID, _QUEUE, _GROUP_ID, _ATTEMPT, _RECEIVE_COUNT,
_SENT_AT, _FIRST_RECEIVED_AT, _ATTR_NAME, _ATTRIBUTES (all of them, in JSON) and
_LEFT_OUT in the environment. Exit code 0 deletes the message, 100 dead-letters
it, 101 gives it back without counting an attempt; 69, 78, 126 and 127 mean that
the command, or something that it needs, is missing or misconfigured; after every
other one, such as 75, the policy retries the message.

--permanent-status, --retry-status, --unavailable-status and the same with -exit
change what a code means: they take numbers, ranges (500-504) and classes (4xx),
separated by commas.

` + aboutSigning + `

Dead letters have their story in the message attribute reprise-story. Logs go to
the standard error: one line for each dead letter (if there are many, their
number), for the beginning and the end of an outage and of times in which nearly
every message is given up, for the start and the stop; with --log-level debug also
for each failed attempt.`

func (f *deliveryFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	flags.StringVar(&f.url, "url", "", "`URL` to post messages to")
	flags.StringVar(&f.exec, "exec", "", "`command` to run for each message")
	flags.StringVar(&f.contentType, "content-type", "application/json", "Content-Type of the posts")
	flags.StringVar(&f.retry, "retry", "", "retry `policy` (default \""+policyText(retry.Policy{})+"\")")
	flags.IntVar(&f.concurrency, "concurrency", 10, "how many messages are handled at once")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long one attempt may take")
	flags.DurationVar(&f.stopBudget, "stop-budget", 25*time.Second, "how long a graceful stop may take")
	f.statuses.register(cmd, "status", "`statuses`")
	f.exits.register(cmd, "exit", "exit `codes`")
	f.signing.register(flags)
	cmd.MarkFlagsOneRequired("url", "exec")
	cmd.MarkFlagsMutuallyExclusive("url", "exec")
}

func (f *verdictFlags) register(cmd *cobra.Command, suffix, what string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.permanent, "permanent-"+suffix, nil, what+" that dead-letter a message at once")
	flags.StringSliceVar(&f.retry, "retry-"+suffix, nil, what+" after which the policy retries a message")
	flags.StringSliceVar(&f.unavailable, "unavailable-"+suffix, nil, what+" that mean that the target is down or misconfigured, whatever the message")
}

// changes returns what the flags with the suffix change.
func (f *verdictFlags) changes(suffix string) []forward.Change {
	return []forward.Change{
		{Flag: "--permanent-" + suffix, Verdict: forward.Permanent, Codes: f.permanent},
		{Flag: "--retry-" + suffix, Verdict: forward.Retry, Codes: f.retry},
		{Flag: "--unavailable-" + suffix, Verdict: forward.Unavailable, Codes: f.unavailable},
	}
}

// config returns the part of a consumer's configuration that the flags set. Defaults of
// its policy are not filled in: see [reprise.Config].Retry.
func (f *deliveryFlags) config(logger *slog.Logger) (reprise.Config, error) {
	var policy retry.Policy
	if err := policy.UnmarshalText([]byte(f.retry)); err != nil {
		return reprise.Config{}, usage(fmt.Errorf("--retry: %w", err))
	}
	switch {
	case f.concurrency < 1:
		return reprise.Config{}, usage(fmt.Errorf("--concurrency is %d: pass 1 or more", f.concurrency))
	case f.timeout <= 0:
		return reprise.Config{}, usage(fmt.Errorf("--timeout is %v: pass how long one attempt may take, like 30s", f.timeout))
	case f.stopBudget <= 0:
		return reprise.Config{}, usage(fmt.Errorf("--stop-budget is %v: pass how long a graceful stop may take, like 25s", f.stopBudget))
	}
	keys, err := f.signing.keys(logger)
	if err != nil {
		return reprise.Config{}, err
	}
	return reprise.Config{Concurrency: f.concurrency, Retry: policy, HandlerTimeout: f.timeout, StopBudget: f.stopBudget, SigningKeys: keys, Logger: logger}, nil
}

// checkKind returns an error if a flag is for the other kind of target, and so would have no
// effect.
func (f *deliveryFlags) checkKind() error {
	target, other, flags := "--url", "--exec", []string{"permanent-exit", "retry-exit", "unavailable-exit"}
	remedy := "pass the same with -status, or leave it out"
	if f.flags.Changed("exec") {
		target, other, flags = other, target, []string{"permanent-status", "retry-status", "unavailable-status", "content-type"}
		remedy = "pass the same with -exit, or leave it out"
	}
	for _, name := range flags {
		if !f.flags.Changed(name) {
			continue
		}
		if name == "content-type" {
			remedy = "leave it out"
		}
		return fmt.Errorf("--%s is for %s, but messages go to %s: %s", name, other, target, remedy)
	}
	return nil
}

// target returns the handler that delivers the messages of the queue with this name.
func (f *deliveryFlags) target(a *app, queue string, logger *slog.Logger) (reprise.Handler, error) {
	statuses, err := forward.Statuses(f.statuses.changes("status")...)
	if err != nil {
		return nil, usage(err)
	}
	exits, err := forward.ExitCodes(f.exits.changes("exit")...)
	if err != nil {
		return nil, usage(err)
	}
	if err := f.checkKind(); err != nil {
		return nil, usage(err)
	}
	if f.flags.Changed("exec") {
		target, err := forward.NewExec(forward.ExecConfig{Command: f.exec, Queue: queue, ExitCodes: exits, Stdout: a.stdout.commands(), Stderr: a.commandErrors(), Logger: logger})
		if err != nil {
			return nil, usage(fmt.Errorf("--exec: %w", err))
		}
		return target, nil
	}
	target, err := forward.NewHTTP(forward.HTTPConfig{
		URL: f.url, Queue: queue, ContentType: f.contentType, Statuses: statuses,
		UserAgent: "reprise/" + version(), Connections: f.concurrency, Logger: logger,
	})
	if err != nil {
		return nil, usage(fmt.Errorf("--url: %w", err))
	}
	return target, nil
}

// announce prints where messages go, and what happens to those that fail.
func (f *deliveryFlags) announce(a *app, deadLetters string, policy retry.Policy) {
	fmt.Fprintf(a.stdout, "dead letters  %s\n", deadLetters)
	fmt.Fprintf(a.stdout, "deliver to    %s\n", f.place())
	fmt.Fprintf(a.stdout, "retry         %s\n", policyText(policy))
}

// place returns the target for display, without a password.
func (f *deliveryFlags) place() string {
	if u, err := url.Parse(f.url); err == nil && f.url != "" {
		return u.Redacted()
	}
	return f.exec
}

// policyText returns p as text, with its defaults.
func policyText(p retry.Policy) string {
	text, err := p.WithDefaults().MarshalText()
	if err != nil {
		return err.Error() // only if a backoff is a function, which no flag can make
	}
	return string(text)
}

// settled marks the error of a daemon or worker that could not settle all messages in
// time.
func settled(err error) error {
	if errors.Is(err, reprise.ErrDrainTimeout) {
		return unsettled(err)
	}
	return err
}
