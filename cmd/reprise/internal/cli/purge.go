package cli

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

type purgeFlags struct {
	aws         awsFlags
	yes, dryRun bool
	output      outputFlags
}

func (a *app) purge() *cobra.Command {
	var f purgeFlags
	cmd := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Delete all messages of a queue, after asking",
		Long: `Delete all messages of QUEUE, a name or URL: those that are visible, in flight and
delayed. They are gone for good. The command shows how many there are, and asks; without
a terminal to ask on, pass --dry-run to see how many there are, then --yes.

SQS purges a queue once in 60 seconds at most, and may take 60 seconds for it; messages
that are sent meanwhile may be deleted too. To delete some, use reprise dead delete.

` + aboutOperatorEndpoint,
		Example: `  reprise purge orders-dead --dry-run
  reprise purge orders-dead --yes`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runPurge(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, aboutYes)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show how many messages there are")
	f.aws.register(flags)
	f.output.register(flags)
	return cmd
}

func (a *app) runPurge(f *purgeFlags, queue string) error {
	ctx, stop := a.interruptible()
	defer stop()
	t, err := f.aws.target(ctx, "QUEUE", queue)
	if err != nil {
		return err
	}
	attributes, err := t.attributes(ctx, t.url)
	if err != nil {
		return t.failed(ctx, err, "GetQueueAttributes")
	}
	q := operate.Queues([]operate.Described{{URL: t.url, Attributes: attributes}}, false)[0]
	counts := fmt.Sprintf("%d visible, %d in flight, %d delayed", q.Visible, q.InFlight, q.Delayed)
	if f.dryRun {
		return a.printPurge(f, &q, "%s: %s would be deleted\n", counts)
	}
	unasked := usage(fmt.Errorf("%s: %s would be deleted, and there is no terminal to confirm that on: pass --yes to delete them", t.url, counts))
	if err := a.confirm(f.yes, fmt.Sprintf("Delete all messages of %s for good (%s)?", t.url, counts), "nothing was deleted", unasked); err != nil {
		return err
	}
	_, err = t.client.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &t.url})
	if _, busy := errors.AsType[*types.PurgeQueueInProgress](err); busy {
		return fmt.Errorf("queue %q was purged less than 60 seconds ago: messages sent since then are still there, so purge it again in a minute", queue)
	}
	if err != nil {
		return t.failed(ctx, err, "PurgeQueue")
	}
	return a.printPurge(f, &q, "%s: purged (%s)\n", counts)
}

// printPurge prints what was deleted, or would be: text says it in words.
func (a *app) printPurge(f *purgeFlags, q *operate.Queue, text, counts string) error {
	if as := f.output.as(); as != asText {
		return a.printValue(as, struct {
			Queue    string `json:"queue"`
			DryRun   bool   `json:"dry_run,omitempty"`
			Visible  int    `json:"visible"`
			InFlight int    `json:"in_flight"`
			Delayed  int    `json:"delayed"`
		}{q.URL, f.dryRun, q.Visible, q.InFlight, q.Delayed})
	}
	fmt.Fprintf(a.stdout, text, q.URL, counts)
	return nil
}
