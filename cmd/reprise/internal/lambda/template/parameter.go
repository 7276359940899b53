package template

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var parameterSchema = schema{
	"Type": used, "Default": used, "AllowedValues": used, "AllowedPattern": used,
	"MinLength": used, "MaxLength": used, "MinValue": used, "MaxValue": used,
	"NoEcho": used, "Description": harmless, "ConstraintDescription": harmless,
}

var (
	parameterTypes = []string{"String", "Number", "CommaDelimitedList", "List<Number>", "List<String>"}
	parameterType  = regexp.MustCompile(`^(String|Number|CommaDelimitedList|List<(String|Number|AWS::[A-Za-z0-9:]+)>|AWS::[A-Za-z0-9:]+(<[A-Za-z0-9:<>]+>)?)$`)
)

// loadParameters finds the values of the template's parameters.
func (l *loader) loadParameters(n *node) {
	l.parameters, l.stored = make(map[string]*node), make(map[string]*Finding)
	for _, m := range members(n) {
		p := place{resource: "parameter " + m.key, line: m.line}
		l.parameters[m.key] = l.parameter(p, m)
	}
	for _, name := range slices.Sorted(maps.Keys(l.options.Parameters)) {
		if _, declared := l.parameters[name]; !declared {
			l.refuse(place{}, nil, "there is no parameter %q%s: correct --param", name, suggest(name, maps.Keys(l.parameters)))
		}
	}
}

func (l *loader) parameter(p place, m member) *node {
	properties := l.open(p, m.value, parameterSchema)
	kind := "String"
	if t := properties["Type"]; missing(properties, "Type") {
		l.refuse(p, m.value, "it has no Type: write Type: String, or another")
	} else if t != nil {
		kind = t.text
		if !parameterType.MatchString(kind) {
			l.refuse(p, t, "%q is not a type of a parameter%s: write String, Number or CommaDelimitedList", kind, suggest(kind, slices.Values(parameterTypes)))
			return nil
		}
	}
	value := properties["Default"]
	if given, ok := l.options.Parameters[m.key]; ok {
		value = text(m.value, given)
	} else if strings.HasPrefix(kind, "AWS::SSM::Parameter::Value<") && value != nil {
		// Report it only when it is used: every template of the CDK has such a parameter, for a
		// rule.
		l.stored[m.key] = &Finding{
			File: l.options.File, Line: value.line, Resource: p.resource, Refused: true,
			Text: fmt.Sprintf("its value is in AWS's parameter store under %q: pass --param %s=VALUE", value.text, m.key),
		}
		return nil
	}
	switch {
	case value == nil:
		l.refuse(p, m.value, "it has no value: pass --param %s=VALUE, or give it a Default", m.key)
		return nil
	case value.kind != scalar:
		l.refuse(p, value, "the value is %v: write lists as one text with commas", value.kind)
		return nil
	}
	items := []*node{value}
	isList := kind == "CommaDelimitedList" || strings.Contains(kind, "List<")
	if isList {
		items = nil
		for item := range strings.SplitSeq(value.text, ",") {
			items = append(items, text(value, strings.TrimSpace(item)))
		}
	}
	for _, item := range items {
		if !l.allowed(p, item, kind, properties) {
			return nil
		}
	}
	if isList {
		return &node{kind: list, line: value.line, items: items}
	}
	return value
}

// allowed checks a value against the parameter's constraints.
func (l *loader) allowed(p place, value *node, kind string, properties map[string]*node) bool {
	var number float64
	shown := quoted(value, properties)
	isNumber := strings.Contains(kind, "Number")
	if isNumber {
		var err error
		if number, err = strconv.ParseFloat(value.text, 64); err != nil {
			l.refuse(p, value, "%s is not a number: pass one", shown)
			return false
		}
	}
	if allowed := properties["AllowedValues"]; allowed != nil {
		values := make([]string, len(allowed.items))
		for i, item := range allowed.items {
			values[i] = item.text
		}
		if !slices.Contains(values, value.text) {
			l.refuse(p, value, "%s is not one of the AllowedValues: pass %s", shown, strings.Join(values, ", "))
			return false
		}
	}
	if pattern := properties["AllowedPattern"]; pattern != nil {
		expression, err := regexp.Compile(`^(?:` + pattern.text + `)$`)
		if err != nil {
			l.warn(p, pattern, "the AllowedPattern is not checked here: %v", err)
		} else if !expression.MatchString(value.text) {
			l.refuse(p, value, "%s does not match the AllowedPattern %s: pass another", shown, pattern.text)
			return false
		}
	}
	length := float64(utf8.RuneCountInString(value.text))
	return l.within(p, value, "MinLength", "MaxLength", length, properties) &&
		(!isNumber || l.within(p, value, "MinValue", "MaxValue", number, properties))
}

// quoted returns the value for messages, unless it is a secret.
func quoted(value *node, properties map[string]*node) string {
	if n := properties["NoEcho"]; n != nil && strings.EqualFold(n.text, "true") {
		return "the value"
	}
	return strconv.Quote(value.text)
}

func (l *loader) within(p place, value *node, lower, upper string, actual float64, properties map[string]*node) bool {
	for name, broken := range map[string]func(limit float64) bool{
		lower: func(limit float64) bool { return actual < limit },
		upper: func(limit float64) bool { return actual > limit },
	} {
		n := properties[name]
		if n == nil {
			continue
		}
		limit, err := strconv.ParseFloat(n.text, 64)
		if err != nil {
			l.refuse(p.at(name), n, "%q is not a number", n.text)
			return false
		}
		if broken(limit) {
			l.refuse(p, value, "%s is beyond its %s of %s: pass another", quoted(value, properties), name, n.text)
			return false
		}
	}
	return true
}
