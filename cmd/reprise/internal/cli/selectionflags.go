package cli

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// selectionFlags name messages.
type selectionFlags struct {
	ids, reasons, attributes, where []string
	from, group, err, body          string
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
	flags.StringVar(&f.from, "from", "", "`queue` that a dead letter came from: its name")
	flags.StringVar(&f.group, "group", "", "message group `id`")
	flags.StringVar(&f.body, "body", "", "`pattern` for the body")
	flags.StringArrayVar(&f.attributes, "attribute", nil, "`name=pattern` for a message attribute; repeatable")
	flags.StringArrayVar(&f.where, "where", nil, "`condition` on a body that is JSON: path=value, path!=value, path~pattern; repeatable")
	flags.DurationVar(&f.older, "older-than", 0, "sent at least so long ago")
	flags.DurationVar(&f.newer, "newer-than", 0, "sent less than so long ago")
}

func (f *selectionFlags) selection() (operate.Selection, error) {
	s := operate.Selection{IDs: f.ids, Reasons: f.reasons, Source: f.from, Group: f.group, OlderThan: f.older, NewerThan: f.newer}
	if f.older < 0 || f.newer < 0 {
		return s, fmt.Errorf("--older-than is %v and --newer-than %v: pass positive durations, such as 2h", f.older, f.newer)
	}
	for _, p := range []struct {
		flag, text string
		to         **regexp.Regexp
	}{{"--error", f.err, &s.Error}, {"--body", f.body, &s.Body}} {
		if p.text == "" {
			continue
		}
		compiled, err := regexp.Compile(p.text)
		if err != nil {
			return s, fmt.Errorf("%s %q: %w: see https://golang.org/s/re2syntax", p.flag, p.text, err)
		}
		*p.to = compiled
	}
	for _, text := range f.attributes {
		name, pattern, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return s, fmt.Errorf("--attribute %q is not of the form name=pattern", text)
		}
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return s, fmt.Errorf("--attribute %q: %w: see https://golang.org/s/re2syntax", text, err)
		}
		if s.Attributes == nil {
			s.Attributes = make(map[string]*regexp.Regexp)
		}
		s.Attributes[name] = compiled
	}
	for _, text := range f.where {
		c, err := operate.ParseCondition(text)
		if err != nil {
			return s, fmt.Errorf("--where %w", err)
		}
		s.Where = append(s.Where, c)
	}
	return s, nil
}
