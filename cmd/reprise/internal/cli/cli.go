// Package cli has the program's commands: their flags, output and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// exitUnsettled: the command has ended as it should, but not all messages are where
	// they should be.
	exitUnsettled = 3
	// exitStorage: the data directory cannot be used, is damaged, or its disk failed.
	exitStorage = 4
	// exitAccess: the queue does not exist, or the AWS settings or permissions do not lead to it.
	exitAccess = 5
)

const about = `Reprise consumes SQS queues whose work sometimes fails.

Exit codes:
  0    done
  1    something failed, plan found an error, or simulate did not find what
       --find looks for; the message says what, and what to do
  2    the command line cannot be understood
  3    done, but not all messages are where they should be: send could not
       send them, redrive or move left some, a job was cancelled or goes on
       without the command, search, dead or trace could not look at all, bench
       left messages of its own, up or run could not settle all in time, lambda
       up lost events, lambda invoke's function failed, demo found a promise
       broken
  4    the data directory cannot be used or is damaged, or its disk failed: the
       message says what to do; restarting does not help until that is done
  5    a queue does not exist, or cannot be reached with these AWS settings and
       permissions, or the process at --admin does not have it: the message says
       what to set
  130  stopped at once by a second Ctrl-C (143: by a second SIGTERM)

The first Ctrl-C stops gracefully: running work is finished and settled.`

// app has the inputs, outputs and signals that the commands share.
type app struct {
	stdin          *os.File
	stdout, stderr stream
	json           atomic.Pointer[slog.Logger]     // the log if it is JSON, else nil
	secrets        delivery.Secrets                // of the environment
	once           delivery.Stores                 // of work that is done
	ctx            context.Context                 // ends when everything must stop at once
	drain          <-chan struct{}                 // closed when it is time to stop gracefully
	screen         atomic.Pointer[terminal.Screen] // that is open, else nil
}

// Run runs the program with the arguments after its name, and returns its exit
// code.
func Run(args []string, stdin, stdout, stderr *os.File) int {
	a := &app{stdin: stdin, stdout: newStream(stdout), stderr: newStream(stderr)}
	ctx, drain, release := interrupt.Notify(context.Background(), interrupt.Config{Say: a.stopping, Last: a.lastAct})
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

// Commands returns the tree of commands, for manual pages and completions. Its commands
// cannot be run: see Run.
func Commands() *cobra.Command { return new(app).root() }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "reprise",
		Short:         "Consume SQS queues, with sound retries",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(), // cobra adds --version
	}
	root.SetVersionTemplate(versionLine())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.demo(), a.serve(), a.up(), a.run(), a.send("reprise"), a.redrive(), a.lambda(), a.backup(), a.check(), a.health(), a.version())
	root.AddCommand(a.plan(), a.queues(), a.peek(), a.search(), a.dead(), a.move(), a.purge(), a.trace(), a.benchCommand())
	root.AddCommand(a.top(), a.stats(), a.timeline(), a.jobs(), a.consumers(), a.tail(), a.concurrency(), a.rate())
	root.AddCommand(a.keyActions()...)
	root.AddCommand(a.configCommand())
	root.AddCommand(a.simulate())
	return root
}

// failure is the error of a command whose command line was understood, with its exit
// code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage marks err as a mistake in the command line that cobra could not find.
func usage(err error) error { return &failure{exitUsage, err} }

// unsettled marks err as one about messages that are not where they should be.
func unsettled(err error) error { return &failure{exitUnsettled, err} }

// run makes f the action of a command. Errors without an exit code of their own exit
// with 1.
func run(f func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		err := f(args)
		if err == nil {
			return nil
		}
		if failed, ok := errors.AsType[*failure](err); ok {
			return failed
		}
		if _, ok := errors.AsType[*delivery.Error](err); ok {
			return usage(err)
		}
		if _, ok := errors.AsType[*daemon.StorageError](err); ok {
			return &failure{exitStorage, err}
		}
		if answer, ok := errors.AsType[*admin.Error](err); ok && (answer.Code == "no-such-queue" || answer.Code == "not-consumed") {
			return &failure{exitAccess, err}
		}
		return &failure{exitFailure, err}
	}
}

// logger returns a logger for what an operator must know.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{ReplaceAttr: bounded}))
}
