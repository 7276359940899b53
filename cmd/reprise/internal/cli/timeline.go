package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

// timelineFlags are those of timeline.
type timelineFlags struct {
	control controlFlags
	since   time.Duration
	limit   int
}

func (a *app) timeline() *cobra.Command {
	var f timelineFlags
	cmd := &cobra.Command{
		Use:   "timeline [QUEUE]",
		Short: "Show what happened in a running process since it began",
		Long: `Show what happened in a running process since it began, or what happened to a queue, the
newest last: circuit breakers that opened and closed, actions of operators, jobs, problems
that began and ended, the first dead letter for a while. The process keeps at most 1,000
entries in memory, and 50 of one kind about one queue; its log has more.

` + aboutControl,
		Example: `  reprise timeline
  reprise timeline orders --since 8h`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = run(func(queues []string) error { return a.runTimeline(&f, queues) })
	f.control.register(cmd)
	cmd.Flags().DurationVar(&f.since, "since", 0, "only what happened within this `time`, such as 8h (default: all)")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "how many `entries` at most, the newest")
	return cmd
}

func (a *app) runTimeline(f *timelineFlags, queues []string) error {
	switch {
	case f.since < 0:
		return usage(fmt.Errorf("--since is %s: pass how long ago, such as 8h", f.since))
	case f.limit < 1:
		return usage(fmt.Errorf("--limit is %d: pass 1 or more", f.limit))
	}
	ctx, stop := a.interruptible()
	defer stop()
	client, err := f.control.client(ctx, a)
	if err != nil {
		return err
	}
	q := admin.TimelineQuery{Limit: f.limit}
	if len(queues) > 0 {
		q.Queue = queues[0]
	}
	if f.since > 0 {
		q.Since = time.Now().Add(-f.since)
	}
	found, err := client.Timeline(ctx, q)
	if err != nil {
		return err
	}
	if left := int64(found.More) + found.Forgotten; left > 0 {
		fmt.Fprintf(a.stderr, "reprise: %s before these: %d that --limit leaves out, %d that the process dropped\n", plural.Of(left, "entry"), found.More, found.Forgotten)
	}
	for _, e := range slices.Backward(found.Entries) {
		if as := f.control.output.as(); as != asText {
			if err := a.printValue(as, e); err != nil {
				return err
			}
			continue
		}
		queue := ""
		if e.Queue != "" {
			queue = apiText(e.Queue) + ": "
		}
		fmt.Fprintf(a.stdout, "%s  %s%s\n", e.At.Format(time.RFC3339), queue, apiText(e.Text))
	}
	if len(found.Entries) == 0 {
		fmt.Fprintf(a.stderr, "reprise: nothing happened since the process began, %s\n", found.Since.Format(time.RFC3339))
	}
	return nil
}
