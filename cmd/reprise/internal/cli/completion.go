package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// completesWithin is how long a shell waits for names of queues after the Tab key.
const completesWithin = 2 * time.Second

// completeQueues has shells complete names of queues: where the usage of cmd, or of a command below it, has QUEUE,
// FROM or TO, and for --queue where it names a queue that exists.
func (a *app) completeQueues(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completeQueues(sub)
	}
	if cmd.Flag("endpoint") != nil && cmd.Flag("queue") != nil {
		// It fails only for a flag that does not exist, or the second time.
		_ = cmd.RegisterFlagCompletionFunc("queue", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return a.queueNames(cmd, begun, nil), cobra.ShellCompDirectiveNoFileComp
		})
	}
	places, more := queuePlaces(cmd.Use)
	if len(places) == 0 {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		directive := cobra.ShellCompDirectiveNoFileComp
		if strings.Contains(cmd.Use, "FILE") {
			directive = cobra.ShellCompDirectiveDefault
		}
		last := places[len(places)-1]
		if !slices.Contains(places, len(args)) && (!more || len(args) < last) {
			return nil, directive
		}
		return a.queueNames(cmd, begun, args), directive
	}
}

// queuePlaces returns which arguments of a command are queues, by the words of its usage, and whether more may follow.
func queuePlaces(usage string) (places []int, more bool) {
	at := 0
	for _, word := range strings.Fields(usage)[1:] {
		name := strings.Trim(word, "[](.)")
		if name == "|" || strings.HasPrefix(name, "-") || name == "flags" {
			continue
		}
		if first, _, _ := strings.Cut(name, "|"); first == "QUEUE" || first == "FROM" || first == "TO" {
			places, more = append(places, at), strings.Contains(word, "...")
		}
		at++
	}
	return places, more
}

// queueNames returns the names of queues that begin as begun and are not among those that were given: for a command
// that calls a running process its queues, else those of SQS. What cannot be asked has none.
func (a *app) queueNames(cmd *cobra.Command, begun string, given []string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
	defer cancel()
	ask := a.processQueues
	if cmd.Flag("endpoint") != nil {
		ask = sqsQueues
	}
	names := ask(ctx, cmd, begun)
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, begun) || slices.Contains(given, name)
	})
}

// sqsQueues returns the names of the first thousand queues of the endpoint that begin as begun.
func sqsQueues(ctx context.Context, cmd *cobra.Command, begun string) (names []string) {
	f := awsFlags{endpoint: cmd.Flag("endpoint").Value.String()}
	if region := cmd.Flag("region"); region != nil {
		f.region = region.Value.String()
	}
	if cmd.Name() == "send" { // its endpoint is a server on this machine, if nothing else is set
		f.endpoint = f.queueEndpoint("").URL
	}
	found, err := awsclient.Find(ctx, f.endpoint, f.region, "")
	if err != nil {
		return nil
	}
	page, err := found.Client.ListQueues(ctx, &sqs.ListQueuesInput{QueueNamePrefix: &begun, MaxResults: aws.Int32(1000)})
	if err != nil {
		return nil
	}
	for _, url := range page.QueueUrls {
		names = append(names, operate.NameOf(url))
	}
	return names
}

// processQueues returns the names of the queues that a running process consumes.
func (a *app) processQueues(ctx context.Context, cmd *cobra.Command, _ string) (names []string) {
	var f controlFlags
	for flag, value := range map[string]*string{"admin": &f.address, "admin-token": &f.token} {
		if set := cmd.Flag(flag); set != nil {
			*value = cmp.Or(set.Value.String(), *value)
		}
	}
	client, err := f.client(ctx, a)
	if err != nil {
		return nil
	}
	consumers, err := client.Consumers(ctx)
	if err != nil {
		return nil
	}
	for _, c := range consumers {
		names = append(names, c.Queue)
	}
	return names
}
