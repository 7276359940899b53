package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Selection names messages. Each field that is set has to match; the zero Selection matches all.
type Selection struct {
	// IDs are message ids, as they are or as they were before a copy: one of them has to match.
	IDs []string
	// Reasons are those of dead letters: one of them has to match.
	Reasons []string
	Source  string // the name of the queue that a dead letter came from
	Group   string
	Error   *regexp.Regexp // of a dead letter
	Body    *regexp.Regexp
	// Attributes are patterns for values, by name.
	Attributes map[string]*regexp.Regexp
	// Where are conditions on a body that is JSON.
	Where []Condition
	// OlderThan and NewerThan count from the sending. Zero: any age.
	OlderThan, NewerThan time.Duration
}

// Empty reports that s matches every message.
func (s *Selection) Empty() bool {
	return len(s.IDs)+len(s.Reasons)+len(s.Attributes)+len(s.Where) == 0 && s.Source == "" && s.Group == "" &&
		s.Error == nil && s.Body == nil && s.OlderThan == 0 && s.NewerThan == 0
}

// ReadsBodies reports that s depends on the bodies of messages.
func (s *Selection) ReadsBodies() bool { return s.Body != nil || len(s.Where) > 0 }

// Matches reports whether s names m; now is SQS's time.
func (s *Selection) Matches(m *Message, now time.Time) bool {
	death, copied := Death{}, Copy{}
	if m.Death != nil {
		death = *m.Death
	}
	if m.Copy != nil {
		copied = *m.Copy
	}
	switch {
	case len(s.IDs) > 0 && !slices.ContainsFunc(s.IDs, func(id string) bool {
		return slices.Contains([]string{m.ID, death.Origin, death.Message, copied.Origin}, id)
	}),
		len(s.Reasons) > 0 && !slices.Contains(s.Reasons, death.Reason),
		s.Source != "" && s.Source != death.Source && s.Source != NameOf(lastPart(death.Source)),
		s.Group != "" && s.Group != m.Group,
		s.Error != nil && !s.Error.MatchString(death.Error),
		s.Body != nil && !s.Body.MatchString(m.Body),
		s.OlderThan > 0 && now.Sub(m.Sent) < s.OlderThan,
		s.NewerThan > 0 && now.Sub(m.Sent) >= s.NewerThan:
		return false
	}
	for name, pattern := range s.Attributes {
		if a, ok := m.Attributes[name]; !ok || !pattern.MatchString(a.Value) {
			return false
		}
	}
	return s.where(m.Body)
}

// Condition is about a value in a body that is JSON.
type Condition struct {
	path    []string
	op      string
	value   string
	pattern *regexp.Regexp
}

// The operators of conditions, the longer ones first.
var operators = []string{"!=", "=", "~"}

// ParseCondition reads PATH=VALUE, PATH!=VALUE or PATH~REGEXP. A path has the names of members, and
// the numbers of elements, with dots between them.
func ParseCondition(text string) (Condition, error) {
	at := strings.IndexAny(text, "!=~")
	for _, op := range operators {
		if at <= 0 || !strings.HasPrefix(text[at:], op) {
			continue
		}
		c := Condition{path: strings.Split(text[:at], "."), op: op, value: text[at+len(op):]}
		if op == "~" {
			var err error
			if c.pattern, err = regexp.Compile(c.value); err != nil {
				return Condition{}, fmt.Errorf("%q: %w", text, err)
			}
		}
		return c, nil
	}
	return Condition{}, fmt.Errorf("%q is not of the form path=value, path!=value or path~regexp, such as customer.id=42", text)
}

// where reports whether all conditions hold for body. None holds for one that is not JSON.
func (s *Selection) where(body string) bool {
	if len(s.Where) == 0 {
		return true
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var document any
	if decoder.Decode(&document) != nil {
		return false
	}
	if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
		return false
	}
	return !slices.ContainsFunc(s.Where, func(c Condition) bool { return !c.holds(document) })
}

// holds reports whether c holds in a document. A value that does not exist is equal to no text.
func (c *Condition) holds(document any) bool {
	text, found := lookUp(document, c.path)
	switch c.op {
	case "=":
		return found && text == c.value
	case "!=":
		return !found || text != c.value
	}
	return found && c.pattern.MatchString(text)
}

// lookUp returns the value at a path as text: a string without its quotes, anything else as JSON.
func lookUp(document any, path []string) (string, bool) {
	for _, part := range path {
		switch v := document.(type) {
		case map[string]any:
			next, ok := v[part]
			if !ok {
				return "", false
			}
			document = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return "", false
			}
			document = v[i]
		default:
			return "", false
		}
	}
	if text, ok := document.(string); ok {
		return text, true
	}
	text, err := json.Marshal(document)
	return string(text), err == nil
}
