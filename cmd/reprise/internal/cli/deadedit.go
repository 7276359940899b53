package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

type editFlags struct {
	look    peekFlags
	body    string // a file
	set     []string
	remove  []string
	to      string
	dryRun  bool
	changes operate.Edit
}

func (a *app) deadEdit() *cobra.Command {
	var f editFlags
	cmd := &cobra.Command{
		Use:   "edit QUEUE",
		Short: "Mend one dead letter, and send it back",
		Long: `Change the body or the attributes of one dead letter of QUEUE, and send it back as reprise
redrive does: to its source, or the queue --to. The flags have to select exactly one.
Without --set-body, --set-attribute and --remove-attribute the body opens in the editor
that $VISUAL or $EDITOR names. The command shows what changes, and asks; where nobody can
be asked, pass --dry-run to see it, then --yes.

The letter is deleted only after SQS has confirmed the message that was sent for it. If the
delete is not confirmed, the command says so and ends with exit code 3: then there are both.
A letter that somebody else has received or deleted meanwhile is not sent.

` + aboutSelection + `

` + aboutOperatorEndpoint,
		Example: `  reprise dead edit orders-dead --id 1f0c5e2a-6c0b-4c39-8f6e-0a4c3a1f7a55
  reprise dead edit orders-dead --where order=4801 --set-body mended.json --dry-run
  reprise dead edit orders-dead --where order=4801 --set-attribute tenant=acme --yes`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runDeadEdit(&f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.body, "set-body", "", "take the body from this `file`, all of it; - is the standard input")
	registerAttributeChanges(flags, &f.set, &f.remove)
	flags.StringVar(&f.to, "to", "", "`name or URL` of the queue to send it to (default: its source)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show what would change, and where it would be sent")
	f.look.registerLook(cmd)
	return cmd
}

// edited is what the command prints as JSON.
type edited struct {
	Before operate.Message `json:"before"`
	After  operate.Message `json:"after"`
	To     string          `json:"to,omitempty"`
	DryRun bool            `json:"dry_run,omitempty"`
}

func (a *app) runDeadEdit(f *editFlags, queue string) error {
	if err := f.read(a); err != nil {
		return err
	}
	byEditor := f.changes.Body == nil && len(f.changes.Set)+len(f.changes.Remove) == 0
	switch {
	case f.look.selection.empty():
		return usage(errors.New("say which letter to edit: pass --id, --where or another of the flags that select; reprise dead and reprise search show them"))
	case byEditor && !a.canAsk():
		return usage(errors.New("there is no terminal for an editor: pass --set-body, --set-attribute or --remove-attribute"))
	case !f.dryRun && !f.look.yes && !a.canAsk():
		return usage(errors.New("nobody can be asked here: pass --dry-run to see what would change, then --yes"))
	}
	d, err := a.deadPass(&deadFlags{look: f.look}, queue)
	if err != nil {
		return err
	}
	before, err := d.one()
	if err != nil {
		return err
	}
	if byEditor {
		if f.changes.Body, err = a.inEditor(before.Body); err != nil {
			return err
		}
	}
	after, err := f.changes.Apply(before)
	if err != nil {
		return usage(err)
	}
	difference := operate.Difference(&before, &after)
	if difference == "" {
		return errors.New("nothing was changed, and nothing sent: reprise redrive sends a letter back as it is")
	}
	as := f.look.output.as()
	if as == asText {
		fmt.Fprintf(a.stdout, "%s of %s\n%s", before.ID, d.look.target.url, difference)
	}
	if !f.dryRun && !f.look.yes && !a.ask("Send it like this, and delete the letter?") {
		return errors.New("nothing was sent, and nothing deleted")
	}
	r := redrive.Redrive{
		Client: d.look.target.client, QueueURL: d.look.target.url, Max: 1, DryRun: f.dryRun, Logger: a.logger(), Keys: d.look.pass.Keys,
		Select: func(m *types.Message, _ time.Time) bool { return aws.ToString(m.MessageId) == before.ID },
		Edit:   func(m *reprise.Outgoing, _ *types.Message) error { after.Become(m); return nil },
	}
	if f.to != "" {
		if r.To, err = resolve(a.ctx, r.Client, f.to); err != nil {
			return accessError(a.ctx, err, "--to", f.to, d.look.target.found)
		}
	}
	return a.sendEdited(&r, &edited{Before: before, After: after, DryRun: f.dryRun}, as, d.look.target)
}

// sendEdited sends the message in place of its letter.
func (a *app) sendEdited(r *redrive.Redrive, e *edited, as form, t target) error {
	report, err := r.Run(a.ctx, a.drain)
	for url := range report.Sent {
		e.To = url
	}
	if as != asText && e.To != "" {
		if problem := a.printValue(as, e); problem != nil {
			return problem
		}
	}
	words := verbs{"dead letter", "sent back", "would be sent back", as}
	left := 0
	for why, n := range report.Left {
		left += n
		if as != asText {
			fmt.Fprintf(a.stderr, "reprise: the letter is left: letters that %s\n", why)
		}
	}
	if as == asText && len(report.Sent)+len(report.Left) > 0 {
		a.printRedrive(r, report, err == nil, words)
	}
	switch {
	case err != nil:
		return t.failed(a.ctx, err, "ReceiveMessage, sqs:SendMessage and sqs:DeleteMessage")
	case left > 0:
		return unsettled(errors.New("the letter is still in the queue"))
	case e.To == "" && report.Partial != "":
		return unsettled(errors.New("the letter could not be received again, and nothing was sent: " + report.Partial))
	case e.To == "":
		return errors.New("the letter could not be received again: somebody else has received or deleted it, or it is behind others of its group; nothing was sent")
	}
	return nil
}

// read returns what the flags change.
func (f *editFlags) read(a *app) error {
	var err error
	f.changes.Remove = f.remove
	if f.changes.Set, err = attributeChanges(f.set); err != nil {
		return usage(err)
	}
	if f.body == "" {
		return nil
	}
	file := a.stdin
	if f.body != "-" {
		if file, err = os.Open(f.body); err != nil {
			return fmt.Errorf("--set-body: %w", err)
		}
		defer func() { _ = file.Close() }() // it is only read
	}
	body, err := readText(file)
	if err != nil {
		return fmt.Errorf("--set-body %s: %w", f.body, err)
	}
	f.changes.Body = &body
	return nil
}

// one returns the only letter that is selected.
func (d *deadPass) one() (found operate.Message, err error) {
	outcome, err := d.gather(func(m *operate.Message) (operate.Verdict, error) {
		found = *m
		return operate.Keep, nil
	})
	switch {
	case err != nil:
		return found, err
	case d.selected > 1:
		return found, usage(fmt.Errorf("%s match: name one with --id; reprise search shows their ids", plural.Of(d.selected, "dead letter")))
	case d.selected == 0 && outcome.Partial != "":
		return found, partial(outcome)
	case d.selected == 0:
		return found, fmt.Errorf("none of %s matches", plural.Of(outcome.Looked, "dead letter"))
	}
	return found, nil
}

// inEditor returns the text as the operator's editor leaves it. Editors end a text with a new line: it
// is taken off if the text had none.
func (a *app) inEditor(text string) (*string, error) {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if editor == "" {
		return nil, usage(errors.New("no editor is set: set EDITOR, or pass --set-body"))
	}
	dir, err := os.MkdirTemp("", "reprise-edit-") // which others cannot read
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // others cannot read what would be left
	path := filepath.Join(dir, "body")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(a.ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout.file, a.stderr.file
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %s: %w: nothing was sent", terminal.Quote(editor, maxAPIText), err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	changed, err := readText(file)
	if !strings.HasSuffix(text, "\n") {
		changed = strings.TrimSuffix(changed, "\n")
	}
	return &changed, err
}
