package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
)

// rewriteFlags say what is changed of each of many letters.
type rewriteFlags struct {
	find, replace string
	set, remove   []string
}

const aboutRewrite = `With --find, --set-attribute or --remove-attribute each letter is changed on its way: what
--find, a regular expression (RE2), matches in its body becomes --replace, in which $1 is
its first group; attributes are set and removed. A letter that SQS would refuse so stays in
QUEUE, is counted, and makes the exit code 3. --dry-run shows how many would differ, and how
the first would. reprise dead edit changes one letter.`

func (f *rewriteFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.find, "find", "", "change what this `pattern` matches in the body of each letter")
	flags.StringVar(&f.replace, "replace", "", "`text` in place of what --find matches (default: nothing)")
	registerAttributeChanges(flags, &f.set, &f.remove)
}

// registerAttributeChanges registers the flags that set and remove attributes.
func registerAttributeChanges(flags *pflag.FlagSet, set, remove *[]string) {
	flags.StringArrayVar(set, "set-attribute", nil, "set the attribute `name=value`; repeatable")
	flags.StringArrayVar(remove, "remove-attribute", nil, "remove the attribute of this `name`; repeatable")
}

// attributeChanges reads the values of --set-attribute.
func attributeChanges(texts []string) (set map[string]string, err error) {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--set-attribute %q is not of the form name=value: SQS has no empty values; --remove-attribute removes one", text)
		}
		if set == nil {
			set = make(map[string]string)
		}
		set[name] = value
	}
	return set, nil
}

// rewrite is what the flags say.
func (f *rewriteFlags) rewrite() (r operate.Rewrite, err error) {
	r = operate.Rewrite{Find: f.find, Replace: f.replace, Remove: f.remove}
	if r.Set, err = attributeChanges(f.set); err != nil {
		return r, err
	}
	if _, err = r.Compile(); err != nil {
		if r.Find == "" && r.Replace != "" {
			return r, errors.New("--replace needs --find: say what it replaces")
		}
		if strings.HasPrefix(err.Error(), "find ") {
			return r, fmt.Errorf("--%w", err)
		}
	}
	return r, err
}

// editing is a redrive that changes letters.
type editing struct {
	*operate.Rewriting
	dryRun bool
}

// edit has a redrive change what it sends. It follows the selection of r, which has to be set before.
func edit(r *redrive.Redrive, rewrite operate.Rewrite) (*editing, error) {
	w, err := rewrite.Rewriting()
	if err != nil {
		return nil, err
	}
	selects := r.Select
	r.Select = func(m *types.Message, now time.Time) bool {
		if selects != nil && !selects(m, now) {
			return false
		}
		letter := operate.Read(r.QueueURL, *m, r.Keys)
		return w.Try(&letter) || !r.DryRun // what is sent is tried once more, and counted then
	}
	r.Edit = func(m *reprise.Outgoing, letter *types.Message) error {
		after, err := w.Apply(operate.Read(r.QueueURL, *letter, r.Keys))
		if err == nil {
			after.Become(m)
		}
		return err
	}
	return &editing{w, r.DryRun}, nil
}

// finish adds the letters that a dry run could not change to those that are left, and prints how many differ.
func (e *editing) finish(a *app, report *redrive.Report, as form) {
	if e.dryRun {
		report.Left = redrive.LeaveUnfit(report.Left, e.Unfit())
	}
	n, example := e.Edited()
	a.printEdited(n, example, e.dryRun, as)
}

// printEdited prints how many letters a change makes different, and how the first: beside the output if that is for programs.
func (a *app) printEdited(n int, example string, dryRun bool, as form) {
	verb := "changed"
	if dryRun {
		verb = "would be changed"
	}
	text := plural.Of(n, "dead letter") + " " + verb
	if example != "" {
		text += ", such as\n" + strings.TrimRight(example, "\n")
	}
	to := a.stdout
	if as != asText {
		to = a.stderr
	}
	fmt.Fprintln(to, text)
}

// errTaskEdits is what --task answers to flags that change letters.
var errTaskEdits = errors.New("--task has SQS move the letters, which changes none: leave --task out, or --find, --set-attribute and --remove-attribute")
