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

const about = `Reprise consumes SQS queues whose work sometimes fails.

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
		Use:               "reprise",
		Short:             "Consume SQS queues, with sound retries",
		Long:              about,
		PersistentPreRunE: prepare,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           version(), // cobra adds --version
	}
	root.SetVersionTemplate(versionLine())
	root.SetHelpTemplate(root.HelpTemplate() + "{{if not .HasParent}}\n" + ExitCodes() + "{{end}}")
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"consume", "Send, serve and consume:", []*cobra.Command{a.up(), a.run(), a.serve(), a.send("reprise"), a.lambda(), a.demo()}},
		{"foresee", "Before production:", []*cobra.Command{a.plan(), a.simulate(), a.configCommand()}},
		{"look", "Look at queues and messages:", []*cobra.Command{a.queues(), a.peek(), a.search(), a.trace()}},
		{"act", "Act on messages:", []*cobra.Command{a.dead(), a.redrive(), a.move(), a.purge()}},
		{"watch", "Watch what runs:", []*cobra.Command{a.top(), a.stats(), a.timeline(), a.tail(), a.consumers(), a.jobs(), a.health()}},
		{"steer", "Steer what runs:", append(a.keyActions(), a.concurrency(), a.rate())},
		{"store", "Keep a server's messages safe:", []*cobra.Command{a.backup(), a.check()}},
		{"about", "About the program:", []*cobra.Command{a.version()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
		}
		root.AddCommand(group.commands...)
	}
	a.completeQueues(root)
	root.SetHelpCommandGroupID("about")
	root.SetCompletionCommandGroupID("about")
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
