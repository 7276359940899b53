// Package cli is the program's commands: their flags, what they print, and how
// they exit.
package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// exitUnsettled: the command did its work, and not all messages are where they
	// should be.
	exitUnsettled = 3
	// exitStorage: the data directory cannot be used, is damaged, or its disk failed.
	exitStorage = 4
	// exitAccess: the AWS settings or permissions do not lead to the queue.
	exitAccess = 5
)

const about = `Reprise works off SQS queues whose work sometimes fails.

Exit codes:
  0    done
  1    something failed; the message says what, and what to do
  2    the command line cannot be understood
  3    done, but not all messages are where they should be: send could not
       send them, redrive left some, up or run could not settle them in time,
       lambda up lost events, lambda invoke's function failed, demo found a promise broken
  4    the data directory cannot be used or is damaged, or its disk failed: the
       message says what to do, and to start again without doing it is no use
  5    the AWS settings or permissions do not lead to the queue that run is to
       consume: the message says what to set
  130  stopped at once by a second Ctrl-C (143: by a second SIGTERM)

The first Ctrl-C stops gently: what is running is finished and settled.`

// app is what the commands share.
type app struct {
	stdin          *os.File
	stdout, stderr stream
	json           atomic.Pointer[slog.Logger] // the log if it is JSON; else nil
	ctx            context.Context             // ends when everything has to stop at once
	drain          <-chan struct{}             // closed when it is time to stop gently
}

// Run runs the program with the arguments after its name, and returns its exit
// code.
func Run(args []string, stdin, stdout, stderr *os.File) int {
	a := &app{stdin: stdin, stdout: newStream(stdout), stderr: newStream(stderr)}
	ctx, drain, release := interrupt.Notify(context.Background(), a.stopping)
	defer release()
	a.ctx, a.drain = ctx, drain

	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if n := children.KillAll(); n > 0 {
		a.say(slog.LevelWarn, fmt.Sprintf("killed %s that commands had left behind", plural.Of(n, "program")))
	}
	if err == nil {
		return exitOK
	}
	if signalled, ok := errors.AsType[interrupt.Error](err); ok {
		a.say(slog.LevelError, "stopped at once")
		return signalled.ExitCode()
	}
	a.say(slog.LevelError, terminal.Shorten(err.Error(), maxLogged))
	failed, ok := errors.AsType[*failure](err)
	if !ok {
		// Cobra did not get as far as running a command.
		fmt.Fprintf(a.stderr, "See '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	}
	return failed.code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "reprise",
		Short:         "Work off SQS queues with sound retries",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(), // by which there is --version
	}
	root.SetVersionTemplate(versionLine())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.demo(), a.serve(), a.up(), a.run(), a.send("reprise"), a.redrive(), a.lambda(), a.backup(), a.check(), a.version())
	return root
}

// failure is the error of a command that was understood.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage marks err as a mistake in the command line that only the command could
// find.
func usage(err error) error { return &failure{exitUsage, err} }

// unsettled marks err as one about messages, after work that was done.
func unsettled(err error) error { return &failure{exitUnsettled, err} }

// run makes f the action of a command. Its errors exit with 1 unless they say
// otherwise.
func run(f func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		err := f(args)
		if err == nil {
			return nil
		}
		if failed, ok := errors.AsType[*failure](err); ok {
			return failed
		}
		if _, ok := errors.AsType[*daemon.StorageError](err); ok {
			return &failure{exitStorage, err}
		}
		return &failure{exitFailure, err}
	}
}

// logger writes what an operator must know.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{ReplaceAttr: bounded}))
}
