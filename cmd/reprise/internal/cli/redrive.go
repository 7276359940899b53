package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
)

type redriveFlags struct {
	to      string
	most    int
	dryRun  bool
	aws     awsFlags
	signing signingFlags
}

func (a *app) redrive() *cobra.Command {
	var f redriveFlags
	cmd := &cobra.Command{
		Use:   "redrive QUEUE",
		Short: "Send dead letters back to where they came from",
		Long: `Send each dead letter of QUEUE, a name or URL, back to the queue that it came
from: the one that SQS says it has moved it from or, of a letter that was sent to
QUEUE, as reprise sends them, the one that its story names. The story is an
attribute that any sender can write: it leads only to queues of the same account
and region whose dead-letter queue is QUEUE, by their RedrivePolicy, or to any
queue of theirs if one of the keys of --signing-key-file has signed it. For other
letters name the queue with --to. --dry-run shows what would go where.

A letter begins anew, without its story and its history, and keeps its body, its
other attributes and its group; a retry handler's names its function still, which
is invoked with it. It is deleted only after SQS has confirmed what was sent for
it: a crash in between leaves both, of which a FIFO queue drops the second for
five minutes. None is dropped. What has no known source, is not taken, or came
after the start stays in QUEUE, is counted, and makes the exit code 3. On a FIFO
queue those of its group behind it stay too, and a dry run sees the first of each
group, ten at most.

The end of QUEUE is what SQS says: three long polls in a row that find nothing.
What others are looking at is hidden, and so are for 15 minutes letters that a
killed run was working on. A look, --dry-run too, counts as a receive.

` + aboutEndpoint,
		Example: `  reprise redrive orders-dead --dry-run
  reprise redrive orders-dead --max 10
  reprise redrive https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dead --to orders`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runRedrive(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "`name or URL` of the queue that takes all letters (default each goes to its source)")
	flags.IntVar(&f.most, "max", 0, "send back so many at most (default all)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "look, and say what would be sent where")
	f.aws.register(flags)
	f.signing.register(flags)
	return cmd
}

func (a *app) runRedrive(f *redriveFlags, queue string) error {
	if f.most < 0 {
		return usage(fmt.Errorf("--max is %d: pass 1 or more, or leave it out for all", f.most))
	}
	logger := a.logger()
	keys, err := f.signing.keys(logger)
	if err != nil {
		return err
	}
	endpoint := f.aws.queueEndpoint(queue)
	client, err := awsclient.New(a.ctx, endpoint, f.aws.region)
	if err != nil {
		return err
	}
	r := redrive.Redrive{Client: client, Max: f.most, DryRun: f.dryRun, Logger: logger, Keys: keys}
	if r.QueueURL, err = resolveQueue(a.ctx, client, queue, endpoint); err != nil {
		return err
	}
	if f.to != "" {
		if r.To, err = resolveQueue(a.ctx, client, f.to, endpoint); err != nil {
			return err
		}
	}
	report, err := r.Run(a.ctx, a.drain)
	left := a.printRedrive(&r, report, err == nil)
	switch {
	case err != nil:
		return queueError(a.ctx, err, "redriving", queue, endpoint)
	case report.Stopped:
		return unsettled(errors.New("stopped: whatever else is in the queue is there still; run it again"))
	case left > 0:
		return unsettled(fmt.Errorf("left in the queue: %s", plural.Of(left, "dead letter")))
	}
	return nil
}

// printRedrive says what became of the letters, and returns how many were left. Where
// there were none it says so, if that is known.
func (a *app) printRedrive(r *redrive.Redrive, report redrive.Report, whole bool) (left int) {
	verb := "sent back"
	if r.DryRun {
		verb = "would be sent back"
	}
	for _, url := range slices.Sorted(maps.Keys(report.Sent)) {
		fmt.Fprintf(a.stdout, "%d %s to %s\n", report.Sent[url], verb, url)
	}
	for _, why := range slices.Sorted(maps.Keys(report.Left)) {
		left += report.Left[why]
		fmt.Fprintf(a.stdout, "%d left in %s: dead letters that %s\n", report.Left[why], r.QueueURL, why)
	}
	if whole && len(report.Sent)+len(report.Left) == 0 {
		fmt.Fprintf(a.stdout, "0 %s from %s\n", verb, r.QueueURL)
	}
	return left
}
