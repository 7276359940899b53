package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awstarget"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

// verdictSettings are codes to which users give another meaning than the default.
type verdictSettings struct{ permanent, retry, unavailable, release, done []string }

// AboutTarget describes the targets and the verdicts on their answers.
const AboutTarget = `--url posts the body. 2xx deletes the message. 401 to 407, 410, 411, 414, 415, 421,
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

--worker runs commands that stay: each gets one message at a time, as a line of JSON
on standard input, and answers with a line of JSON: see docs/run.md.

--lambda invokes a function, synchronously. Its errors are retried by the policy,
but types that --permanent-error names dead-letter; a function that cannot be
invoked or loaded is unavailable. --to-queue moves messages to another queue, with
their attributes; --transform runs a command for the body, judged like --exec's.

--permanent-status, --retry-status, --unavailable-status, --release-status,
--delete-status and the same with -exit change what a code means: they take numbers, ranges (500-504) and classes (4xx),
separated by commas.

` + AboutSigning + `

Dead letters have their story in the message attribute reprise-story. Logs go to
the standard error: one line for each dead letter (if there are many, their
number), for the beginning and the end of an outage and of times in which nearly
every message is given up, for the start and the stop; with --log-level debug also
for each failed attempt.`

func (s *Settings) registerTarget(flags *pflag.FlagSet) {
	flags.StringVar(&s.url, "url", "", "`URL` to post messages to")
	flags.StringVar(&s.exec, "exec", "", "`command` to run for each message")
	flags.StringVar(&s.worker, "worker", "", "`command` that stays, and is given messages as lines of JSON (see docs/run.md)")
	flags.StringVar(&s.lambda, "lambda", "", "`name or ARN` of a Lambda function to invoke for each message")
	flags.StringVar(&s.ToQueue, "to-queue", "", "`URL or name` of a queue to move messages to")
	flags.StringVar(&s.transform, "transform", "", "`command` that is given the body of each message and writes the one to send with --to-queue")
	s.payload = choice.Of("event", "body")
	flags.Var(&s.payload, "lambda-payload", "what the function gets: an event as SQS's triggers send it, with one message, or the message's body")
	flags.StringSliceVar(&s.permanentErrors, "permanent-error", nil, "`types` of errors of the function that dead-letter a message at once")
	s.http.register(flags)
	s.statuses.register(flags, "status", "`statuses`")
	s.exits.register(flags, "exit", "exit `codes`")
}

func (v *verdictSettings) register(flags *pflag.FlagSet, suffix, what string) {
	flags.StringSliceVar(&v.permanent, "permanent-"+suffix, nil, what+" that dead-letter a message at once")
	flags.StringSliceVar(&v.retry, "retry-"+suffix, nil, what+" after which the policy retries a message")
	flags.StringSliceVar(&v.unavailable, "unavailable-"+suffix, nil, what+" that mean that the target is down or misconfigured, whatever the message")
	flags.StringSliceVar(&v.release, "release-"+suffix, nil, what+" that give a message back without counting an attempt")
	flags.StringSliceVar(&v.done, "delete-"+suffix, nil, what+" that delete a message, as success does")
}

// changes returns what the settings with the suffix change.
func (v *verdictSettings) changes(suffix string) []forward.Change {
	return []forward.Change{
		{Flag: "--permanent-" + suffix, Verdict: forward.Permanent, Codes: v.permanent},
		{Flag: "--retry-" + suffix, Verdict: forward.Retry, Codes: v.retry},
		{Flag: "--unavailable-" + suffix, Verdict: forward.Unavailable, Codes: v.unavailable},
		{Flag: "--release-" + suffix, Verdict: forward.Release, Codes: v.release},
		{Flag: "--delete-" + suffix, Verdict: forward.Delete, Codes: v.done},
	}
}

// kind is a kind of target, by the name of the setting that selects it.
type kind string

const (
	toURL    kind = "url"
	toExec   kind = "exec"
	toWorker kind = "worker"
	toLambda kind = "lambda"
	toQueue  kind = "to-queue"
)

var kinds = []kind{toURL, toExec, toWorker, toLambda, toQueue}

