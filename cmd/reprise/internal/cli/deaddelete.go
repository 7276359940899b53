package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func (a *app) deadDelete() *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{
		Use:   "delete QUEUE (--all | selection)",
		Short: "Delete selected dead letters, after showing which",
		Long: `Delete the dead letters of QUEUE that are selected, or all. They are gone for good:
export them before. If no queue names QUEUE as its dead-letter queue, --all leaves the
messages that nothing says are dead letters; a selection means any messages. On a terminal the command first shows them in groups, and asks; only
those that were shown are deleted. Otherwise pass --dry-run to see what would be
deleted, then --yes.

` + aboutJob + `

` + aboutPartial + `

` + aboutSelection + `

` + aboutOperatorEndpoint,
		Example: `  reprise dead delete orders-dead --error 'card .* was refused' --dry-run
  reprise dead delete orders-dead --older-than 240h --yes`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runDeadDelete(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "delete all letters")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show which letters would be deleted")
	f.look.registerLook(cmd)
	f.job.register(flags)
	return cmd
}

func (a *app) runDeadDelete(f *deadFlags, queue string) error {
	if f.job.job {
		if !f.dryRun && !f.look.yes {
			return usage(errors.New("a job does not ask: pass --dry-run to see how many letters would be deleted, then --yes"))
		}
		return a.runJob(&f.job, f.look.aws, &f.look.selection, admin.JobRequest{
			Action: admin.JobDelete, Queue: queue, All: f.all, DeadOnly: f.all, DryRun: f.dryRun, Force: true,
		}, verbs{"dead letter", "deleted", "would be deleted", f.look.output.as()})
	}
	pass := a.deadPass
	if f.dryRun {
		pass = func(f *deadFlags, queue string) (*deadPass, error) { return a.deadLook(f, queue, sqsserver.Visible) }
	}
	d, err := pass(f, queue)
	if err != nil {
		return err
	}
	switch {
	case d.selection.Empty() != f.all:
		return usage(errors.New("say which letters to delete: pass --reason, --error, --id or another of the flags, or --all for all"))
	case !f.dryRun && !f.look.yes && !a.canAsk():
		return usage(errors.New("there is no terminal to ask on: pass --dry-run to see what would be deleted, then --yes"))
	}
	if f.all {
		named, err := operate.IsDeadLetterQueue(a.ctx, d.look.target.client, d.look.target.url)
		if err != nil {
			err := d.look.target.failed(a.ctx, err, "ListDeadLetterSourceQueues")
			if failed, denied := errors.AsType[*failure](err); denied {
				failed.err = fmt.Errorf("%w: --all spares messages that are no dead letters, and so has to know; or name letters by a selection, such as --older-than 1s", failed.err)
			}
			return err
		}
		d.only = !named
	}
	if !f.dryRun && f.look.yes {
		if len(d.look.pass.Keys) == 0 {
			words := verbs{"dead letter", "deleted", "would be deleted", f.look.output.as()}
			j, done, err := a.byServer(serverQueues{d.look.target.client, d.look.target.found.Endpoint.URL, d.look.target.url, ""},
				admin.JobRequest{Action: admin.JobDelete, DeadOnly: f.all}, &f.look.selection, words)
			if done && j.ID != "" {
				err = errors.Join(d.printDeleted(j.Done), err, serverOutcome(&j, words))
			}
			if done || err != nil {
				return err
			}
		}
		return d.delete(func(*operate.Message) bool { return true })
	}
	shown := make(map[string]bool)
	outcome, err := d.gather(func(m *operate.Message) (operate.Verdict, error) {
		shown[m.ID] = true
		return operate.Keep, nil
	})
	if err != nil {
		return err
	}
	if err := d.printGroups(); err != nil {
		return err
	}
	if f.dryRun || d.selected == 0 {
		fmt.Fprintf(a.stderr, "reprise: %s of %d would be deleted\n", plural.Of(d.selected, "dead letter"), outcome.Looked)
		return errors.Join(partial(outcome), d.notDead())
	}
	if !a.ask(fmt.Sprintf("Delete %s from %s for good?", plural.Of(d.selected, "dead letter"), d.look.target.name)) {
		return errors.New("nothing was deleted")
	}
	again := &deadPass{look: d.look, selection: d.selection, only: d.only}
	return again.delete(func(m *operate.Message) bool { return shown[m.ID] })
}

// delete deletes the letters that are selected and permitted.
func (d *deadPass) delete(permitted func(*operate.Message) bool) error {
	outcome, err := d.gather(func(m *operate.Message) (operate.Verdict, error) {
		if permitted(m) {
			return operate.Delete, nil
		}
		return operate.Keep, nil
	})
	if problem := d.printDeleted(outcome.Deleted); problem != nil {
		return problem
	}
	switch {
	case err != nil:
		return err
	case outcome.NotDeleted > 0:
		return unsettled(fmt.Errorf("SQS did not confirm that it deleted %s: they may be there still, hidden for up to %v; run it again", plural.Of(outcome.NotDeleted, "dead letter"), longLook))
	}
	return errors.Join(partial(outcome), d.notDead())
}

func (d *deadPass) printDeleted(n int) error {
	if d.look.as != asText {
		return d.look.app.printValue(d.look.as, struct {
			Queue   string `json:"queue"`
			Deleted int    `json:"deleted"`
		}{d.look.target.url, n})
	}
	fmt.Fprintf(d.look.app.stdout, "%s deleted from %s\n", plural.Of(n, "dead letter"), d.look.target.url)
	return nil
}

// notDead returns an error if messages were left because nothing says that they are dead letters.
func (d *deadPass) notDead() error {
	if d.left == 0 {
		return nil
	}
	return unsettled(fmt.Errorf("left %s: nothing says that they are dead letters, and no queue names %q as its dead-letter queue: reprise purge deletes all, and a selection, such as --older-than 1s, any messages",
		plural.Of(d.left, "message"), d.look.target.name))
}
