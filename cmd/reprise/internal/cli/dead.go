package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// deadFlags are those of the commands about dead letters.
type deadFlags struct {
	look   peekFlags
	all    bool
	dryRun bool
	file   string
	job    jobFlags
}

const aboutPartial = `If not all letters could be looked at, the exit code is 3: when the command is
stopped, after seven and a half minutes, before 100,000 messages are in flight, and if a
FIFO queue has more behind those that are looked at.`

func (a *app) dead() *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{
		Use:   "dead QUEUE",
		Short: "Show why letters are in a dead-letter queue, in groups; delete, export, import, edit",
		Long: `Look at the dead letters of QUEUE, a name or URL, and count those that died alike: for
the same reason, on the same queue, with the same error, of which ids, times, addresses
and numbers are left out. Why a letter died is in the story that a consumer gave it, in
the account of a retry handler, or with SQS, if it moved the letter itself. Any sender
can write a story: nothing is decided by it here.

` + aboutShown + `
Then those that are in flight or delayed count, too. Otherwise the letters are received:

` + fmt.Sprintf(aboutLook, longLook) + `
` + aboutPartial + `

` + aboutSelection + `

` + aboutOperatorEndpoint,
		Example: `  reprise dead orders-dead
  reprise dead orders-dead --newer-than 24h --source orders -o json
  reprise redrive orders-dead --error 'connection refused' --dry-run
  reprise dead export orders-dead --reason permanent --file letters.jsonl
  reprise dead delete orders-dead --error 'card .* was refused'`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runDead(&f, args[0]) }),
	}
	f.look.registerLook(cmd)
	cmd.AddCommand(a.deadDelete(), a.deadExport(), a.deadImport(), a.deadEdit())
	return cmd
}

// registerLook adds the flags of commands that look at selected messages.
func (f *peekFlags) registerLook(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, aboutYes)
	f.selection.register(flags)
	f.output.register(flags)
	f.aws.register(flags)
	f.signing.Register(flags)
}

func (a *app) runDead(f *deadFlags, queue string) error {
	if known, err := a.deadOfServer(f, queue); known || err != nil {
		return err
	}
	d, err := a.deadLook(f, queue, "")
	if err != nil {
		return err
	}
	named, err := operate.IsDeadLetterQueue(a.ctx, d.look.target.client, d.look.target.url)
	d.groups.Alive = err == nil && !named // it may not be permitted to ask
	outcome, err := d.gather(nil)
	if err != nil {
		return err
	}
	if err := d.printGroups(); err != nil {
		return err
	}
	d.look.note(outcome.Looked, d.selected, d.atLimit)
	return partial(outcome)
}

// deadOfServer prints the groups that a reprise server knows of its own queue, and reports whether
// there is one that tells them to this machine. Nothing is received for it, and in-flight and
// delayed letters count too.
func (a *app) deadOfServer(f *deadFlags, queue string) (known bool, err error) {
	selection, err := f.look.selection.selection()
	if err != nil {
		return false, usage(err)
	}
	if !selection.Empty() {
		return false, nil
	}
	ctx, stop := a.interruptible()
	defer stop()
	t, err := f.look.aws.target(ctx, "QUEUE", queue)
	if err != nil || t.found.Endpoint.URL == "" {
		return false, err
	}
	server, err := admin.NewClient(t.found.Endpoint.URL, "")
	if err != nil {
		return false, nil // the endpoint has a path: it is another server's
	}
	dead, err := server.Dead(ctx, t.url)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil && mayKnow(err):
		// The letters are not received instead: that would raise their receive counts.
		return true, fmt.Errorf("the server at %s has not said what is in the queue: %w: run it again", t.found.Endpoint.URL, withoutHint(err))
	case err != nil:
		return false, nil // it is another server, or does not permit it: the letters are received
	}
	if err := a.printGroups(dead.Groups, f.look.output.as(), time.Now()); err != nil {
		return true, err
	}
	fmt.Fprintf(a.stderr, "reprise: the server has %s in the queue; none was received for this\n", plural.Of(dead.Messages, "message"))
	return true, nil
}

// partial is the error of a pass that has not looked at everything.
func partial(o operate.Outcome) error {
	if o.Partial == "" {
		return nil
	}
	return unsettled(errors.New("there may be more: " + o.Partial))
}

// deadPass is a pass over dead letters.
type deadPass struct {
	look      *look
	selection operate.Selection
	groups    operate.Groups
	selected  int
	atLimit   int
	only      bool // messages that nothing says are dead letters are left
	left      int  // of them
	now       time.Time
}

// deadPass returns a pass that receives the letters.
func (a *app) deadPass(f *deadFlags, queue string) (*deadPass, error) {
	return a.newDeadPass(f, queue, func(*look) error { return nil })
}

// deadLook returns a pass that only looks, at letters of a state; empty: at all that can be seen.
func (a *app) deadLook(f *deadFlags, queue string, state sqsserver.MessageState) (*deadPass, error) {
	ctx, stop := a.interruptible()
	defer stop()
	return a.newDeadPass(f, queue, func(l *look) error { return l.fromServer(ctx, state, &f.look.selection) })
}

func (a *app) newDeadPass(f *deadFlags, queue string, prepare func(*look) error) (*deadPass, error) {
	selection, err := f.look.selection.selection()
	if err != nil {
		return nil, usage(err)
	}
	l, err := a.look(&f.look, queue)
	if err != nil {
		return nil, err
	}
	if err := prepare(l); err != nil {
		return nil, err
	}
	if err := l.guard(f.look.yes); err != nil {
		return nil, err
	}
	l.pass.Polls, l.pass.Lease = 3, longLook
	return &deadPass{look: l, selection: selection, now: time.Now()}, nil
}

