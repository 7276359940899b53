package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
)

type redriveFlags struct {
	to        string
	most      int
	rate      float64
	dryRun    bool
	task      bool
	anyQueue  bool
	selection selectionFlags
	rewrite   rewriteFlags
	aws       awsFlags
	signing   delivery.Signing
	job       jobFlags
	output    outputFlags
}

func (a *app) redrive() *cobra.Command {
	var f redriveFlags
	cmd := &cobra.Command{
		Use:   "redrive QUEUE",
		Short: "Send dead letters back to where they came from",
		Long: `Send each dead letter of QUEUE, a name or URL, back to the queue that it came
from. If SQS moved the letter, SQS names that queue; if a consumer sent it, as
reprise does, the letter's story names it. Any sender can write a story, so it
leads only to queues of the same account and region whose RedrivePolicy names QUEUE
as their dead-letter queue; one that is signed with a key of --signing-key-file
leads to any queue of that account and region. For other letters name the queue
with --to. --dry-run shows which letters would go where. By default all letters go back.

` + aboutSelection + `

Messages of a queue that no other names as its dead-letter queue may be alive: it is
refused, unless --any-queue or --signing-key-file is given.

A letter begins anew: without its story and its history, but with its body, its
other attributes and its group. One of a retry handler still names its function,
which is invoked with it. Letters that have no known source, that their queue refuses,
or that arrive after the start stay in QUEUE, are counted, and make the exit code 3. On
a FIFO queue the letters of their group behind them stay too.

` + aboutRewrite + `

` + aboutByServer + `

A letter is deleted only after SQS has confirmed the
message that was sent for it: a crash in between leaves both, and for five minutes
a FIFO queue drops the second. No letter is lost.

Up to 16 batches of ten go at once; of a FIFO queue, or to one, one at a time, so that
each group keeps its order. So a kill can leave both of up to 160 letters. --rate and
--limit hold for all batches together: at no time more letters have gone than --rate has
permitted since the start.

QUEUE counts as empty when three long polls in a row find nothing. Letters that
others have received are hidden, and so are, for 15 minutes, those that a killed run
was working on. Every look at a letter, also by --dry-run, counts as a receive. Letters that
stay, because they are not selected or it is a dry run, are hidden until the end, and a queue
may have 120,000 messages in flight: if 100,000 have to be held, if too many are in flight
already, if a dry run takes seven and a half minutes, or if a FIFO queue has letters behind
ten of their group that stay, the command ends with the exit code 3, since there may be more.

` + aboutJob + `

` + aboutEndpoint,
		Example: `  reprise redrive orders-dead --dry-run
  reprise redrive orders-dead --reason attempts --error '503' --newer-than 24h --rate 50
  reprise redrive orders-dead --limit 10
  reprise redrive orders-dead --error currency --find '"EUK"' --replace '"EUR"' --dry-run
  reprise redrive https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dead --to orders`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runRedrive(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "`name or URL` of the queue for all letters (default: each goes to its source)")
	flags.IntVar(&f.most, "limit", 0, "send back at most so many (default all)")
	rename(flags, "max", "limit")
	flags.Float64Var(&f.rate, "rate", 0, "send back at most so many a second (default: as fast as SQS takes them)")
	flags.BoolVar(&f.task, "task", false, "have SQS itself move all letters (StartMessageMoveTask); only those that it has moved to QUEUE itself have a source, for others pass --to")
	flags.BoolVar(&f.anyQueue, "any-queue", false, "redrive although no queue names QUEUE as its dead-letter queue")
	f.selection.register(flags)
	f.rewrite.register(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show which letters would be sent where")
	f.aws.register(flags)
	f.signing.Register(flags)
	f.job.register(flags)
	f.output.register(flags)
	return cmd
}

func (a *app) runRedrive(f *redriveFlags, queue string) error {
	if f.most < 0 {
		return usage(fmt.Errorf("--limit is %d: pass 1 or more, or leave it out for all", f.most))
	}
	if !(f.rate >= 0 && f.rate < 1e6) {
		return usage(fmt.Errorf("--rate is %g: pass how many letters a second, or leave it out", f.rate))
	}
	if _, err := queueName("QUEUE", queue); err != nil {
		return usage(err)
	}
	selection, err := f.selection.selection()
	if err != nil {
		return usage(err)
	}
	rewrite, err := f.rewrite.rewrite()
	if err != nil {
		return usage(err)
	}
	edits := !rewrite.IsZero()
	if f.task {
		if edits {
			return usage(errTaskEdits)
		}
		if err := f.checkTask(); err != nil {
			return usage(err)
		}
	}
	words := verbs{"dead letter", "sent back", "would be sent back", f.output.as()}
	if f.job.job {
		if f.task {
			return usage(errors.New("--task has SQS move the letters, and --job a process: use one of them"))
		}
		return a.runJob(&f.job, f.aws, &f.selection, admin.JobRequest{
			Action: admin.JobRedrive, Queue: queue, To: f.to, Limit: f.most, Rate: f.rate, DryRun: f.dryRun, AnyQueue: f.anyQueue, Force: true, Edit: rewrite,
		}, words)
	}
	logger := a.logger()
	keys, err := f.signing.Keys(&a.secrets, logger)
	if err != nil {
		return err
	}
	endpoint := f.aws.queueEndpoint(queue)
	client, err := awsclient.New(a.ctx, endpoint, f.aws.region)
	if err != nil {
		return err
	}
	r := redrive.Redrive{Client: client, Max: f.most, DryRun: f.dryRun, Rate: f.rate, Logger: logger, Keys: keys}
	if r.QueueURL, err = resolveQueue(a.ctx, client, queue, endpoint); err != nil {
		return err
	}
	if f.to != "" {
		if r.To, err = resolveQueue(a.ctx, client, f.to, endpoint); err != nil {
			return err
		}
	}
	if f.task {
		if err := a.runMoveTask(client, r.QueueURL, r.To, f.rate, words.as); err != nil {
			if _, done := errors.AsType[*failure](err); done {
				return err
			}
			return queueError(a.ctx, err, "redriving", queue, endpoint)
		}
		return nil
	}
	if !f.anyQueue && len(keys) == 0 { // a consumer may dead-letter to a queue that no other names
		if err := a.requireDeadLetterQueue(client, queue, r.QueueURL); err != nil {
			return err
		}
	}
	if len(keys) == 0 { // the server does not know them
		done, err := a.redriveByServer(serverQueues{client, endpoint.URL, r.QueueURL, r.To}, admin.JobRequest{
			Action: admin.JobRedrive, Limit: f.most, Rate: f.rate, DryRun: f.dryRun, AnyQueue: true, Edit: rewrite, Force: edits,
		}, &f.selection, words)
		if done || err != nil {
			return err
		}
	}
	choose(&r, selection)
	var changes *editing
	if edits {
		if changes, err = edit(&r, rewrite); err != nil {
			return usage(err)
		}
	}
	report, err := a.sendBack(&r, words)
	if edits {
		changes.finish(a, &report, words.as)
	}
	left := a.printRedrive(&r, report, err == nil, words)
	if err != nil {
		return queueError(a.ctx, err, "redriving", queue, endpoint)
	}
	return sentOutcome(&report, left, words)
}

// sentOutcome returns an error if not all messages are where they should be, or may not be: those that were left, and
// those that the pass may not have seen.
func sentOutcome(report *redrive.Report, left int, words verbs) error {
	var problems []error
	if report.Stopped {
		problems = append(problems, fmt.Errorf("stopped: the remaining %ss are still in the queue; run it again to continue", words.noun))
	} else if left > 0 {
		problems = append(problems, fmt.Errorf("left in the queue: %s", plural.Of(left, words.noun)))
	}
	if report.Partial != "" {
		problems = append(problems, errors.New("there may be more: "+report.Partial))
	}
	if len(problems) == 0 {
		return nil
	}
	return unsettled(errors.Join(problems...))
}

// sentBack is what happened to messages, for programs.
type sentBack struct {
	Queue  string         `json:"queue"`
	DryRun bool           `json:"dry_run,omitempty"` // Sent is what would be sent
	Sent   map[string]int `json:"sent"`              // by the URL of the queue that they were sent to
	Left   map[string]int `json:"left"`              // by why they were left
}

// printRedrive prints what happened to the letters, and returns how many were left. whole
// means that the pass ended without an error, so that an empty queue can be reported.
func (a *app) printRedrive(r *redrive.Redrive, report redrive.Report, whole bool, words verbs) (left int) {
	if words.as != asText {
		sent := sentBack{Queue: r.QueueURL, DryRun: r.DryRun, Sent: report.Sent, Left: make(map[string]int)}
		for why, n := range report.Left {
			sent.Left[why] = n
			left += n
		}
		_ = a.printValue(words.as, sent) // as for text, it is no failure of the redrive that nobody reads it
		return left
	}
	verb := words.done
	if r.DryRun {
		verb = words.would
	}
	for _, url := range slices.Sorted(maps.Keys(report.Sent)) {
		fmt.Fprintf(a.stdout, "%d %s to %s\n", report.Sent[url], verb, url)
	}
	for _, why := range slices.Sorted(maps.Keys(report.Left)) {
		left += report.Left[why]
		fmt.Fprintf(a.stdout, "%d left in %s: %ss that %s\n", report.Left[why], r.QueueURL, words.noun, why)
	}
	if whole && len(report.Sent)+len(report.Left) == 0 {
		fmt.Fprintf(a.stdout, "0 %s from %s\n", verb, r.QueueURL)
	}
	return left
}
