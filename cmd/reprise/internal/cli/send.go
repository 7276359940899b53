package cli

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

type sendFlags struct {
	queue      string
	aws        awsFlags
	file       string
	group      string
	delay      time.Duration
	attributes []string
	messages   bool
	rate       float64
	output     outputFlags
}

// send returns the command as one of parent, which its examples call it by.
func (a *app) send(parent string) *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use:   "send QUEUE [MESSAGE...]",
		Short: "Send messages to a queue",
		Long: `Send each MESSAGE, or each line of a file or of the standard input, as one
message to QUEUE, a name or URL. Empty lines are skipped. Messages go in batches of
ten; those for a FIFO queue go one by one, since in a batch one could overtake
another. Failed requests are repeated; messages that SQS refuses are listed at the
end (exit code 3).

With --messages each line is a whole message in JSON, in the form in which reprise peek,
search and dead export print it: {"body":"...","attributes":{"tenant":{"type":"String",
"value":"acme"}},"group":"...","deduplication":"..."}; only the body is needed, and what
SQS and consumers knew of it (id, sent, receives, death ...) is not sent.

` + aboutEndpoint,
		Example: `  ` + parent + ` send orders '{"id":1}' '{"id":2}'
  ` + parent + ` send orders --file examples/webhooks.jsonl
  jq -c .[] orders.json | ` + parent + ` send https://sqs.eu-west-1.amazonaws.com/123456789012/orders`,
		RunE: run(func(args []string) error {
			if f.queue == "" && len(args) == 0 {
				return usage(errors.New("QUEUE is missing: pass the name or URL of a queue, and then messages"))
			}
			if f.queue == "" {
				f.queue, args = args[0], args[1:]
			}
			if _, err := queueName("QUEUE", f.queue); err != nil {
				return usage(err)
			}
			return a.runSend(&f, args)
		}),
	}
	flags := cmd.Flags()
	f.aws.register(flags)
	flags.StringVarP(&f.file, "file", "f", "", "send the lines of this `file`; - is the standard input")
	flags.StringVar(&f.group, "group", "", "message group `id`: required by FIFO queues")
	flags.DurationVar(&f.delay, "delay", 0, "hide the messages at first for so long, up to 15m (default the queue's own delay)")
	flags.StringArrayVar(&f.attributes, "attribute", nil, "add a String attribute `name=value` to every message; repeatable")
	flags.BoolVar(&f.messages, "messages", false, "each line is a whole message in JSON")
	flags.Float64Var(&f.rate, "rate", 0, "send at most so many a second (default: as fast as SQS takes them)")
	f.output.register(flags)
	flags.StringVarP(&f.queue, "queue", "q", "", "")
	markFormer(flags.Lookup("queue"), "", parent+" send QUEUE")
	return cmd
}

func (a *app) runSend(f *sendFlags, args []string) error {
	template, err := f.template()
	if err != nil {
		return usage(err)
	}
	messages, source, err := a.input(f, args, template)
	if err != nil {
		return err
	}
	defer source.Close()

	ctx, stop := a.interruptible() // the batch under way ends or does not
	defer stop()
	endpoint := f.aws.queueEndpoint(f.queue)
	client, err := awsclient.New(ctx, endpoint, f.aws.region)
	if err != nil {
		return err
	}
	queueURL, err := resolveQueue(ctx, client, f.queue, endpoint)
	if err != nil {
		return err
	}
	if f.messages {
		messages = whole(messages, strings.HasSuffix(queueURL, ".fifo"))
	}
	report, err := sendAll(ctx, client, queueURL, paced(ctx, messages, f.rate))
	if err == nil || report.Sent > 0 {
		text := fmt.Sprintf("%d sent to %s in %s", report.Sent, queueURL, plural.Of(report.Requests, "request"))
		if problem := a.printSent(f.output.as(), report.to(queueURL), text); problem != nil {
			return problem
		}
	}
	for _, r := range report.refused {
		fmt.Fprintf(a.stderr, "reprise: %s\n", r)
	}
	switch {
	case err != nil:
		return queueError(ctx, err, "sending to", f.queue, endpoint)
	case len(report.refused) > 0:
		return unsettled(fmt.Errorf("not sent: %s", plural.Of(len(report.refused), "message")))
	}
	return nil
}

// sentMessages says what was sent, for programs.
type sentMessages struct {
	Queue    string `json:"queue"`
	DryRun   bool   `json:"dry_run,omitempty"` // Sent is what would be sent
	Sent     int64  `json:"sent"`
	Refused  int    `json:"refused"` // each is named on the standard error
	Requests int64  `json:"requests"`
}

