package mapping

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filters are FilterCriteria: a message passes if one of the filters matches, or if there is
// none. See https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html. On SQS
// they apply to the body alone.
type filters []*filter

// filter is a pattern for the body: for members of a JSON object (object), or for a text that is
// not JSON (text). With neither, every body matches.
type filter struct {
	object *object
	text   rules
}

// object are conditions that a JSON object must meet together.
type object struct {
	members map[string]condition
	either  []*object // of $or: one of them must match, unless there is none
}

// condition applies to the value of a member: a nested object or a leaf.
type condition struct {
	object *object
	rules  rules
}

// rules are alternatives for a value.
type rules []rule

// rule is an alternative for a string, [json.Number], bool or nil; absent has no value.
type rule struct {
	matches func(value any) bool
	absent  bool // there must be no value
}

// compileFilters parses patterns.
func compileFilters(patterns []string) (filters, error) {
	var problems []error
	if len(patterns) > maxFilters {
		problems = append(problems, fmt.Errorf("it has %d filters: Lambda takes up to %d", len(patterns), maxFilters))
	}
	compiled := make(filters, len(patterns))
	for i, pattern := range patterns {
		var err error
		if compiled[i], err = compileFilter(pattern); err != nil {
			problems = append(problems, fmt.Errorf("filter %s: %w", pattern, err))
		}
	}
	return compiled, errors.Join(problems...)
}

func compileFilter(pattern string) (*filter, error) {
	value, err := decode(pattern)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	members, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New(`it is not an object: write it like {"body":{"kind":["order"]}}`)
	}
	for name := range members {
		if name != "body" {
			return nil, fmt.Errorf("it is about %q: on SQS Lambda filters by the body only", name)
		}
	}
	switch body := members["body"].(type) {
	case nil:
		if len(members) > 0 {
			return nil, errors.New("body is null: give it an object of members or a list of rules")
		}
		return &filter{}, nil
	case map[string]any:
		o, err := compileObject(body)
		return &filter{object: o}, err
	default:
		text, err := compileRules("body", body)
		return &filter{text: text}, err
	}
}

func compileObject(members map[string]any) (*object, error) {
	if len(members) == 0 {
		return nil, errors.New("an object without members is not a pattern: name a member")
	}
	o := &object{members: make(map[string]condition)}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var err error
		inner, isObject := members[name].(map[string]any)
		switch {
		case name == "$or":
			o.either, err = compileEither(members[name])
		case isObject:
			var next *object
			next, err = compileObject(inner)
			o.members[name] = condition{object: next}
		default:
			var next rules
			next, err = compileRules(name, members[name])
			o.members[name] = condition{rules: next}
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

func compileEither(value any) ([]*object, error) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, errors.New("$or is not a list of objects")
	}
	either := make([]*object, len(list))
	for i := range list {
		members, ok := list[i].(map[string]any)
		if !ok {
			return nil, errors.New("$or is not a list of objects")
		}
		var err error
		if either[i], err = compileObject(members); err != nil {
			return nil, err
		}
	}
	return either, nil
}

func compileRules(name string, value any) (rules, error) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("the condition of %q is not a list with a value or a rule in it: write it like [%q]", name, "value")
	}
	compiled := make(rules, len(list))
	for i, item := range list {
		var err error
		if compiled[i], err = compileRule(item); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	return compiled, nil
}

func compileRule(item any) (rule, error) {
	switch item := item.(type) {
	case []any:
		return rule{}, errors.New("a list in a list is not a rule")
	case map[string]any:
		if len(item) != 1 {
			return rule{}, fmt.Errorf("a rule has one operator, this one has %d", len(item))
		}
		for operator, operand := range item {
			return compileOperator(operator, operand)
		}
	}
	return rule{matches: func(value any) bool { return value == item }}, nil
}

func compileOperator(operator string, operand any) (rule, error) {
	text, isText := operand.(string)
	onText := func(matches func(value, text string) bool) (rule, error) {
		if !isText {
			return rule{}, fmt.Errorf("the operand of %s is not a string", operator)
		}
		return rule{matches: func(value any) bool {
			s, ok := value.(string)
			return ok && matches(s, text)
		}}, nil
	}
	switch operator {
	case "prefix":
		return onText(strings.HasPrefix)
	case "suffix":
		return onText(strings.HasSuffix)
	case "equals-ignore-case":
		return onText(strings.EqualFold)
	case "exists":
		exists, ok := operand.(bool)
		if !ok {
			return rule{}, errors.New("the operand of exists is not true or false")
		}
		return rule{absent: !exists, matches: func(any) bool { return exists }}, nil
	case "anything-but":
		return compileAnythingBut(operand)
	case "numeric":
		return compileNumeric(operand)
	}
	return rule{}, fmt.Errorf("Lambda has no operator %q, or it is not supported here: use prefix, suffix, equals-ignore-case, anything-but, numeric or exists", operator)
}

func compileAnythingBut(operand any) (rule, error) {
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	for _, item := range list {
		switch item.(type) {
		case string, json.Number:
		default:
			return rule{}, errors.New("the operand of anything-but is not a string, a number or a list of them")
		}
	}
	return rule{matches: func(value any) bool { return !slices.Contains(list, value) }}, nil
}

func compileNumeric(operand any) (rule, error) {
	list, _ := operand.([]any)
	if len(list) != 2 && len(list) != 4 {
		return rule{}, errors.New(`the operand of numeric is not a list like [">", 0] or [">", 0, "<=", 5]`)
	}
	type bound struct {
		operator string
		limit    float64
	}
	var bounds []bound
	for pair := range slices.Chunk(list, 2) {
		operator, _ := pair[0].(string)
		number, _ := pair[1].(json.Number)
		limit, err := number.Float64()
		if err != nil || !slices.Contains([]string{"=", "<", "<=", ">", ">="}, operator) {
			return rule{}, fmt.Errorf("numeric has %v %v, where an operator =, <, <=, > or >= and a number are expected", pair[0], pair[1])
		}
		bounds = append(bounds, bound{operator, limit})
	}
	return rule{matches: func(value any) bool {
		number, ok := value.(json.Number)
		if !ok {
			return false
		}
		n, err := number.Float64()
		return err == nil && !slices.ContainsFunc(bounds, func(b bound) bool { return !compare(n, b.operator, b.limit) })
	}}, nil
}

func compare(n float64, operator string, limit float64) bool {
	switch operator {
	case "<":
		return n < limit
	case "<=":
		return n <= limit
	case ">":
		return n > limit
	case ">=":
		return n >= limit
	}
	return n == limit
}
