// Package forward hands messages to programs that are not written against the
// library: an HTTP endpoint ([HTTP]) or a command ([Exec]). Each target is a
// reprise.Handler whose errors steer the retry as the package's targets document.
package forward

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// textAttribute is a message attribute that can be handed on as text.
type textAttribute struct{ name, value string }

// textAttributes returns the String and Number attributes of m in the order of
// their names. Binary ones are left out, as Elastic Beanstalk's daemon leaves them
// out: neither a header nor an environment variable can carry them.
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

// maxErrorText bounds what a target says about a failure before it becomes part of
// an error: the error travels in the story of a dead letter.
const maxErrorText = 512

// excerpt returns text as one line of UTF-8 that does not steer a terminal.
func excerpt(text []byte) string {
	line := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r == '\n' || !terminal.Safe(r) {
			return ' '
		}
		return r
	}, string(text))
	return strings.Join(strings.Fields(line), " ")
}

var errNoQueue = errors.New("the queue's name is empty: targets are told which queue a message came from")