// gather counts the letters that are selected, and hands each to visit, if there is one.
func (d *deadPass) gather(visit func(*operate.Message) (operate.Verdict, error)) (operate.Outcome, error) {
	outcome, err := d.look.each(func(batch []operate.Message, now time.Time) ([]operate.Verdict, error) {
		verdicts := make([]operate.Verdict, len(batch))
		d.now = now
		for i := range batch {
			m := &batch[i]
			if d.look.endsAtNextReceive(m) {
				d.atLimit++
			}
			if !d.selection.Matches(m, now) {
				continue
			}
			if d.only && m.Death == nil {
				d.left++
				continue
			}
			if visit != nil {
				var err error
				if verdicts[i], err = visit(m); err != nil {
					return nil, err
				}
			}
			d.selected++
			d.groups.Add(m)
		}
		return verdicts, nil
	})
	if err != nil && d.look.inside == nil {
		err = d.look.target.lookFailed(d.look.app.ctx, err)
	}
	return outcome, err
}

func (d *deadPass) printGroups() error {
	return d.look.app.printGroups(d.groups.List(), d.look.as, d.now)
}

func (a *app) printGroups(groups []operate.Group, as form, now time.Time) error {
	for _, g := range groups {
		if g.Reason == operate.ReasonAlive {
			fmt.Fprintf(a.stderr, "reprise: %s: nothing says that these are dead letters, and no queue names this one as its dead-letter queue: reprise peek shows what waits here\n", plural.Of(g.Count, "message"))
		}
	}
	if as == asText {
		if len(groups) > 0 {
			a.printTable(operate.GroupsTable(groups, now, a.width()))
		}
		return nil
	}
	for _, g := range groups {
		if err := a.printValue(as, g); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) deadExport() *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{
		Use:   "export QUEUE",
		Short: "Write dead letters to a file, a line of JSON each",
		Long: `Write the dead letters of QUEUE that are selected, by default all, to the standard
output or a new file, one line of JSON each: id, body, attributes, group, and why it
died. The letters stay in the queue. To send a file's messages, edited or not, to a
queue, use reprise send --messages.

` + aboutJob + `
A process that is the queue's server reads it without receiving anything, so no
receive count is raised; it gathers 64 MiB at most, and the file is written at the end.

` + aboutPartial + `

` + aboutSelection + `

` + aboutOperatorEndpoint,
		Example: `  reprise dead export orders-dead --file letters.jsonl
  reprise dead export orders-dead --reason permanent | jq -c '.body |= (fromjson | .currency = "EUR" | tojson)' > mended.jsonl
  reprise send orders --messages --file mended.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(func(args []string) error {
				if output := cmd.Flags().Lookup("output"); output.Changed && output.Value.String() != "json" {
					return usage(errors.New("an export is always JSON: leave --output out; reprise dead prints tables"))
				}
				return a.runDeadExport(&f, args[0])
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "write to this `file`, which must not exist (default: the standard output)")
	f.look.registerLook(cmd)
	f.job.register(cmd.Flags())
	return cmd
}

func (a *app) runDeadExport(f *deadFlags, queue string) (err error) {
	if f.job.job {
		return a.exportByJob(f, queue)
	}
	d, err := a.deadPass(f, queue)
	if err != nil {
		return err
	}
	write, done, err := a.exportFile(f.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done(err)) }()
	outcome, err := d.gather(func(m *operate.Message) (operate.Verdict, error) {
		text, err := jsonLine(m)
		if err == nil {
			_, err = write(text)
		}
		return operate.Keep, err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "reprise: exported %s of %d\n", plural.Of(d.selected, "dead letter"), outcome.Looked)
	return partial(outcome)
}

// exportFile returns what writes to a new file, or to the standard output if there is no name, and what ends it,
// given why the export failed or nil. A file to which nothing was written then does not stay: it would stand in
// the way of the next export.
func (a *app) exportFile(name string) (write func([]byte) (int, error), done func(failed error) error, err error) {
	if name == "" {
		return a.stdout.Write, func(error) error { return nil }, nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, nil, usage(fmt.Errorf("--file %s exists: name a new file", name))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--file: %w", err)
	}
	return file.Write, func(failed error) error {
		info, err := file.Stat()
		err = errors.Join(err, file.Sync(), file.Close())
		if failed != nil && err == nil && info.Size() == 0 {
			return os.Remove(name)
		}
		return err
	}, nil
}

// exportByJob writes what a job of a process has exported.
func (a *app) exportByJob(f *deadFlags, queue string) (err error) {
	write, done, err := a.exportFile(f.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done(err)) }()
	words := verbs{"dead letter", "exported", "would be exported", asText}
	client, j, err := a.startJob(&f.job, f.look.aws, &f.look.selection, admin.JobRequest{Action: admin.JobExport, Queue: queue, Force: true}, words)
	if err != nil {
		return err
	}
	err = client.Exported(a.ctx, j.ID, func(m *operate.Message) error {
		text, err := jsonLine(m)
		if err == nil {
			_, err = write(text)
		}
		return err
	})
	fmt.Fprintf(a.stderr, "reprise: exported %s of %d\n", plural.Of(j.Done, words.noun), j.Looked)
	return errors.Join(err, jobOutcome(&j, words))
}
