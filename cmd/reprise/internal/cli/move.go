package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

type moveFlags struct {
	look   peekFlags
	rate   float64
	dryRun bool
	job    jobFlags
	output outputFlags
}

func (a *app) move() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move FROM TO",
		Short: "Move messages from one queue to another",
		Long: `Move the messages that are visible in the queue FROM to the queue TO, each a name or URL:
all, or those that are selected. A message keeps its body, attributes, group and, if it
is a dead letter, its story; it gets a new id, and its receives and retention begin
anew.

` + aboutByServer + `
A message is deleted from FROM only after SQS has confirmed that TO has it: a crash in
between leaves both. To send dead letters back to where they came from, use reprise
redrive.

Messages that arrive after the start, or that TO refuses, stay, are counted, and make
the exit code 3. FROM counts as empty when three long polls in a row find nothing. The
messages that a killed command was working on are visible again after 15 minutes. If not all
messages could be looked at, because 100,000 that are not selected had to be held, because a dry
run took seven and a half minutes, or because a FIFO queue has more behind ten of their
group that stay, the exit code is 3, too.

` + aboutJob + `

` + aboutSelection + `

` + aboutOperatorEndpoint,
		Example: `  reprise move orders orders-parked --where customer.id=42 --yes
  reprise move orders-parked orders --rate 20
  reprise move orders-dead other-dead --reason permanent --dry-run`,
		Args: cobra.ExactArgs(2),
		RunE: run(func(args []string) error { return a.runMove(&f, args[0], args[1]) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&f.look.limit, "limit", 0, "move at most so many (default: all)")
	flags.Float64Var(&f.rate, "rate", 0, "move at most so many a second (default: as fast as SQS takes them)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show how many messages would be moved")
	flags.BoolVar(&f.look.yes, "yes", false, aboutYes)
	f.look.selection.register(flags)
	f.look.aws.register(flags)
	f.look.signing.Register(flags)
	f.job.register(flags)
	f.output.register(flags)
	return cmd
}

func (a *app) runMove(f *moveFlags, from, to string) error {
	selection, err := f.look.selection.selection()
	if err != nil {
		return usage(err)
	}
	switch {
	case f.look.limit < 0:
		return usage(fmt.Errorf("--limit is %d: pass 1 or more, or leave it out for all", f.look.limit))
	case !(f.rate >= 0 && f.rate < 1e6):
		return usage(fmt.Errorf("--rate is %g: pass how many messages a second, or leave it out", f.rate))
	}
	if _, err := queueName("TO", to); err != nil {
		return usage(err)
	}
	words := verbs{"message", "moved", "would be moved", f.output.as()}
	if f.job.job {
		return a.runJob(&f.job, f.look.aws, &f.look.selection, admin.JobRequest{
			Action: admin.JobMove, Queue: from, To: to, Limit: f.look.limit, Rate: f.rate, DryRun: f.dryRun, Force: f.look.yes,
		}, words)
	}
	l, err := a.look(&f.look, from)
	if err != nil {
		return err
	}
	target, err := resolve(a.ctx, l.target.client, to)
	if err != nil {
		return accessError(a.ctx, err, "TO", to, l.target.found)
	}
	if redrive.PathOf(target) == redrive.PathOf(l.target.url) {
		return usage(fmt.Errorf("the messages are in %q already: name another queue to move them to", to))
	}
	if len(l.pass.Keys) == 0 { // the server does not know them
		queues := serverQueues{l.target.client, l.target.found.Endpoint.URL, l.target.url, target}
		done, err := a.redriveByServer(queues, admin.JobRequest{
			Action: admin.JobMove, Limit: f.look.limit, Rate: f.rate, DryRun: f.dryRun,
		}, &f.look.selection, words)
		if done || err != nil {
			return err
		}
	}
	if err := l.guard(f.look.yes); err != nil {
		return err
	}
	r := redrive.Redrive{
		Client: l.target.client, QueueURL: l.target.url, To: target, Whole: true,
		Max: f.look.limit, Rate: f.rate, DryRun: f.dryRun, Logger: a.logger(), Keys: l.pass.Keys,
	}
	choose(&r, selection)
	report, err := a.sendBack(&r, words)
	left := a.printRedrive(&r, report, err == nil, words)
	if err != nil {
		return l.target.failed(a.ctx, err, "ReceiveMessage on FROM, sqs:SendMessage on TO and sqs:DeleteMessage")
	}
	return sentOutcome(&report, left, words)
}

// verbs are the words of reports for an action on messages.
type verbs struct {
	noun, done, would string
	as                form // in which they are printed
}

// during is what is going on, such as "messages were being moved".
func (v verbs) during() string { return v.noun + "s were being " + v.done }

// choose has r take the messages that are selected.
func choose(r *redrive.Redrive, selection operate.Selection) {
	if selection.Empty() {
		return
	}
	r.Select = func(m *types.Message, now time.Time) bool {
		letter := operate.Read(r.QueueURL, *m, r.Keys)
		return selection.Matches(&letter, now)
	}
}

// sendBack runs r, and shows the progress on a terminal.
func (a *app) sendBack(r *redrive.Redrive, words verbs) (redrive.Report, error) {
	screen := terminal.New(a.stderr.file, os.Getenv)
	defer screen.Done()
	if screen.Live() && !r.DryRun {
		r.Progress = func(sent int) { screen.Redraw(plural.Of(sent, words.noun) + " " + words.done) }
	}
	return r.Run(a.ctx, a.drain)
}
