package cli

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/retry"
)

type queuesFlags struct {
	aws    awsFlags
	prefix string
	retry  string
	output outputFlags
}

func (a *app) queues() *cobra.Command {
	var f queuesFlags
	cmd := &cobra.Command{
		Use:   "queues [QUEUE...]",
		Short: "List queues: their messages, their dead-letter queues, problems",
		Long: `List the queues of an account and region, or those that are named: how many messages
are visible, in flight (being handled, or hidden until their retry) and delayed, where
dead letters go, and findings: dead letters that wait, a dead-letter queue that does
not exist, a quota that is nearly used up, and where the policy of --retry conflicts
with the queue's settings. -o json has the findings in full, with their remedies.

The counts are SQS's, which calls them approximate. SQS's API does not tell the age
of the oldest message. No message is touched; sqs:ListQueues and
sqs:GetQueueAttributes are needed.

` + aboutOperatorEndpoint,
		Example: `  reprise queues
  reprise queues --prefix prod-
  reprise queues orders orders-dead -o json | jq .findings`,
		RunE: run(func(args []string) error { return a.runQueues(&f, args) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.prefix, "prefix", "", "only queues whose names begin so")
	flags.StringVar(&f.retry, "retry", "", "retry `policy` of the consumers (default: only findings that hold whatever the policy)")
	f.output.register(flags)
	f.aws.register(flags)
	return cmd
}

func (a *app) runQueues(f *queuesFlags, args []string) error {
	var policy *retry.Policy // nil: the consumers' is not known
	if f.retry != "" {
		policy = new(retry.Policy)
		if err := policy.UnmarshalText([]byte(f.retry)); err != nil {
			return usage(fmt.Errorf("--retry: %w", err))
		}
	}
	if len(args) > 0 && f.prefix != "" {
		return usage(fmt.Errorf("--prefix %q is for a list of all queues: leave it out, or the names", f.prefix))
	}
	ctx, stop := a.interruptible()
	defer stop()
	t, urls, err := f.find(ctx, args)
	if err != nil {
		return err
	}
	refs := make([]operate.Ref, len(urls))
	for i, url := range urls {
		refs[i] = operate.Ref{URL: url, Client: t.client}
	}
	described, err := operate.Describe(ctx, refs)
	if err != nil {
		return err
	}
	for i := range described {
		described[i].Policy = policy
	}
	queues := operate.Queues(described, len(args) == 0 && f.prefix == "")
	if f.output.as() == asText {
		a.printTable(operate.QueuesTable(queues))
		return nil
	}
	for _, q := range queues {
		if err := a.printValue(f.output.as(), q); err != nil {
			return err
		}
	}
	return nil
}

// find returns the URLs of the queues that are named, or of all.
func (f *queuesFlags) find(ctx context.Context, names []string) (t target, urls []string, err error) {
	for _, name := range names {
		if t, err = f.aws.target(ctx, "QUEUE", name); err != nil {
			return t, nil, err
		}
		urls = append(urls, t.url)
	}
	if len(names) > 0 {
		return t, urls, nil
	}
	if t.found, err = awsclient.Find(ctx, f.aws.endpoint, f.aws.region, ""); err != nil {
		return t, nil, accessError(ctx, err, "the list", "", t.found)
	}
	t.client = t.found.Client
	pages := sqs.NewListQueuesPaginator(t.client, &sqs.ListQueuesInput{QueueNamePrefix: &f.prefix, MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return t, nil, t.failed(ctx, err, "ListQueues")
		}
		urls = append(urls, page.QueueUrls...)
	}
	return t, urls, nil
}
