package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/sqsserver"
)

type peekFlags struct {
	aws       awsFlags
	output    outputFlags
	signing   delivery.Signing
	selection selectionFlags
	control   controlFlags // the process that is asked why messages wait
	limit     int
	hidden    bool
	yes       bool
}

const aboutLook = `SQS shows a message only to its receiver. A look therefore raises its receive
count by one, and hides it from consumers until the end of the command, when all are
given back at once; if the command is killed, %s later. If the queue has a
RedrivePolicy, SQS moves a message to the dead-letter queue at the first receive after
its maxReceiveCount, so a look can be one too many: the command says so. Messages in flight and delayed ones cannot
be seen; of a FIFO queue only the first of each group can, ten at most.`

// The leases of looks, by how long they may take.
const (
	shortLook = time.Minute
	longLook  = 15 * time.Minute
)

func (a *app) peek() *cobra.Command {
	var f peekFlags
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "Look at messages of a queue, and say why they wait",
		Long: `Look at messages that are visible in QUEUE, a name or URL, say for what each waits, and
give them back. With --hidden those that are in flight or delayed are shown as well, who
works on them, or until when they wait and why: a reprise server tells that.

` + aboutWitnesses + `

` + aboutShown + ` Otherwise they are received:

` + fmt.Sprintf(aboutLook, shortLook) + `

` + aboutOperatorEndpoint,
		Example: `  reprise peek orders
  reprise peek orders --hidden -o json | jq .standing
  reprise peek orders-dead --limit 1 -o json | jq .death`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runPeek(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&f.limit, "limit", 10, "how many messages to look at, up to 1000")
	flags.BoolVar(&f.hidden, "hidden", false, "show messages that are in flight or delayed, too, and first")
	f.control.registerProcess(flags)
	f.output.register(flags)
	f.aws.register(flags)
	f.signing.Register(flags)
	return cmd
}

func (a *app) runPeek(f *peekFlags, queue string) error {
	if f.limit < 1 || f.limit > 1000 {
		return usage(fmt.Errorf("--limit is %d: pass 1 to 1000; reprise search looks at more", f.limit))
	}
	l, err := a.look(f, queue)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	w, err := f.control.witnesses(ctx, a, l.target)
	if err != nil {
		return err
	}
	if f.hidden { // before the look hides messages, too
		if l.first, err = w.hidden(ctx, l.target, f.limit); err != nil {
			return err
		}
	}
	l.standing = func(m *operate.Message) *operate.Standing {
		return w.explain(ctx, l.target.url, m.ID, operate.Facts{Message: m})
	}
	if err := l.fromServer(ctx, sqsserver.Visible, &f.selection); err != nil {
		return err
	}
	l.pass.Most, l.pass.Polls, l.pass.Lease = f.limit-len(l.first), 1, shortLook
	l.enough = l.pass.Most == 0
	_, err = l.run(operate.Selection{}, 0)
	return err
}

