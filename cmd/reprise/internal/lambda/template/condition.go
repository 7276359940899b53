package template

const conditionsSection = "Conditions"

// condition is one of the section Conditions.
type condition struct {
	n       *node
	holds   bool
	valid   bool
	done    bool
	started bool
}

func (l *loader) loadConditions(n *node) {
	l.conditions = make(map[string]*condition)
	for _, m := range members(n) {
		l.conditions[m.key] = &condition{n: m.value}
	}
	for _, m := range members(n) {
		l.condition(place{resource: conditionsSection, property: m.key}, m.value, m.key)
	}
}

// condition reports whether the condition called name holds. If ok is false that is unknown,
// which has been reported.
func (l *loader) condition(p place, at *node, name string) (holds, ok bool) {
	c := l.conditions[name]
	switch {
	case c == nil:
		l.refuse(p, at, "there is no condition %q: add it to Conditions, or correct the name", name)
		return false, false
	case c.done:
		if !c.valid && l.noteEachUse {
			l.refuse(p, at, "whether the condition %q holds is not known: pass the parameters that it depends on with --param, or correct it", name)
		}
		return c.holds, c.valid
	case c.started:
		l.refuse(p, at, "the condition %q depends on itself", name)
		return false, false
	}
	c.started = true
	c.holds, c.valid = l.holds(place{resource: conditionsSection, property: name}, c.n)
	c.done = true
	return c.holds, c.valid
}

// holds evaluates the function of a condition.
func (l *loader) holds(p place, n *node) (holds, ok bool) {
	if n.kind != mapping || len(n.members) != 1 {
		l.refuse(p, n, "a condition is one of Fn::Equals, Fn::And, Fn::Or, Fn::Not, Condition")
		return false, false
	}
	name, argument := n.members[0].key, n.members[0].value
	switch name {
	case "Condition":
		if argument.kind == scalar {
			return l.condition(p, n, argument.text)
		}
	case "Fn::Equals":
		a := l.arguments(p, n, name, 2, argument, "[value, value]")
		if a == nil {
			return false, false
		}
		if a[0].kind == scalar && a[1].kind == scalar {
			return a[0].text == a[1].text, true
		}
	case "Fn::Not":
		if argument.kind == list && len(argument.items) == 1 {
			holds, ok = l.holds(p, argument.items[0])
			return !holds, ok
		}
	case "Fn::And", "Fn::Or":
		if argument.kind == list && len(argument.items) >= 2 && len(argument.items) <= 10 {
			return l.holdTogether(p, argument.items, name == "Fn::And")
		}
	}
	l.refuse(p, n, "a condition is Fn::Equals: [value, value], Fn::And or Fn::Or: [2 to 10 conditions], Fn::Not: [condition], or Condition: name")
	return false, false
}

// holdTogether evaluates all of them, so that each mistake is found.
func (l *loader) holdTogether(p place, items []*node, all bool) (holds, ok bool) {
	holds, ok = all, true
	for _, item := range items {
		one, valid := l.holds(p, item)
		ok = ok && valid
		if one != all {
			holds = one
		}
	}
	return holds, ok
}
