package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// About is the command's help.
const About = `Start an SQS server and a small HTTP service that misbehaves: an outage of some
seconds, 429s with Retry-After, slow replies, answers that never come, messages
that it will never accept. Send it real-looking webhooks through a queue, and
compare the consumer's records with the service's own at the end.

Takes about half a minute, needs no disk and no network beyond this machine. The
first Ctrl-C drains and reports, the second stops. Exit code 3 means that a
promise was broken, or that the time was up.`

const maxMessages = 100_000

// Flags adds the command's flags, which set cfg.
func (cfg *Config) Flags(flags *flag.FlagSet) {
	flags.IntVar(&cfg.Messages, "messages", 320, "how many messages to send; the examples are used again and again")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "repeats the order of the messages, the service's failures and the jitter")
	flags.BoolVar(&cfg.Keep, "keep", false, "leave everything running after the report, and print how to look at it")
}

// ErrUsage is wrapped by errors of [Show] about flags.
var ErrUsage = errors.New("see --help")

// Show is the command: [Run] with the settings of the flags, for the terminal or file that stdout
// is.
func Show(ctx context.Context, drain <-chan struct{}, cfg Config, stdout *os.File) error {
	if cfg.Messages < 1 || cfg.Messages > maxMessages {
		return fmt.Errorf("--messages is %d: pass 1 to %d: %w", cfg.Messages, maxMessages, ErrUsage)
	}
	cfg.Out = terminal.New(stdout, os.Getenv)
	// The demo prints the outage and the dead letters itself, so warnings are left out.
	cfg.Logger = slog.New(slog.NewTextHandler(lineWriter{cfg.Out}, &slog.HandlerOptions{Level: slog.LevelError}))
	return Run(ctx, drain, cfg)
}

// lineWriter prints what a logger writes without disturbing the live line.
type lineWriter struct{ out *terminal.Terminal }

var _ io.Writer = lineWriter{}

func (w lineWriter) Write(p []byte) (int, error) {
	w.out.Printf("%s", p[:len(p)-1])
	return len(p), nil
}
