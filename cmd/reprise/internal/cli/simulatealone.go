package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

func (a *app) simulateSchedule() *cobra.Command {
	var messages int
	var failing string
	var report reportFlags
	var takes time.Duration
	var seed uint64
	cmd := &cobra.Command{
		Use:   "schedule POLICY...",
		Short: "Draw the attempts of many messages from a policy alone",
		Long: `Draw the attempts of many messages from a policy, without a queue: when each comes, how
many retries fall together after all messages failed together, and what is known in
closed form. Waits on SQS are rounded up to whole seconds.`,
		Example: `  reprise simulate schedule 'exponential(base=1s,max=1h) attempts=10'
  reprise simulate schedule 'constant(5m) jitter=none' 'constant(5m) jitter=full' -o svg > herd.svg`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	flags.IntVar(&messages, "messages", 10_000, "how many messages are drawn")
	flags.StringVar(&failing, "failing", "100%", "the `share` of attempts that fail")
	flags.DurationVar(&takes, "takes", 0, "how long an attempt takes")
	flags.Uint64Var(&seed, "seed", 0, "selects the messages")
	report.register(flags, "csv", "svg")
	cmd.RunE = run(func(args []string) error {
		fails, err := simreport.ReadShare(failing)
		switch {
		case err != nil:
			return usage(fmt.Errorf("--failing: %w", err))
		case fails == 0:
			return usage(fmt.Errorf("--failing is %s: without failures there is no retry; pass more than 0%%", failing))
		case messages < 1 || messages > simulate.MaxMessages:
			return usage(fmt.Errorf("--messages is %d: pass 1 to %d", messages, simulate.MaxMessages))
		case takes < 0 || takes > retry.MaxVisibility:
			return usage(fmt.Errorf("--takes is %v: pass a time up to %v", takes, retry.MaxVisibility))
		}
		ctx, stop := a.interruptible()
		defer stop()
		var all simreport.Schedules
		var interrupted error
		shown := a.progress()
		for i, arg := range args {
			var p retry.Policy
			if err := p.UnmarshalText([]byte(arg)); err != nil {
				return usage(err)
			}
			s, err := simulate.NewSchedule(ctx, simulate.Alone{Policy: p, Messages: messages, Fails: fails, Takes: takes, Seed: seed, Progress: func(attempt, left int) {
				shown.show(func() string {
					return fmt.Sprintf("drawing %d of %d: attempt %d of %d messages", i+1, len(args), attempt, left)
				})
			}})
			if s == nil {
				return err
			}
			interrupted = err
			text, err := p.WithDefaults().MarshalText()
			if err != nil {
				return err
			}
			all = append(all, simreport.Alone{Policy: string(text), Messages: messages, Forms: simulate.NewForms(p, fails), Schedule: s})
			if interrupted != nil {
				break
			}
		}
		shown.done()
		t := terminal.New(a.stdout.file, os.Getenv)
		if err := a.printAs(&report, func() string { return all.Text(t.Width(), t.Unicode()) }, all.JSON, all.CSV, all.SVG); err != nil {
			return err
		}
		if interrupted != nil {
			return untilThen(interrupted)
		}
		return nil
	})
	return cmd
}

func (a *app) simulateContention() *cobra.Command {
	var clients []int
	var trials int
	var report reportFlags
	var seed uint64
	cmd := &cobra.Command{
		Use:   "contention",
		Short: "Repeat the published experiment that compares jitters",
		Long: `Repeat the experiment of "Exponential Backoff And Jitter" (AWS Architecture Blog) with this
program's policies: clients that begin together write one value with optimistic
concurrency control, and wait after each conflict.`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&clients, "clients", []int{10, 50, 100, 150, 190}, "the `numbers` of clients")
	flags.IntVar(&trials, "trials", 100, "how often each is repeated; the results are means")
	flags.Uint64Var(&seed, "seed", 0, "selects the draws")
	report.register(flags, "csv", "svg")
	cmd.RunE = run(func([]string) error {
		switch {
		case trials < 1 || trials > 1_000_000:
			return usage(fmt.Errorf("--trials is %d: pass 1 to 1000000", trials))
		}
		ctx, stop := a.interruptible()
		defer stop()
		for _, n := range clients {
			if n < 1 || n > 10_000 {
				return usage(fmt.Errorf("--clients has %d: pass 1 to 10000", n))
			}
		}
		shown := a.progress()
		all, err := contend(ctx, simulate.Contention{Trials: trials, Seed: seed}, clients, shown)
		shown.done()
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err := a.printAs(&report, all.Text, all.JSON, all.CSV, all.SVG); err != nil {
			return err
		}
		if err != nil {
			return untilThen(err)
		}
		return nil
	})
	return cmd
}

// contend runs the experiment with each number of clients. If ctx ends, it returns what was found until
// then, with the context's cause.
func contend(ctx context.Context, c simulate.Contention, clients []int, shown *simulationProgress) (all simreport.Contention, err error) {
	for _, c.Clients = range clients {
		row := simreport.Contended{Clients: c.Clients}
		for _, strategy := range simreport.Strategies {
			made := 0
			c.Progress = func(trials int) {
				made = trials
				shown.show(func() string {
					return fmt.Sprintf("%d clients, %s: %d of %d trials", c.Clients, strategy.Name, trials, c.Trials)
				})
			}
			c.Policy = retry.Policy{}
			if err := c.Policy.UnmarshalText([]byte(strategy.Policy)); err != nil {
				return nil, err
			}
			got, err := simulate.Contend(ctx, c)
			if err == nil || made > 0 && ctx.Err() != nil {
				row.Strategies = append(row.Strategies, got)
			}
			if err != nil {
				if len(row.Strategies) > 0 {
					all = append(all, row)
				}
				return all, err
			}
		}
		all = append(all, row)
	}
	return all, nil
}

// printAs prints a report that has no other forms.
func (a *app) printAs(f *reportFlags, text func() string, json, csv func() ([]byte, error), svg func() string) error {
	return a.printReport(f, renderings{
		"table": func() ([]byte, error) { return []byte(text()), nil },
		"json":  json,
		"csv":   csv,
		"svg":   func() ([]byte, error) { return []byte(svg()), nil },
	})
}
