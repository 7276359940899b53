package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/demo"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

const maxDemoMessages = 100_000

func (a *app) demo() *cobra.Command {
	cfg := demo.Config{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job at work: a queue, a flaky service, nothing lost",
		Long: `Start an SQS server and a small HTTP service that misbehaves: an outage of some
seconds, 429s with Retry-After, slow replies, answers that never come, messages
that it will never accept. Send it real-looking webhooks through a queue, and
compare at the end what the consumer says with the service's own books.

Takes about 20 seconds, needs no disk and no network beyond this machine. The
first Ctrl-C drains and reports, the second stops. Exit code 3 says that a
promise was broken, or that the time was up.`,
		Example: `  reprise demo
  reprise demo --messages 2000 --seed 7
  reprise demo --keep`,
		Args: cobra.NoArgs,
		RunE: run(func([]string) error { return a.runDemo(cfg) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&cfg.Messages, "messages", 320, "how many messages to send; the examples are used again and again")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "repeats the order of the messages, the service's moods and the jitter")
	flags.BoolVar(&cfg.Keep, "keep", false, "leave everything running after the report, and say how to look at it")
	flags.StringVar(&cfg.Addr, "addr", "127.0.0.1:0", "`host:port` of the SQS server; port 0 takes any free one")
	return cmd
}

func (a *app) runDemo(cfg demo.Config) error {
	if cfg.Messages < 1 || cfg.Messages > maxDemoMessages {
		return usage(fmt.Errorf("--messages is %d: pass 1 to %d", cfg.Messages, maxDemoMessages))
	}
	cfg.Out = terminal.New(a.stdout, os.Getenv)
	cfg.Logger = slog.New(slog.NewTextHandler(lineWriter{cfg.Out}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	err := demo.Run(a.ctx, a.drain, cfg)
	if errors.Is(err, demo.ErrBroken) || errors.Is(err, demo.ErrUnfinished) {
		return unsettled(err)
	}
	return err
}

// lineWriter prints what a logger writes without disturbing the live line.
type lineWriter struct{ out *terminal.Terminal }

var _ io.Writer = lineWriter{}

func (w lineWriter) Write(p []byte) (int, error) {
	w.out.Printf("%s", p[:len(p)-1])
	return len(p), nil
}