func (r *sendReport) to(queueURL string) sentMessages {
	return sentMessages{Queue: queueURL, Sent: r.Sent, Refused: len(r.refused), Requests: r.Requests}
}

// printSent prints what was sent; text says it in words.
func (a *app) printSent(as form, s sentMessages, text string) error {
	if as != asText {
		return a.printValue(as, s)
	}
	fmt.Fprintln(a.stdout, text)
	return nil
}

// message is a message to send.
type message struct {
	reprise.Outgoing
	source string // where it came from, such as "line 7", for errors
}

// sendReport is the outcome of sending messages.
type sendReport struct {
	reprise.SenderStatus
	refused []refusal // in the order of the messages
}

// refusal is a message that SQS did not take.
type refusal struct {
	number int
	source string
	err    error
}

func (r refusal) String() string {
	if reason, unconfirmed := strings.CutPrefix(r.err.Error(), reprise.ErrUnconfirmed.Error()+": "); unconfirmed {
		return r.source + " may not have been sent: " + apiText(reason)
	}
	return r.source + " was not sent: " + apiText(r.err.Error())
}

const (
	// sendTries is enough for a throttle or a restart of the server, not for an outage: a user is
	// waiting for the command.
	sendTries = 6

	// sendLinger is how long a line of a pipe waits for others. Input that is there
	// already fills its batches, however busy the machine is.
	sendLinger = time.Second
)

// sendAll sends messages in their order until there are no more. It continues after messages that
// SQS refuses, which the report names. The error is that of the sequence, or of a request that
// failed as a whole, which ends the sending.
func sendAll(ctx context.Context, client reprise.SenderClient, queueURL string, messages iter.Seq2[message, error]) (sendReport, error) {
	s, err := reprise.NewSender(client, queueURL, reprise.SenderConfig{
		Linger:     sendLinger,
		Requests:   1,
		MaxWaiting: 10, // a batch: while one fails, the next is not tried
		Tries:      sendTries,
		Logger:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return sendReport{}, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var report sendReport
	var mu sync.Mutex // guards report.refused
	refused := func(number int, m message, err error) {
		mu.Lock()
		defer mu.Unlock()
		report.refused = append(report.refused, refusal{number, m.source, err})
	}

	fifo := strings.HasSuffix(queueURL, ".fifo")
	number := 0
	for m, inputErr := range messages {
		if err = inputErr; err != nil {
			break
		}
		if number++; ctx.Err() != nil {
			break
		}
		at := number
		if fifo { // so that a request that is repeated after a lost reply sends nothing twice
			m.DeduplicationID = cmp.Or(m.DeduplicationID, rand.Text())
		}
		submitErr := s.Submit(ctx, m.Outgoing, func(sent reprise.Sent) {
			_, failed := errors.AsType[*smithy.OperationError](sent.Err)
			switch {
			case sent.Err == nil || ctx.Err() != nil: // ended: that is the error, not what is left
			case failed:
				fail(sent.Err)
			default:
				refused(at, m, sent.Err)
			}
		})
		if submitErr != nil && ctx.Err() == nil {
			refused(at, m, submitErr)
		}
	}
	_, _ = s.Close(ctx) // each message has its own answer
	slices.SortFunc(report.refused, func(a, b refusal) int { return cmp.Compare(a.number, b.number) })
	report.SenderStatus = s.Status()
	if int(report.Sent)+len(report.refused) < number {
		err = errors.Join(err, context.Cause(ctx))
	}
	return report, err
}

// maxDelay is SQS's longest DelaySeconds.
const maxDelay = 15 * time.Minute

// template returns what all messages have in common.
func (f *sendFlags) template() (message, error) {
	m := message{Outgoing: reprise.Outgoing{GroupID: f.group, Delay: f.delay}}
	if f.delay < 0 || f.delay > maxDelay || f.delay%time.Second != 0 {
		return m, fmt.Errorf("--delay is %v: pass whole seconds up to %v", f.delay, maxDelay)
	}
	if !(f.rate >= 0 && f.rate < 1e6) {
		return m, fmt.Errorf("--rate is %g: pass how many messages a second, or leave it out", f.rate)
	}
	if strings.HasSuffix(f.queue, ".fifo") && f.group == "" && !f.messages {
		return m, fmt.Errorf("queue %q is a FIFO queue, whose messages need a group: pass --group", f.queue)
	}
	for _, text := range f.attributes {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" || value == "" {
			return m, fmt.Errorf("--attribute %q is not of the form name=value", text)
		}
		if m.Attributes == nil {
			m.Attributes = make(map[string]types.MessageAttributeValue, len(f.attributes))
		}
		m.Attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	return m, nil
}

// input returns the messages of the arguments, of the file or of the standard input, and
// what to close after them.
func (a *app) input(f *sendFlags, args []string, template message) (iter.Seq2[message, error], io.Closer, error) {
	nothing := io.NopCloser(nil)
	switch {
	case len(args) > 0 && f.file != "":
		return nil, nothing, usage(errors.New("messages are given as arguments and by --file: use one of them"))
	case len(args) > 0:
		return arguments(args, template), nothing, nil
	case f.file == "" && term.IsTerminal(int(a.stdin.Fd())):
		return nil, nothing, usage(errors.New("there is nothing to send: pass messages as arguments, pipe lines in, or name a --file"))
	case f.file == "" || f.file == "-":
		return lines(a.stdin, "standard input", template), nothing, nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, nothing, fmt.Errorf("--file: %w", err)
	}
	return lines(file, f.file, template), file, nil
}

func arguments(args []string, template message) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for i, arg := range args {
			m := template
			m.Body, m.source = arg, fmt.Sprintf("argument %d", i+1)
			if !yield(m, nil) {
				return
			}
		}
	}
}

