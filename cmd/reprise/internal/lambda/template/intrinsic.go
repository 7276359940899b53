package template

import (
	"fmt"
	"strconv"
	"strings"
)

// maxText bounds the texts that functions make: nested ones could double the length at every
// level.
const maxText = 1 << 20

// maxSteps bounds how many values are evaluated: nested functions could evaluate ten times as many at every level. A
// template of 1 MB has fewer.
const maxSteps = 1 << 20

// member returns the evaluated value of m, and whether m exists: AWS::NoValue does not. The value
// is nil if it is wrong, which has been reported.
func (l *loader) member(p place, m member) (v *node, stands bool) {
	before := l.reported()
	v = l.evaluate(p, m.value)
	return v, v != nil || m.value == nil || l.reported() > before
}

// evaluate returns n with its functions evaluated. It returns nil if n is AWS::NoValue or wrong,
// which has then been reported.
func (l *loader) evaluate(p place, n *node) *node {
	if n == nil {
		return nil // it was wrong the first time
	}
	if l.steps++; l.steps > maxSteps {
		l.refuse(p, n, "the functions of the template take too long: nest them less")
		return nil
	}
	if name, argument := n.intrinsic(); name != "" {
		if n = l.call(p, n, name, argument); n == nil || n.kind != scalar {
			return n
		}
	}
	switch n.kind {
	case list:
		result := &node{kind: list, line: n.line}
		for i, item := range n.items {
			if v := l.evaluate(p.at(fmt.Sprintf("[%d]", i)), item); v != nil {
				result.items = append(result.items, v)
			} else if l.steps > maxSteps {
				return nil // each of the others would only be another finding
			}
		}
		return result
	case mapping:
		result := &node{kind: mapping, line: n.line}
		for _, m := range n.members {
			if v, stands := l.member(p.at(m.key), m); stands {
				result.members = append(result.members, member{m.key, m.line, v})
			}
			if l.steps > maxSteps {
				return nil
			}
		}
		return result
	}
	if strings.Contains(n.text, "{{resolve:") {
		l.refuse(p, n, "%q is looked up on AWS: make it a parameter, and pass --param", n.text)
		return nil
	}
	return n
}

// call returns the result of the function called name.
func (l *loader) call(p place, n *node, name string, argument *node) *node {
	switch name {
	case "Ref":
		if argument.kind != scalar {
			l.refuse(p, n, "Ref takes the name of a resource or a parameter")
			return nil
		}
		return l.ref(p, n, argument.text)
	case "Fn::GetAtt":
		return l.getAtt(p, n, argument)
	case "Fn::Sub":
		return l.sub(p, n, argument)
	case "Fn::Join":
		return l.join(p, n, argument)
	case "Fn::Split":
		return l.split(p, n, argument)
	case "Fn::Select":
		return l.choose(p, n, argument)
	case "Fn::FindInMap":
		return l.findInMap(p, n, argument)
	case "Fn::If":
		return l.either(p, n, argument)
	case "Fn::ImportValue":
		l.refuse(p, n, "Fn::ImportValue reads another stack, and there is none here: make it a parameter, and pass --param")
	default:
		l.refuse(p, n, "%s is not known here, or not at this place: Ref, GetAtt, Sub, Join, Split, Select, FindInMap and If are", name)
	}
	return nil
}

// arguments returns the n arguments of a function, evaluated; nil if their number differs.
func (l *loader) arguments(p place, at *node, name string, n int, argument *node, form string) []*node {
	if argument.kind != list || len(argument.items) != n {
		l.refuse(p, at, "%s has to have the form %s", name, form)
		return nil
	}
	result := make([]*node, n)
	for i, item := range argument.items {
		if result[i] = l.evaluate(p, item); result[i] == nil {
			return nil
		}
	}
	return result
}

func (l *loader) join(p place, n, argument *node) *node {
	const form = "[delimiter, [values]]"
	a := l.arguments(p, n, "Fn::Join", 2, argument, form)
	if a == nil {
		return nil
	}
	if a[0].kind != scalar || a[1].kind != list {
		l.refuse(p, n, "Fn::Join has to have the form %s", form)
		return nil
	}
	var b strings.Builder
	for i, item := range a[1].items {
		if item.kind != scalar {
			l.refuse(p, n, "Fn::Join joins texts, and value %d is %v", i+1, item.kind)
			return nil
		}
		if i > 0 {
			b.WriteString(a[0].text)
		}
		b.WriteString(item.text)
		if !l.short(p, n, b.Len()) {
			return nil
		}
	}
	return text(n, b.String())
}

