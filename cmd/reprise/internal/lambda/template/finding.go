package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

// Finding is something about a template that its author should know.
type Finding struct {
	File string
	Line int // 0: no line of its own
	// Resource is the logical id, or the section; empty: the template as a whole.
	Resource string
	// Property is the path below the resource's Properties; empty: the resource.
	Property string
	// Text says what is wrong, and what to do.
	Text string
	// Refused says that the template is not run because of it.
	Refused bool
}

// String is FILE:LINE: RESOURCE, PROPERTY: TEXT.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	switch {
	case f.Resource != "" && f.Property != "":
		b.WriteString(f.Resource + ", " + f.Property + ": ")
	case f.Resource != "":
		b.WriteString(f.Resource + ": ")
	}
	return b.String() + f.Text
}

// Findings is the error of a template that is refused: at least one.
type Findings []Finding

func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// place is what a finding is about.
type place struct {
	resource string
	property string // a path
	line     int    // where the resource begins, for what has no line of its own
}

// at is the member called name of what stands here.
func (p place) at(name string) place {
	if p.property != "" && !strings.HasPrefix(name, "[") {
		name = "." + name
	}
	p.property += name
	return p
}

func (l *loader) report(p place, n *node, refused bool, format string, args ...any) {
	line := p.line
	if n != nil {
		line = n.line
	}
	f := Finding{File: l.options.File, Line: line, Resource: p.resource, Property: p.property, Refused: refused}
	if !l.of(f).full() {
		f.Text = fmt.Sprintf(format, args...)
	}
	l.keep(f)
}

// maxFindings is how many refusals are reported of a template, and how many warnings.
const maxFindings = 100

// kept are the first findings of a kind, and the number of all.
type kept struct {
	first  []Finding
	number int
}

func (k *kept) full() bool { return len(k.first) == maxFindings }

// sorted returns what was kept by line, then how many there are besides.
func (k *kept) sorted(file string) []Finding {
	slices.SortStableFunc(k.first, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	if more := k.number - len(k.first); more > 0 {
		return append(k.first, Finding{
			File: file, Refused: k.first[0].Refused, Text: plural.Of(more, "more finding") + " not shown: mend these first",
		})
	}
	return k.first
}

// of is where findings of f's kind are kept.
func (l *loader) of(f Finding) *kept {
	if f.Refused {
		return &l.refusals
	}
	return &l.warnings
}

func (l *loader) keep(f Finding) {
	k := l.of(f)
	if k.number++; !k.full() {
		k.first = append(k.first, f)
	}
}

// reported is the number of findings until now.
func (l *loader) reported() int { return l.refusals.number + l.warnings.number }

// refuse says why the template is not run. n may be nil.
func (l *loader) refuse(p place, n *node, format string, args ...any) {
	l.report(p, n, true, format, args...)
}

// warn says what is not run here. n may be nil.
func (l *loader) warn(p place, n *node, format string, args ...any) {
	l.report(p, n, false, format, args...)
}