func (a *app) search() *cobra.Command {
	var f peekFlags
	cmd := &cobra.Command{
		Use:   "search QUEUE",
		Short: "Find messages of a queue by id, body, attribute or error",
		Long: `Look at all messages that are visible in QUEUE, a name or URL, print those that are
selected, and give all of them back. The search ends when SQS shows no more messages that
were there at its start, even if others are being sent.

` + aboutSelection + `

` + aboutShown + `
Then those that are in flight or delayed are searched, too. Otherwise messages are received:

` + fmt.Sprintf(aboutLook, longLook) + `
Of a queue with a RedrivePolicy that can move many messages, so a search needs --yes.
A search ends after half of that time, and before 100,000 messages are in flight: then,
when it is stopped, and when a FIFO queue has more behind those that are looked at, the exit
code is 3, since there may be more.

` + aboutOperatorEndpoint,
		Example: `  reprise search orders --where customer.id=42
  reprise search orders-dead --reason permanent --error 'card (refused|expired)' --older-than 24h
  reprise search orders --id 1f0c5e2a-6c0b-4c39-8f6e-0a4c3a1f7a55 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runSearch(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&f.limit, "limit", 0, "stop after so many matches (default: all)")
	f.registerLook(cmd)
	return cmd
}

func (a *app) runSearch(f *peekFlags, queue string) error {
	selection, err := f.selection.selection()
	if err != nil {
		return usage(err)
	}
	switch {
	case f.limit < 0:
		return usage(fmt.Errorf("--limit is %d: pass 1 or more, or leave it out for all", f.limit))
	case selection.Empty():
		return usage(errors.New("nothing says what to search for: pass --id, --body, --where or another of the flags; reprise peek shows any messages"))
	}
	l, err := a.look(f, queue)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	if err := l.fromServer(ctx, "", &f.selection); err != nil {
		return err
	}
	if err := l.guard(f.yes); err != nil {
		return err
	}
	l.pass.Polls, l.pass.Lease = 3, longLook
	outcome, err := l.run(selection, f.limit)
	switch {
	case err != nil:
		return err
	case outcome.Partial != "":
		return unsettled(errors.New("not all messages were searched: " + outcome.Partial))
	}
	return nil
}

// look is a pass that prints messages.
type look struct {
	app    *app
	target target
	pass   operate.Pass
	inside *insideLook // nil: messages are received
	as     form
	plan   plan.Queue // what is known of the queue
	// first are messages that are printed before those of the pass; enough means that there is none.
	first  []operate.Message
	enough bool
	// standing says why a message waits. Default: that is not said.
	standing func(*operate.Message) *operate.Standing
}

func (a *app) look(f *peekFlags, queue string) (*look, error) {
	keys, err := f.signing.Keys(&a.secrets, a.logger())
	if err != nil {
		return nil, err
	}
	ctx, stop := a.interruptible()
	defer stop()
	t, err := f.aws.target(ctx, "QUEUE", queue)
	if err != nil {
		return nil, err
	}
	l := &look{app: a, target: t, as: f.output.as()}
	l.pass = operate.Pass{Client: t.client, QueueURL: t.url, Keys: keys}
	if attributes, err := t.attributes(ctx, t.url); err == nil { // only for what is said
		l.plan, _ = plan.ReadQueue(attributes)
	}
	return l, nil
}

// guard asks before all messages of a queue are looked at if that would move some to its dead-letter queue.
func (l *look) guard(yes bool) error {
	if l.plan.MaxReceives == 0 || l.inside != nil {
		return nil
	}
	what := fmt.Sprintf("all messages would be received, and SQS moves those of this queue that were received %s already to its dead-letter queue", plural.Of(l.plan.MaxReceives, "time"))
	return l.app.confirm(yes, what+": look all the same?", "nothing was looked at", errors.New(what+": pass --yes to look all the same"))
}

// run prints the messages that are selected, at most limit; 0: all.
func (l *look) run(selection operate.Selection, limit int) (operate.Outcome, error) {
	found, last := l.first, time.Now()
	if l.as != asText {
		for i := range l.first {
			if err := l.app.printValue(l.as, &l.first[i]); err != nil {
				return operate.Outcome{}, err
			}
		}
		found = nil
	}
	matches, atLimit := 0, 0
	unknown := ""
	var outcome operate.Outcome
	var err error
	visit := func(batch []operate.Message, now time.Time) ([]operate.Verdict, error) {
		last = now
		for i := range batch {
			if l.endsAtNextReceive(&batch[i]) {
				atLimit++
			}
			if !selection.Matches(&batch[i], now) {
				continue
			}
			matches++
			if l.standing != nil {
				batch[i].Standing = l.standing(&batch[i])
				unknown = cmp.Or(unknown, batch[i].Standing.Unknown)
			}
			if l.as == asText {
				found = append(found, batch[i])
			} else if err := l.app.printValue(l.as, &batch[i]); err != nil {
				return nil, err
			}
			if limit > 0 && matches == limit {
				return nil, operate.ErrEnough
			}
		}
		return nil, nil
	}
	if !l.enough {
		outcome, err = l.each(visit)
	}
	if len(found) > 0 {
		l.app.printTable(operate.MessagesTable(found, l.plan.MaxReceives, last))
		fmt.Fprint(l.app.stdout, operate.WaitsText(found, time.Now()))
	}
	looked := outcome.Looked
	if l.inside != nil && selection.Empty() { // the server has passed over messages, which nobody asked to see
		matches += len(l.first)
		looked = matches
	}
	l.note(looked, matches, atLimit)
	if unknown != "" {
		fmt.Fprintf(l.app.stderr, "reprise: not known: %s\n", unknown)
	}
	if err != nil && l.inside == nil {
		err = l.target.lookFailed(l.app.ctx, err)
	}
	return outcome, err
}

// endsAtNextReceive reports whether the look has raised the receive count of a message to the last that its
// queue permits.
func (l *look) endsAtNextReceive(m *operate.Message) bool {
	return l.inside == nil && l.plan.MaxReceives > 0 && m.Receives >= l.plan.MaxReceives
}

// note prints the effect of the look on receive counts.
func (l *look) note(looked, matches, atLimit int) {
	text := "looked at " + plural.Of(looked, "message")
	if matches < looked {
		text += ", of which " + strconv.Itoa(matches) + " matched"
	}
	switch {
	case l.inside != nil:
		text += "; the server showed them, and none was received for this"
	case looked > 0 && l.app.ctx.Err() != nil:
		text += fmt.Sprintf("; it was stopped before they were given back: they stay hidden from consumers for up to %v", l.pass.Lease)
		fallthrough
	case looked > 0:
		text += "; to SQS a look is a receive: it has raised their receive counts by one"
	}
	if n := len(l.first); n > 0 && l.inside == nil {
		text += fmt.Sprintf("; the server showed %s without a receive", plural.Of(n, "hidden message"))
	}
	if atLimit > 0 {
		text += fmt.Sprintf("; %d of them have now been received %s: at the next receive SQS moves them to the dead-letter queue", atLimit, plural.Of(l.plan.MaxReceives, "time"))
	}
	fmt.Fprintf(l.app.stderr, "reprise: %s\n", text)
}

// lookFailed explains an error of a pass.
func (t target) lookFailed(ctx context.Context, err error) error {
	return t.failed(ctx, err, "ReceiveMessage and sqs:ChangeMessageVisibility")
}