// maxLine is larger than SQS's largest message, also in JSON with every character escaped, so that
// SQS itself refuses a message that is too large.
const maxLine = 8 << 20

func lines(r io.Reader, name string, template message) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, maxLine)
		n := 0
		for scanner.Scan() {
			n++
			if strings.TrimSpace(scanner.Text()) == "" {
				continue // SQS has no empty messages
			}
			m := template
			m.Body, m.source = scanner.Text(), fmt.Sprintf("%s, line %d,", name, n)
			if !yield(m, nil) {
				return
			}
		}
		if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(message{}, fmt.Errorf("%s, line %d, is longer than %d bytes: SQS takes messages of up to 1 MiB", name, n+1, maxLine))
		} else if err != nil {
			yield(message{}, fmt.Errorf("reading %s: %w", name, err))
		}
	}
}

// resolveQueue returns the URL of the queue that the user named.
func resolveQueue(ctx context.Context, client *sqs.Client, queue string, endpoint awsclient.Endpoint) (string, error) {
	found, err := resolve(ctx, client, queue)
	if err != nil {
		return "", queueError(ctx, err, "looking up", queue, endpoint)
	}
	return found, nil
}

// queueError explains the most common failures, with a remedy; doing is what failed. Errors that only a change of
// the settings can correct exit with exitAccess, as those of accessError do.
func queueError(ctx context.Context, err error, doing, queue string, endpoint awsclient.Endpoint) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, missing := errors.AsType[*types.QueueDoesNotExist](err); missing {
		return &failure{exitAccess, fmt.Errorf("queue %q does not exist at %s: create it (reprise serve --queue %s, or aws sqs create-queue --endpoint-url %s), or check --region and --endpoint", queue, endpoint, operate.NameOf(queue), endpoint.URL)}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		err = fmt.Errorf("%s %q at %s: %s: %s", doing, queue, endpoint, apiText(api.ErrorCode()), apiText(api.ErrorMessage()))
		if denials[api.ErrorCode()] || distrusted[api.ErrorCode()] {
			return &failure{exitAccess, err}
		}
		return err
	}
	if redirect, ok := errors.AsType[*awsclient.RedirectError](err); ok {
		return fmt.Errorf("%s %q: %s", doing, queue, apiText(redirect.Error()))
	}
	if dial, ok := errors.AsType[*url.Error](err); ok {
		return noAnswer(endpoint, dial.Err, "reprise serve")
	}
	return fmt.Errorf("%s %q at %s: %w", doing, queue, endpoint, err)
}

// noAnswer returns the error of an endpoint that does not answer; start is the command
// that starts a server.
func noAnswer(endpoint awsclient.Endpoint, err error, start string) error {
	switch {
	case endpoint.URL == "":
		return fmt.Errorf("no answer from AWS: %w: check the network and the region", err)
	case endpoint.SetBy != "":
		return fmt.Errorf("no answer from %s: %w: start the server there (%s), correct %s, or pass --endpoint", endpoint, err, start, endpoint.SetBy)
	}
	return fmt.Errorf("no answer from %s: %w: start the server (%s), or pass its --endpoint", endpoint, err, start)
}
