package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/plan"
)

func (a *app) trace() *cobra.Command {
	var f peekFlags
	cmd := &cobra.Command{
		Use:   "trace ID QUEUE...",
		Short: "Tell the story of one message, across copies, attempts and dead letters",
		Long: `Tell what happened to the message with the id ID, as it was sent or as it was called
later, from what is in the queues that are named and in their dead-letter queues: when
it was sent and received first, which attempts failed, when and why it was given up,
where it is now, why it waits, and until when. The copies that consumers send, and dead letters, tell of the messages
before them. What only a log has, such as each attempt, is not there. If the message is
not found, the exit code is 1.

` + aboutWitnesses + `

A reprise server tells this machine the story without a receive, of all of its queues,
unless it has an access key. Otherwise the messages are received, and those in flight,
delayed or deleted are not found, unless a process that was asked holds them:

` + fmt.Sprintf(aboutLook, longLook) + `
Of a queue with a RedrivePolicy that can move many messages, so --yes is needed. With
the dead-letter queue alone, reprise trace ID QUEUE-dead, it is not.

` + aboutOperatorEndpoint,
		Example: `  reprise trace 1f0c5e2a-6c0b-4c39-8f6e-0a4c3a1f7a55 orders-dead
  reprise trace 1f0c5e2a-6c0b-4c39-8f6e-0a4c3a1f7a55 orders refunds --yes -o json`,
		Args: cobra.MinimumNArgs(2),
		RunE: run(func(args []string) error { return a.runTrace(&f, args[0], args[1:]) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, aboutYes)
	f.control.registerProcess(flags)
	f.output.register(flags)
	f.aws.register(flags)
	f.signing.Register(flags)
	return cmd
}

func (a *app) runTrace(f *peekFlags, id string, queues []string) error {
	looks, err := a.looks(f, queues)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	w, err := f.control.witnesses(ctx, a, looks[0].target)
	if err != nil {
		return err
	}
	events, known, err := w.traceOfServer(ctx, id, looks)
	switch {
	case err != nil:
		return err
	case known && len(events) == 0:
		return fmt.Errorf("no message of the server has, or had, the id %q, and no process that was asked holds one: it has been deleted or has expired, or was never there; reprise search finds the ids of messages by their content", id)
	case known:
		if err := a.printEvents(f, events); err != nil {
			return err
		}
		fmt.Fprintln(a.stderr, "reprise: the server and its consumers told this; nothing was received for it")
		return nil
	}
	for _, l := range looks {
		if err := l.guard(f.yes); err != nil {
			return err
		}
	}
	selection := operate.Selection{IDs: []string{id}}
	var found []operate.Found
	now := time.Now()
	looked, incomplete := 0, ""
	for _, l := range looks {
		l.pass.Polls, l.pass.Lease = 3, longLook
		name := operate.NameOf(l.target.url)
		outcome, err := l.pass.Run(a.ctx, a.drain, func(batch []operate.Message, at time.Time) ([]operate.Verdict, error) {
			now = at
			for i := range batch {
				if selection.Matches(&batch[i], at) {
					standing := w.explain(ctx, l.target.url, batch[i].ID, operate.Facts{Message: &batch[i]})
					found = append(found, operate.Found{Queue: name, Message: batch[i], Standing: standing})
				}
			}
			return nil, nil
		})
		if err != nil {
			return l.target.lookFailed(a.ctx, err)
		}
		if looked += outcome.Looked; outcome.Partial != "" {
			incomplete = name + ": " + outcome.Partial
		}
	}
	matches := len(found)
	if matches == 0 {
		found = w.holders(ctx, id, looks)
	}
	if err := a.printEvents(f, operate.Trace(found, now)); err != nil {
		return err
	}
	looks[0].note(looked, matches, 0)
	switch {
	case incomplete != "":
		return unsettled(errors.New("there may be more: " + incomplete))
	case len(found) == 0:
		return fmt.Errorf("no message that is visible in these queues or their dead-letter queues has, or had, the id %q: it may be in flight, delayed, in another queue, or deleted: SQS does not tell; if it is in flight, reprise trace with --admin asks the process that consumes the queue", id)
	}
	return nil
}

func (a *app) printEvents(f *peekFlags, events []operate.Event) error {
	if f.output.as() == asText {
		if len(events) > 0 {
			a.printTable(operate.TraceTable(events, a.width()))
			if last := events[len(events)-1].Standing; last != nil {
				fmt.Fprintln(a.stdout, terminal.Line("now: "+last.Text(), maxStanding))
			}
		}
		return nil
	}
	for _, e := range events {
		if err := a.printValue(f.output.as(), e); err != nil {
			return err
		}
	}
	return nil
}

// maxStanding bounds the line that says why a message waits.
const maxStanding = 2 << 10

// looks returns looks at the queues and at their dead-letter queues, each once.
func (a *app) looks(f *peekFlags, queues []string) ([]*look, error) {
	var looks []*look
	seen := make(map[string]bool)
	for i := 0; i < len(queues); i++ {
		l, err := a.look(f, queues[i])
		if err != nil {
			return nil, err
		}
		if seen[l.target.url] {
			continue
		}
		seen[l.target.url] = true
		looks = append(looks, l)
		if l.plan.DeadLetterARN == "" {
			continue
		}
		dead, err := l.target.urlOf(a.ctx, l.plan.DeadLetterARN)
		if err != nil {
			return nil, l.target.failed(a.ctx, err, "GetQueueUrl on its dead-letter queue")
		}
		if !seen[dead] {
			seen[dead] = true
			other := *l
			other.target.url, other.target.name, other.pass.QueueURL, other.plan = dead, operate.NameOf(dead), dead, plan.Queue{}
			looks = append(looks, &other)
		}
	}
	return looks, nil
}
