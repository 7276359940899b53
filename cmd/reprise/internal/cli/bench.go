package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/queuebench"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/telemetry"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/plan"
)

type benchFlags struct {
	aws    awsFlags
	output outputFlags
	bench  queuebench.Bench
	price  float64
	yes    bool
}

const (
	defaultBenchTime = 10 * time.Second
	maxBenchRequests = 256 // of a kind at once
	// benchPatience is longer than the visibility timeout of what the bench receives: a message whose
	// delete has failed comes again.
	benchPatience = 45 * time.Second
)

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench QUEUE",
		Short: "Measure a queue: messages per second, latencies, requests and cost",
		Long: `Send messages to QUEUE, a name or URL, receive them and delete them, and print how many
a second there were, how long requests took, how long a message was under way, and how many
requests a message cost. Sends and deletes go in batches of ten, receives are long polls:
their time includes the wait for messages.

Without --rate messages are sent as fast as the queue takes them, while at most --waiting
of them have not been received; with it, at that rate, however many wait.

The bench deletes its own messages only, and all of them. Their bodies begin with its id, so
that reprise search finds what a killed bench has left. A queue that holds messages is
refused: the bench would receive them too, which raises their receive counts and hides them
for 30 seconds; with --yes it does. A queue that others consume gives them the bench's
messages: use one of its own. On AWS the requests cost money.

Ctrl-C ends the sending; what was sent is received and deleted.

` + aboutOperatorEndpoint,
		Example: `  reprise bench scratch
  reprise bench scratch --rate 500 --for 1m --size 4096
  reprise bench scratch.fifo --messages 20000 --groups 1000 --senders 8 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runBench(&f, args[0]) }),
	}
	flags := cmd.Flags()
	b := &f.bench
	flags.IntVar(&b.Messages, "messages", 0, "send so many messages (default: as many as --for allows)")
	flags.DurationVar(&b.For, "for", 0, "send for so long (default 10s, without --messages)")
	flags.Float64Var(&b.Rate, "rate", 0, "send so many messages a second (default: as fast as the queue takes them)")
	flags.IntVar(&b.Waiting, "waiting", 1000, "without --rate: how many messages may be sent and not yet received")
	flags.IntVar(&b.Size, "size", 1024, "`bytes` of a body, 128 to 1048576")
	flags.IntVar(&b.Senders, "senders", 4, "how many sends are under way at once")
	flags.IntVar(&b.Receivers, "receivers", 8, "how many receives, each with its delete, are under way at once")
	flags.IntVar(&b.Groups, "groups", 100, "FIFO queue: how many message groups; a group is one sender's")
	flags.Float64Var(&f.price, "request-price", 0, "`dollars` that a million requests to SQS cost, for the estimate (default the list price of "+telemetry.PricesOf+": 0.4, FIFO 0.5)")
	flags.BoolVar(&f.yes, "yes", false, "bench although the queue holds messages")
	f.output.register(flags)
	f.aws.register(flags)
	return cmd
}

// check completes the flags, or says what is wrong with them.
func (f *benchFlags) check() error {
	b := &f.bench
	if b.Messages == 0 && b.For == 0 {
		b.For = defaultBenchTime
	}
	switch {
	case b.Messages < 0:
		return fmt.Errorf("--messages is %d: pass 1 or more, or leave it out", b.Messages)
	case b.For < 0:
		return fmt.Errorf("--for is %v: pass a time like 30s", b.For)
	case !(b.Rate >= 0 && b.Rate < 1e6):
		return fmt.Errorf("--rate is %g: pass how many messages a second, or leave it out", b.Rate)
	case b.Waiting < 1:
		return fmt.Errorf("--waiting is %d: pass 1 or more", b.Waiting)
	case b.Size < queuebench.MinSize || b.Size > 1<<20:
		return fmt.Errorf("--size is %d: pass %d to 1048576 bytes", b.Size, queuebench.MinSize)
	case b.Senders < 1 || b.Senders > maxBenchRequests:
		return fmt.Errorf("--senders is %d: pass 1 to %d", b.Senders, maxBenchRequests)
	case b.Receivers < 1 || b.Receivers > maxBenchRequests:
		return fmt.Errorf("--receivers is %d: pass 1 to %d", b.Receivers, maxBenchRequests)
	case b.Groups < 1:
		return fmt.Errorf("--groups is %d: pass 1 or more", b.Groups)
	}
	return telemetry.CheckPrice(f.price)
}

func (a *app) runBench(f *benchFlags, queue string) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	b := &f.bench
	lookup, stop := a.interruptible()
	defer stop()
	t, err := f.aws.target(lookup, "QUEUE", queue)
	if err != nil {
		return err
	}
	if err := f.checkQueue(lookup, t); err != nil {
		return err
	}
	b.Client, b.QueueURL = t.client, t.url
	screen := terminal.New(a.stderr.file, os.Getenv)
	defer screen.Done()
	if screen.Live() {
		b.Progress = func(sent, deleted int) { screen.Redraw(fmt.Sprintf("%d sent, %d deleted", sent, deleted)) }
	}
	report, err := b.Run(a.ctx, a.drain)
	screen.Done()
	cost := telemetry.Estimate(operate.NameOf(t.url), f.price, report.Calls.Billed, int64(report.Counts.Deleted))
	if report.Calls.Total() > 0 {
		if as := f.output.as(); as != asText {
			if err := a.printValue(as, struct {
				queuebench.Report
				Cost telemetry.Cost `json:"cost"`
			}{report, cost}); err != nil {
				return err
			}
		} else {
			fmt.Fprint(a.stdout, benchText(&report, cost))
		}
	}
	left := ""
	if n := report.Counts.Left; n > 0 {
		left = fmt.Sprintf("%s of the bench may be left in the queue: reprise dead delete %s --where bench=%s deletes those that nobody else has received",
			plural.Of(n, "message"), queue, report.ID)
	}
	switch {
	case err != nil && left != "":
		return fmt.Errorf("%w; %s", t.failed(a.ctx, err, "SendMessage, sqs:ReceiveMessage and sqs:DeleteMessage"), left)
	case err != nil:
		return t.failed(a.ctx, err, "SendMessage, sqs:ReceiveMessage and sqs:DeleteMessage")
	case left != "":
		return unsettled(errors.New(left))
	}
	return nil
}

// checkQueue refuses a queue that is not to be benched, and learns how long its messages take.
func (f *benchFlags) checkQueue(ctx context.Context, t target) error {
	attributes, err := t.attributes(ctx, t.url)
	if err != nil {
		return t.failed(ctx, err, "GetQueueAttributes")
	}
	q := operate.Queues([]operate.Described{{URL: t.url, Attributes: attributes}}, false)[0]
	if n := q.Visible + q.InFlight + q.Delayed; n > 0 && !f.yes {
		text := fmt.Sprintf("queue %q holds %s: the bench would receive them too, which raises their receive counts", t.name, plural.Of(n, "message"))
		if known, err := plan.ReadQueue(attributes); err == nil && known.MaxReceives > 0 {
			text += fmt.Sprintf(", and SQS moves those that were received %s to the dead-letter queue", plural.Of(known.MaxReceives, "time"))
		}
		return errors.New(text + ": use an empty queue of its own, or pass --yes")
	}
	if most, err := strconv.Atoi(attributes["MaximumMessageSize"]); err == nil && f.bench.Size > most {
		return usage(fmt.Errorf("--size is %d, and the queue takes messages of at most %d bytes: pass less", f.bench.Size, most))
	}
	delay, err := strconv.Atoi(attributes["DelaySeconds"])
	if err != nil {
		delay = 0 // an old server may not say; then there is none to wait for
	}
	f.bench.Patience = benchPatience + time.Duration(delay)*time.Second
	return nil
}

// benchText is a report for people.
func benchText(r *queuebench.Report, cost telemetry.Cost) string {
	var b strings.Builder
	of := ""
	if r.Groups > 0 {
		of = " in " + plural.Of(r.Groups, "group")
	}
	fmt.Fprintf(&b, "%s of %s%s to %s\n\n", plural.Of(r.Counts.Sent, "message"), plural.Of(r.Size, "byte"), of, r.Queue)
	rates := operate.Table{Header: []string{"", "messages", "per second", "time"}, Right: []bool{false, true, true, true}}
	seconds := func(s float64) string { return admin.ShortDuration(time.Duration(s * float64(time.Second))) }
	rates.Rows = [][]string{
		{"sent", strconv.Itoa(r.Counts.Sent), fmt.Sprintf("%.0f", r.PerSecond.Sent), seconds(r.Seconds.Sending)},
		{"deleted", strconv.Itoa(r.Counts.Deleted), fmt.Sprintf("%.0f", r.PerSecond.Deleted), seconds(r.Seconds.Total)},
	}
	b.WriteString(rates.Text(80) + "\n")
	times := operate.Table{Header: []string{"latency", "p50", "p90", "p99", "max", "requests"}, Right: []bool{false, true, true, true, true, true}}
	add := func(name string, l queuebench.Latency, calls string) {
		row := []string{name}
		for _, v := range []float64{l.P50, l.P90, l.P99, l.Max} {
			row = append(row, admin.ShortDuration(time.Duration(v*float64(time.Millisecond))))
		}
		times.Rows = append(times.Rows, append(row, calls))
	}
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	add("send", r.Latency.Send, n(r.Calls.Send))
	add("receive", r.Latency.Receive, n(r.Calls.Receive))
	add("delete", r.Latency.Delete, n(r.Calls.Delete))
	add("end to end", r.Latency.EndToEnd, "")
	b.WriteString(times.Text(80) + "\n")
	if r.Counts.Deleted > 0 {
		fmt.Fprintf(&b, "%.3f requests a message (%d receives were empty); $%.2f for a million messages (%s)\n",
			float64(r.Calls.Total())/float64(r.Counts.Deleted), r.Calls.Empty, cost.PerMillion, cost.PriceOf)
	}
	for _, p := range []struct {
		n    int
		text string
	}{
		{r.Counts.Refused, "SQS refused the send of %s\n"},
		{r.Counts.Twice, "%s more came again\n"},
		{r.Counts.OutOfOrder, "%s came out of order in their group\n"},
		{r.Counts.Foreign, "%s of others were received, and left alone\n"},
	} {
		if p.n > 0 {
			fmt.Fprintf(&b, p.text, plural.Of(p.n, "message"))
		}
	}
	codes := slices.SortedFunc(maps.Keys(r.Errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Errors[b], r.Errors[a]), cmp.Compare(a, b))
	})
	for _, code := range codes {
		fmt.Fprintf(&b, "%d × %s\n", r.Errors[code], terminal.Line(code, 100))
	}
	return b.String()
}
