// Package forward delivers messages to programs that do not use the library: an HTTP endpoint
// ([HTTP]) or a command ([Exec]). Each target is a reprise.Handler whose errors decide about the
// retry, as the types document.
package forward

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// textAttribute is a message attribute that can be passed on as text.
type textAttribute struct{ name, value string }

// textAttributes returns the String and Number attributes of m in the order of their names.
// Binary ones are left out, as by Elastic Beanstalk's daemon: headers and environment variables
// cannot carry them.
func textAttributes(m *reprise.Message) []textAttribute {
	var found []textAttribute
	for name, a := range m.Attributes {
		if a.StringValue != nil {
			found = append(found, textAttribute{name, *a.StringValue})
		}
	}
	slices.SortFunc(found, func(a, b textAttribute) int { return strings.Compare(a.name, b.name) })
	return found
}

// maxErrorText bounds the text that a target sends about a failure: it becomes part of the error,
// and so of the dead letter's story.
const maxErrorText = 512

// excerpt returns text as one line of UTF-8 without control sequences.
func excerpt(text []byte) string {
	line := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r == '\n' || !terminal.Safe(r) {
			return ' '
		}
		return r
	}, string(text))
	return strings.Join(strings.Fields(line), " ")
}

var errNoQueue = errors.New("the queue's name is empty: targets get the name of a message's queue")
