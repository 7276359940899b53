package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

// Finding is a problem of a template, for its author.
type Finding struct {
	File string
	Line int // 0: no line of its own
	// Resource is the logical id, or the section; empty: the template as a whole.
	Resource string
	// Property is the path below the resource's Properties; empty: the resource.
	Property string
	// Text is the problem and the remedy.
	Text string
	// Refused means that the template is not run because of it.
	Refused bool
}

// String returns FILE:LINE: RESOURCE, PROPERTY: TEXT.
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

// place is the place of a finding.
type place struct {
	resource string
	property string // a path
	line     int    // where the resource begins, for nodes without a line
}

// at returns the place of the member called name.
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

// maxFindings is how many refusals, and how many warnings, of a template are reported.
const maxFindings = 100

// kept has the first findings of a kind, and the number of all of them.
type kept struct {
	first  []Finding
	number int
}

func (k *kept) full() bool { return len(k.first) == maxFindings }

// sorted returns the kept findings by line, then the number of the others.
func (k *kept) sorted(file string) []Finding {
	slices.SortStableFunc(k.first, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	if more := k.number - len(k.first); more > 0 {
		return append(k.first, Finding{
			File: file, Refused: k.first[0].Refused, Text: plural.Of(more, "more finding") + " not shown: correct these first",
		})
	}
	return k.first
}

// of returns the list for findings of f's kind.
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

// reported returns the number of findings so far.
func (l *loader) reported() int { return l.refusals.number + l.warnings.number }

// refuse reports why the template is not run. n may be nil.
func (l *loader) refuse(p place, n *node, format string, args ...any) {
	l.report(p, n, true, format, args...)
}

// warn reports a part of the template that is not run here. n may be nil.
func (l *loader) warn(p place, n *node, format string, args ...any) {
	l.report(p, n, false, format, args...)
}
