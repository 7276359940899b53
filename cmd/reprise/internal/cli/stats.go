package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

func (a *app) stats() *cobra.Command {
	var f controlFlags
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what a running process has done since its start: attempts, times, costs",
		Long: `Show the queues and consumers of a running process as reprise top does, once, and what it has
done: attempts, those that failed, what followed, how long handlers took (half, 90 % and
99 % of them; an eighth too long at most), requests to SQS, and what they are estimated
to have cost. Attempts count since the process began; all else since the consumer began,
which it does anew when its settings change.

` + aboutControl,
		Example: `  reprise stats
  reprise stats -o json | jq '.consumers[] | {queue: .consumer.queue, attempts, cost}'`,
	}
	cmd.Args = cobra.NoArgs
	cmd.RunE = run(func([]string) error { return a.runStats(&f) })
	f.register(cmd)
	return cmd
}

func (a *app) runStats(f *controlFlags) error {
	ctx, stop := a.interruptible()
	defer stop()
	client, err := f.client(ctx, a)
	if err != nil {
		return err
	}
	s, err := client.Stats(ctx)
	if err != nil {
		return err
	}
	if as := f.output.as(); as != asText {
		return a.printValue(as, &s)
	}
	if s.Problem != "" {
		fmt.Fprintf(a.stderr, "reprise: the queues are not known: %s\n", apiText(s.Problem))
	}
	fmt.Fprint(a.stdout, admin.RowsText(admin.Rows(&s, nil), a.width()))
	if len(s.Consumers) > 0 {
		fmt.Fprintf(a.stdout, "\nin the last %s:\n%s", operate.Ago(s.At.Sub(s.Since)), admin.StatsText(s.Consumers, a.width()))
	}
	return nil
}