func (l *loader) short(p place, n *node, length int) bool {
	if length > maxText {
		l.refuse(p, n, "the text that this makes is longer than %d bytes", maxText)
	}
	return length <= maxText
}

func (l *loader) split(p place, n, argument *node) *node {
	const form = "[delimiter, text]"
	a := l.arguments(p, n, "Fn::Split", 2, argument, form)
	if a == nil {
		return nil
	}
	if a[0].kind != scalar || a[1].kind != scalar || a[0].text == "" {
		l.refuse(p, n, "Fn::Split has to have the form %s", form)
		return nil
	}
	result := &node{kind: list, line: n.line}
	for part := range strings.SplitSeq(a[1].text, a[0].text) {
		result.items = append(result.items, text(n, part))
	}
	return result
}

func (l *loader) choose(p place, n, argument *node) *node {
	const form = "[index, [values]]"
	a := l.arguments(p, n, "Fn::Select", 2, argument, form)
	if a == nil {
		return nil
	}
	index, err := strconv.Atoi(a[0].text)
	if err != nil || a[1].kind != list {
		l.refuse(p, n, "Fn::Select has to have the form %s", form)
		return nil
	}
	if index < 0 || index >= len(a[1].items) {
		l.refuse(p, n, "Fn::Select takes value %d of a list of %d: the first is 0", index, len(a[1].items))
		return nil
	}
	return a[1].items[index]
}

func (l *loader) findInMap(p place, n, argument *node) *node {
	const form = "[map, key, second key]"
	a := l.arguments(p, n, "Fn::FindInMap", 3, argument, form)
	if a == nil {
		return nil
	}
	found := l.mappings
	for _, key := range a {
		if found = found.get(key.text); found == nil {
			l.refuse(p, n, "Fn::FindInMap: there is no %q on the way %s, %s, %s: correct one, or add it to Mappings", key.text, a[0].text, a[1].text, a[2].text)
			return nil
		}
	}
	return found
}

// either evaluates one of two values only: the other may be invalid here.
func (l *loader) either(p place, n, argument *node) *node {
	if argument.kind != list || len(argument.items) != 3 || argument.items[0].kind != scalar {
		l.refuse(p, n, "Fn::If has to have the form [condition, value, value otherwise]")
		return nil
	}
	holds, ok := l.condition(p, n, argument.items[0].text)
	switch {
	case !ok:
		return nil
	case holds:
		return l.evaluate(p, argument.items[1])
	}
	return l.evaluate(p, argument.items[2])
}

// sub replaces ${Name} and ${Name.Attribute}; ${!Name} stands for ${Name} itself.
func (l *loader) sub(p place, n, argument *node) *node {
	pattern, variables := argument, (*node)(nil)
	if argument.kind == list {
		if len(argument.items) != 2 || argument.items[1].kind != mapping {
			l.refuse(p, n, "Fn::Sub takes a text, or [text, {name: value}]")
			return nil
		}
		pattern, variables = argument.items[0], argument.items[1]
	}
	if pattern.kind != scalar {
		l.refuse(p, n, "Fn::Sub takes a text, and this is %v", pattern.kind)
		return nil
	}
	var b strings.Builder
	rest := pattern.text
	for {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			return text(n, b.String())
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			l.refuse(p, n, "Fn::Sub: %q is not closed by }", "${"+after)
			return nil
		}
		rest = tail
		if literal, found := strings.CutPrefix(name, "!"); found {
			b.WriteString("${" + literal + "}")
			continue
		}
		value := l.variable(p, n, name, variables)
		if value == nil {
			return nil
		}
		if value.kind != scalar {
			l.refuse(p, n, "Fn::Sub: ${%s} is %v, not a text", name, value.kind)
			return nil
		}
		b.WriteString(value.text)
		if !l.short(p, n, b.Len()) {
			return nil
		}
	}
}

func (l *loader) variable(p place, n *node, name string, variables *node) *node {
	if v := variables.get(name); v != nil {
		return l.evaluate(p, v)
	}
	if id, attribute, found := strings.Cut(name, "."); found {
		return l.attribute(p, n, id, attribute)
	}
	return l.ref(p, n, name)
}
