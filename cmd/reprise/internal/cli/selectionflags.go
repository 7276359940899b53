package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// selectionFlags name messages.
type selectionFlags struct {
	ids, reasons, attributes, where []string
	source, group, err, body        string
	older, newer                    time.Duration
}

const aboutSelection = `A message is selected if it matches every flag that is given; of --id and --reason,
which can be repeated, one has to match. --error, --body and --attribute take regular
expressions (RE2; (?i) at the start ignores case). --where looks into bodies that are
JSON: customer.id=42, lines.0.sku!=x, note~^urgent. Reasons are those of the story
that a consumer gave the dead letter: permanent, attempts, age, retention, skip,
crash, receives; and receives for what SQS itself has moved.`

func (f *selectionFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.ids, "id", nil, "message `id`, as it is, or as it was before it was copied; repeatable")
	flags.StringArrayVar(&f.reasons, "reason", nil, "`reason` why a dead letter was given up; repeatable")
	flags.StringVar(&f.err, "error", "", "`pattern` for the last error of a dead letter")
	flags.StringVar(&f.source, "source", "", "`queue` that a dead letter came from: its name")
	rename(flags, "from", "source")
	flags.StringVar(&f.group, "group", "", "message group `id`")
	flags.StringVar(&f.body, "body", "", "`pattern` for the body")
	flags.StringArrayVar(&f.attributes, "attribute", nil, "`name=pattern` for a message attribute; repeatable")
	flags.StringArrayVar(&f.where, "where", nil, "`condition` on a body that is JSON: path=value, path!=value, path~pattern; repeatable")
	flags.DurationVar(&f.older, "older-than", 0, "sent at least so long ago")
	flags.DurationVar(&f.newer, "newer-than", 0, "sent less than so long ago")
}

// criteria are what the flags say.
func (f *selectionFlags) criteria() (c operate.Criteria, err error) {
	c = operate.Criteria{IDs: f.ids, Reasons: f.reasons, Source: f.source, Group: f.group, Error: f.err, Body: f.body, Where: f.where}
	if f.older < 0 || f.newer < 0 {
		return c, fmt.Errorf("--older-than is %v and --newer-than %v: pass positive durations, such as 2h", f.older, f.newer)
	}
	if f.older > 0 {
		c.OlderThan = f.older.String()
	}
	if f.newer > 0 {
		c.NewerThan = f.newer.String()
	}
	for _, text := range f.attributes {
		name, pattern, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return c, fmt.Errorf("--attribute %q is not of the form name=pattern", text)
		}
		if c.Attributes == nil {
			c.Attributes = make(map[string]string)
		}
		c.Attributes[name] = pattern
	}
	return c, nil
}

// empty reports that no flag is given.
func (f *selectionFlags) empty() bool {
	s, err := f.selection()
	return err == nil && s.Empty()
}

func (f *selectionFlags) selection() (operate.Selection, error) {
	c, err := f.criteria()
	if err != nil {
		return operate.Selection{}, err
	}
	s, err := c.Selection()
	if err != nil {
		err = fmt.Errorf("--%w", err)
	}
	return s, err
}