// kind returns the kind of the target.
func (s *Settings) kind() (kind, error) {
	var found kind
	for _, k := range kinds {
		switch {
		case !s.flags.Changed(string(k)):
		case found != "":
			return "", wrong(string(k), " and --%s are two targets: keep one", found)
		default:
			found = k
		}
	}
	if found == "" {
		return "", wrong("url", ", --exec, --worker, --lambda or --to-queue has to name the target of the messages")
	}
	return found, nil
}

// only are the settings that have an effect with one kind of target alone.
var only = map[kind][]string{
	toURL:    append(verdictNames("status"), httpNames...),
	toExec:   verdictNames("exit"), // and of the command of --transform
	toLambda: {"lambda-payload", "permanent-error"},
	toQueue:  {"transform"},
}

func verdictNames(suffix string) []string {
	return []string{"permanent-" + suffix, "retry-" + suffix, "unavailable-" + suffix, "release-" + suffix, "delete-" + suffix}
}

// remedies are the endings of the settings to use instead of those of another kind of target.
var remedies = map[kind]string{toURL: "-status", toExec: "-exit"}

// checkTarget returns an error unless there is one target, and each setting has an effect.
func (s *Settings) checkTarget() error {
	target, err := s.kind()
	if err != nil {
		return err
	}
	s.flags.VisitAll(func(flag *pflag.Flag) {
		if err != nil || !flag.Changed || s.shared[flag.Name] {
			return
		}
		if problem := s.noEffect(flag.Name, target); problem != "" {
			err = wrong(flag.Name, " %s, or leave it out", problem)
		}
	})
	if err == nil {
		_, _, err = s.verdicts()
	}
	if err != nil || target != toURL {
		return err
	}
	if err := s.http.check(); err != nil {
		return err
	}
	_, err = s.poster(forward.HTTPConfig{Queue: "any", ContentType: s.http.contentType})
	return err
}

// poster returns the target that posts, of which cfg has the rest.
func (s *Settings) poster(cfg forward.HTTPConfig) (reprise.Handler, error) {
	cfg.URL, cfg.Connections = s.url, s.concurrency
	target, err := forward.NewHTTP(cfg)
	if err != nil {
		return nil, wrong("url", ": %w", err)
	}
	return target, nil
}

// noEffect returns why the setting has no effect, and what to do if it should; empty if it
// has one.
func (s *Settings) noEffect(name string, target kind) string {
	switch {
	case strings.HasPrefix(name, "retry-lane-") && s.RetryLane == "":
		return "is about a retry lane, and there is none: name one with --retry-lane"
	case s.http.beanstalk && target == toURL && slices.Contains(verdictNames("status"), name):
		return "has no effect with --beanstalk: status 200 deletes a message, and after everything else it is retried"
	case strings.HasPrefix(name, "idempotency-") && s.idempotency.store == "":
		return "is about a store of work that is done, and there is none: name one with --idempotency"
	case name == "keep-payloads" && s.payloads.at == "":
		return "is about bodies in S3, and there are none: name their place with --payloads"
	case (name == "priority" || name == "weight") && s.Pool == "":
		return "is about the queues of a pool: name one with the key pool"
	}
	for _, other := range kinds {
		transformed := other == toExec && target == toQueue && s.transform != ""
		if other == target || transformed || !slices.Contains(only[other], name) {
			continue
		}
		text := fmt.Sprintf("is for --%s, but messages go to --%s", other, target)
		if suffix := remedies[target]; suffix != "" && !slices.Contains(httpNames, name) {
			text += ": pass the same with " + suffix
		}
		return text
	}
	return ""
}

// Surroundings are the parts of the program that targets use.
type Surroundings struct {
	// Queue is the name of the queue.
	Queue string
	// Version is the program's.
	Version string
	Secrets *Secrets
	// QueueARN is the ARN of the queue, Invoker invokes functions, Sender sends to the queue
	// ToQueue: they are needed if Remote reports so.
	QueueARN string
	Invoker  awstarget.Invoker
	Sender   awstarget.Sender
	// Trace is forward.HTTPConfig.Trace.
	Trace func(context.Context, http.Header)
	// Stdout and Stderr get what commands write.
	Stdout, Stderr io.Writer
	Logger         *slog.Logger
}

