package template

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// schema has the treatment of each permitted member of a mapping.
type schema map[string]treatment

// treatment is how a property is treated.
type treatment struct {
	kind how
	// text tells what is not done here, or what to do instead.
	text string
}

type how int

const (
	isUsed how = iota
	isRaw
	isHarmless
	isWarned
	isRefused
)

var (
	used = treatment{kind: isUsed}
	// raw properties are used, and evaluated later.
	raw = treatment{kind: isRaw}
	// harmless properties make no difference to a local run.
	harmless = treatment{kind: isHarmless}
)

// warned properties have no effect here; the rest works without them.
func warned(text string) treatment { return treatment{isWarned, text} }

// refused properties would change how the stack runs.
func refused(text string) treatment { return treatment{isRefused, text} }

// open evaluates the members of a mapping that are used, and reports the others. It returns nil
// if n is not a mapping. A member with a wrong value is reported, and nil in the result.
func (l *loader) open(p place, n *node, s schema) map[string]*node {
	if n == nil {
		return nil
	}
	if name, _ := n.intrinsic(); name != "" {
		if n = l.evaluate(p, n); n == nil {
			return nil
		}
	}
	if n.kind != mapping {
		l.refuse(p, n, "this is %v: it has to be a mapping", n.kind)
		return nil
	}
	result := make(map[string]*node, len(n.members))
	for _, m := range n.members {
		at := p.at(m.key)
		t, known := s[m.key]
		switch {
		case !known:
			l.refuse(at, m.value, "there is no such property%s: correct its name, or remove it", suggest(m.key, maps.Keys(s)))
		case t.kind == isUsed:
			if v, stands := l.member(at, m); stands {
				result[m.key] = v
			}
		case t.kind == isRaw:
			result[m.key] = m.value
		case t.kind == isRefused:
			l.refuse(at, m.value, "%s", t.text)
		case t.kind == isWarned:
			l.warn(at, m.value, "%s", t.text)
		}
	}
	return result
}

// missing reports whether a mapping has no member called name, not even with a wrong value.
func missing(properties map[string]*node, name string) bool {
	_, stands := properties[name]
	return !stands
}

// members returns the members of a section; none if the template does not have it.
func members(n *node) []member {
	if n == nil {
		return nil
	}
	return n.members
}

// scalar returns the text of n; if n is not a single value it reports that, and returns "".
func (l *loader) scalar(p place, n *node) string {
	if n == nil {
		return ""
	}
	if n.kind != scalar {
		l.refuse(p, n, "this is %v: it has to be a single value", n.kind)
		return ""
	}
	return n.text
}

// integer returns the number n, of a range; fallback if n is nil or not such a number.
func (l *loader) integer(p place, n *node, lowest, highest, fallback int) int {
	if n == nil {
		return fallback
	}
	i, err := strconv.Atoi(strings.TrimSpace(l.scalar(p, n)))
	if err != nil || i < lowest || i > highest {
		if n.kind == scalar {
			l.refuse(p, n, "%q is not a number from %d to %d: write one", n.text, lowest, highest)
		}
		return fallback
	}
	return i
}

// boolean returns n as true or false; fallback if n is nil or neither.
func (l *loader) boolean(p place, n *node, fallback bool) bool {
	if n == nil {
		return fallback
	}
	switch strings.ToLower(l.scalar(p, n)) {
	case "true":
		return true
	case "false":
		return false
	case "":
	default:
		l.refuse(p, n, "%q is neither true nor false", n.text)
	}
	return fallback
}

// choice returns the text of n if it is one of those given; "" if n is nil or another text.
func (l *loader) choice(p place, n *node, choices ...string) string {
	s := l.scalar(p, n)
	if s == "" || slices.Contains(choices, s) {
		return s
	}
	l.refuse(p, n, "%q is not known here: write %s", s, strings.Join(choices, " or "))
	return ""
}

// elements returns the elements of a list; if n is not a list it reports that, and returns nil.
func (l *loader) elements(p place, n *node) []*node {
	if n == nil {
		return nil
	}
	if n.kind != list {
		l.refuse(p, n, "this is %v: it has to be a list", n.kind)
		return nil
	}
	return n.items
}

// suggestion suggests the name that is nearest to a wrong one. The search happens when it is
// formatted: of many findings most are only counted.
type suggestion struct {
	name  string
	names iter.Seq[string]
}

func suggest(name string, names iter.Seq[string]) suggestion { return suggestion{name, names} }

// String returns "" or " (NAME?)".
func (s suggestion) String() string {
	const far = 3
	best, distance := "", far
	for _, candidate := range slices.Sorted(s.names) {
		if d := editDistance(strings.ToLower(s.name), strings.ToLower(candidate), far); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (%s?)", best)
}

// editDistance returns how many characters must be inserted, removed or changed to turn a into b
// (Levenshtein's distance), at most limit.
func editDistance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
