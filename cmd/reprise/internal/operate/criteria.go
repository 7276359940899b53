package operate

import (
	"fmt"
	"regexp"
	"time"
)

// Criteria are a selection as it is written: in flags, and in JSON.
type Criteria struct {
	IDs     []string `json:"ids,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	Source  string   `json:"source,omitempty"`
	Group   string   `json:"group,omitempty"`
	// Error and Body are regular expressions, as are the values of Attributes.
	Error      string            `json:"error,omitempty"`
	Body       string            `json:"body,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// Where are conditions: see [ParseCondition].
	Where []string `json:"where,omitempty"`
	// OlderThan and NewerThan are durations, such as 2h.
	OlderThan string `json:"older_than,omitempty"`
	NewerThan string `json:"newer_than,omitempty"`
}

// Selection returns the selection. Its error begins with the name of what is wrong: ids, error, body,
// attribute, where, older-than or newer-than, the names of the flags.
func (c *Criteria) Selection() (s Selection, err error) {
	s = Selection{IDs: c.IDs, Reasons: c.Reasons, Source: c.Source, Group: c.Group}
	if s.Error, err = pattern("error", c.Error); err != nil {
		return s, err
	}
	if s.Body, err = pattern("body", c.Body); err != nil {
		return s, err
	}
	for name, text := range c.Attributes {
		if s.Attributes == nil {
			s.Attributes = make(map[string]*regexp.Regexp, len(c.Attributes))
		}
		if s.Attributes[name], err = regexp.Compile(text); err != nil {
			return s, fmt.Errorf("attribute %q: %w: see https://golang.org/s/re2syntax", name+"="+text, err)
		}
	}
	for _, text := range c.Where {
		condition, err := ParseCondition(text)
		if err != nil {
			return s, fmt.Errorf("where %w", err)
		}
		s.Where = append(s.Where, condition)
	}
	if s.OlderThan, err = age("older-than", c.OlderThan); err != nil {
		return s, err
	}
	s.NewerThan, err = age("newer-than", c.NewerThan)
	return s, err
}

// pattern compiles a regular expression; nil if there is none.
func pattern(name, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // any text matches
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w: see https://golang.org/s/re2syntax", name, text, err)
	}
	return compiled, nil
}

func age(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s %q: pass a positive duration, such as 2h", name, text)
	}
	return d, nil
}