// Target returns the handler that delivers messages.
func (s *Settings) Target(around Surroundings) (reprise.Handler, error) {
	target, err := s.kind()
	if err != nil {
		return nil, err
	}
	statuses, exits, err := s.verdicts()
	if err != nil {
		return nil, err
	}
	switch target {
	case toExec:
		return s.command(s.exec, "exec", exits, around)
	case toWorker:
		lines, err := forward.NewLines(forward.LinesConfig{Command: s.worker, Queue: around.Queue, Stderr: around.Stderr, Logger: around.Logger})
		if err != nil {
			return nil, wrong("worker", ": %w", err)
		}
		return lines, nil
	case toLambda:
		return awstarget.NewLambda(awstarget.LambdaConfig{
			Client: around.Invoker, Function: s.lambda, QueueARN: around.QueueARN, Body: s.payload.String() == "body", Permanent: s.permanentErrors,
		})
	case toQueue:
		var transform awstarget.Transform
		if s.transform != "" {
			command, err := s.command(s.transform, "transform", exits, around)
			if err != nil {
				return nil, err
			}
			transform = command.Output
		}
		return awstarget.NewQueue(around.Sender, strings.HasSuffix(s.ToQueue, ".fifo"), transform), nil
	}
	cfg := forward.HTTPConfig{Queue: around.Queue, Statuses: statuses, UserAgent: "reprise/" + around.Version, Logger: around.Logger, Trace: around.Trace}
	if err := s.http.apply(&cfg, around.Secrets); err != nil {
		return nil, err
	}
	return s.poster(cfg)
}

// command returns the target that runs a command, which the setting names.
func (s *Settings) command(line, setting string, exits forward.Codes, around Surroundings) (*forward.Exec, error) {
	target, err := forward.NewExec(forward.ExecConfig{Command: line, Queue: around.Queue, ExitCodes: exits, Stdout: around.Stdout, Stderr: around.Stderr, Logger: around.Logger})
	if err != nil {
		return nil, wrong(setting, ": %w", err)
	}
	return target, nil
}

// Remote reports whether the target is reached by a client of AWS.
func (s *Settings) Remote() bool { return s.lambda != "" || s.ToQueue != "" }

// Function returns the function to invoke, empty if there is none.
func (s *Settings) Function() string { return s.lambda }

// verdicts returns the verdicts that the settings change.
func (s *Settings) verdicts() (statuses, exits forward.Codes, err error) {
	statuses, err = forward.Statuses(s.statuses.changes("status")...)
	if err == nil {
		exits, err = forward.ExitCodes(s.exits.changes("exit")...)
	}
	if bad, ok := errors.AsType[*forward.CodeError](err); ok {
		return nil, nil, wrong(strings.TrimPrefix(bad.Flag, "--"), ": %s", bad.Problem)
	}
	return statuses, exits, err
}

// PublicPlace returns the target for those who look at the process, its output or its pages, without what may be secret: the user,
// path, query and fragment of a URL, and the variables and arguments of a command.
func (s *Settings) PublicPlace() string {
	if u, err := url.Parse(s.url); err == nil && s.url != "" {
		at := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
		if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			at += "/…"
		}
		return at
	}
	switch command := s.exec + s.worker; {
	case s.lambda != "":
		return "function " + s.lambda
	case s.ToQueue != "":
		return "queue " + s.ToQueue
	case command != "":
		return programOf(command)
	}
	return ""
}

// programOf returns the program of a shell's command, without its variables and arguments, if it is easily told.
func programOf(command string) string {
	words := strings.Fields(command)
	for len(words) > 0 && variable.MatchString(words[0]) {
		words = words[1:]
	}
	switch {
	case len(words) == 0 || !plainWord.MatchString(words[0]):
		return "a command"
	case len(words) == 1:
		return "command " + words[0]
	}
	return "command " + words[0] + " …"
}

var (
	// variable is one that is set before a command, if nothing in it is quoted: a quoted one may go on in the next word.
	variable  = regexp.MustCompile(`^\w+=[\w./:@%+,-]*$`)
	plainWord = regexp.MustCompile(`^[\w./+-]+$`)
)

// PolicyText returns p as text, with its defaults.
func PolicyText(p retry.Policy) string {
	text, err := p.WithDefaults().MarshalText()
	if err != nil {
		return err.Error() // only if a backoff is a function, which no setting can make
	}
	return string(text)
}
