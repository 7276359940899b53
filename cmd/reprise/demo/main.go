// Command demo shows the main job at work: it is the reprise program's command demo,
// without the rest of that program, which takes several times as long to compile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/demo"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code, as the reprise program's demo has it.
func run(args []string) int {
	var cfg demo.Config
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	cfg.Flags(flags)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "%s\n\nFlags:\n", demo.About)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2 // it has been printed
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unknown argument %q: see --help\n", flags.Arg(0))
		return 2
	}
	ctx, drain, release := interrupt.Notify(context.Background(), interrupt.Config{Say: func() { fmt.Fprintln(os.Stderr, "\ndemo: "+interrupt.Text) }})
	defer release()
	err := demo.Show(ctx, drain, cfg, os.Stdout)
	if err == nil {
		return 0
	}
	if stopped, ok := errors.AsType[interrupt.Error](err); ok {
		fmt.Fprintln(os.Stderr, "demo: stopped at once")
		return stopped.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "demo: %v\n", err)
	switch {
	case errors.Is(err, demo.ErrUsage):
		return 2
	case errors.Is(err, demo.ErrBroken), errors.Is(err, demo.ErrUnfinished):
		return 3
	}
	return 1
}
