package cli

import (
	"errors"
	"flag"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/demo"
)

func (a *app) demo() *cobra.Command {
	var cfg demo.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the program at work: a queue, a flaky service, nothing lost",
		Long:  demo.About,
		Example: `  reprise demo
  reprise demo --messages 2000 --seed 7
  reprise demo --keep`,
		Args: cobra.NoArgs,
		RunE: run(func([]string) error {
			err := demo.Show(a.ctx, a.drain, cfg, a.stdout.file)
			switch {
			case errors.Is(err, demo.ErrUsage):
				return usage(err)
			case errors.Is(err, demo.ErrBroken), errors.Is(err, demo.ErrUnfinished):
				return unsettled(err)
			}
			return err
		}),
	}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	cfg.Flags(flags)
	cmd.Flags().AddGoFlagSet(flags)
	return cmd
}
