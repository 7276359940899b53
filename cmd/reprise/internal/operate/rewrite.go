package operate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Rewrite is what is changed of each of many messages. The zero value changes nothing.
type Rewrite struct {
	// Find is a regular expression. What it matches in a body becomes Replace, in which $1 or ${name} is a group of
	// it. Empty: bodies stay. A body that it matches more than 100,000 times cannot be edited.
	Find    string `json:"find,omitempty"`
	Replace string `json:"replace,omitempty"`
	// Set gives attributes values, by name: a message that has no such attribute gets one, a String.
	Set map[string]string `json:"set,omitempty"`
	// Remove are names of attributes that no message has afterwards.
	Remove []string `json:"remove,omitempty"`
}

// IsZero reports that it changes nothing.
func (r Rewrite) IsZero() bool {
	return r.Find == "" && r.Replace == "" && len(r.Set) == 0 && len(r.Remove) == 0
}

// Compile returns what applies r to a message, or what is wrong with r. It leaves a message as it is and says why if
// SQS would refuse the changed one.
func (r Rewrite) Compile() (func(Message) (Message, error), error) {
	find, err := regexp.Compile(r.Find)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find cannot be used: %w", err)
	case r.Find == "" && r.Replace != "":
		return nil, errors.New("replace needs find: say what it replaces")
	case r.Find != "" && find.MatchString(""):
		return nil, fmt.Errorf("find is %q, which matches between any two characters too: write what matches at least one", r.Find)
	case slices.Contains(r.Remove, ""):
		return nil, errors.New("remove has an empty name: name attributes")
	}
	for name, value := range r.Set {
		if name == "" || value == "" {
			return nil, fmt.Errorf("set has %q for %q: SQS has neither attributes without a name nor empty values", value, name)
		}
		if slices.Contains(r.Remove, name) {
			return nil, fmt.Errorf("attribute %q is both set and removed: choose one", name)
		}
	}
	return func(m Message) (Message, error) {
		e := Edit{Set: r.Set}
		if r.Find != "" {
			body, err := replaceAll(m.Body, find, r.Replace)
			if err != nil {
				return m, err
			}
			e.Body = &body
		}
		for _, name := range r.Remove {
			if _, has := m.Attributes[name]; has {
				e.Remove = append(e.Remove, name)
			}
		}
		after, err := e.Apply(m)
		if err != nil {
			return m, err
		}
		return after, nil
	}, nil
}

// How much an edit may do to a body: a short replacement of each character would otherwise need gigabytes.
const (
	maxMatches = 100_000
	maxBody    = 1 << 20 // the largest that SQS takes
)

// replaceAll is find.ReplaceAllString, within maxMatches and maxBody.
func replaceAll(body string, find *regexp.Regexp, replacement string) (string, error) {
	matches := find.FindAllStringSubmatchIndex(body, maxMatches+1)
	if len(matches) > maxMatches {
		return "", fmt.Errorf("find matches more than %d times in the body: write what matches longer pieces of it", maxMatches)
	}
	var edited []byte
	done := 0
	for _, match := range matches {
		edited = append(edited, body[done:match[0]]...)
		edited = find.ExpandString(edited, replacement, body, match)
		done = match[1]
		if len(edited)+len(body)-done > maxBody {
			return "", fmt.Errorf("the body would be longer than the %d bytes that SQS permits: replace less, or by something shorter", maxBody)
		}
	}
	return string(append(edited, body[done:]...)), nil
}

// WithoutContent is r as a log may have it: what it writes into messages may be secret.
func (r Rewrite) WithoutContent() Rewrite {
	const content = "…"
	logged := Rewrite{Find: r.Find, Remove: r.Remove}
	if r.Replace != "" {
		logged.Replace = content
	}
	for name := range r.Set {
		if logged.Set == nil {
			logged.Set = make(map[string]string)
		}
		logged.Set[name] = content
	}
	return logged
}

// SameContent reports whether messages have the same body and attributes.
func SameContent(a, b *Message) bool {
	return a.Body == b.Body && maps.EqualFunc(a.Attributes, b.Attributes, func(x, y Attribute) bool {
		return x.Type == y.Type && x.Value == y.Value && string(x.Binary) == string(y.Binary)
	})
}
