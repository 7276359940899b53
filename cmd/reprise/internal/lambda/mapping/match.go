package mapping

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// match reports whether one of the filters matches a message's body.
func (f filters) match(body string) bool {
	if len(f) == 0 {
		return true
	}
	value, err := decode(body)
	isJSON := err == nil && !isLeaf(value)
	return slices.ContainsFunc(f, func(one *filter) bool {
		switch {
		case one.object != nil:
			return isJSON && one.object.match(value)
		case one.text != nil:
			// A pattern for texts does not match JSON: Lambda drops the message.
			return !isJSON && one.text.match([]any{body})
		}
		return true
	})
}

// match reports whether a value meets the conditions; of a list, whether one element does.
func (o *object) match(value any) bool {
	switch value := value.(type) {
	case []any:
		if len(value) == 0 {
			return o.match(map[string]any{})
		}
		return slices.ContainsFunc(value, o.match)
	case map[string]any:
		for name, c := range o.members {
			member, found := value[name]
			if !c.match(member, found) {
				return false
			}
		}
		return len(o.either) == 0 || slices.ContainsFunc(o.either, func(one *object) bool { return one.match(value) })
	}
	return false
}

func (c condition) match(value any, found bool) bool {
	if c.object == nil {
		return c.rules.match(leaves(value, found))
	}
	if isLeaf(value) {
		value = map[string]any{} // an empty object may meet conditions of absence
	}
	return c.object.match(value)
}

// match reports whether one of the rules is met by one of the values.
func (r rules) match(values []any) bool {
	return slices.ContainsFunc(r, func(one rule) bool {
		if one.absent {
			return len(values) == 0
		}
		return slices.ContainsFunc(values, one.matches)
	})
}

// leaves returns the values that rules apply to: the value, or the elements of a list. Objects
// are left out: for the operator exists they do not count as values.
func leaves(value any, found bool) []any {
	if !found {
		return nil
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	return slices.DeleteFunc(slices.Clone(list), func(v any) bool { return !isLeaf(v) })
}

func isLeaf(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// decode reads one JSON value. Numbers keep their text: for Lambda 300 and 3e2 are not equal.
func decode(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return value, nil
}
