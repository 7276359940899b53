package operate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Group is a group of dead letters that were given up for the same reason, on the same queue,
// with like errors.
type Group struct {
	Reason string `json:"reason"`
	// Source is the name of the queue that they came from; empty: not known.
	Source string `json:"source,omitempty"`
	// Error is the last error of the one that died last (of several that died at that time, the
	// first error by alphabet); Pattern is the common text of all their errors: numbers, ids and
	// times are left out.
	Error   string    `json:"error,omitempty"`
	Pattern string    `json:"pattern,omitempty"`
	Count   int       `json:"count"`
	First   time.Time `json:"first,omitzero"` // when they died
	Last    time.Time `json:"last,omitzero"`
	// Samples are ids of some of them.
	Samples []string `json:"samples"`
}

// maxSamples is how many ids a group shows, and maxGroups how many groups there are: errors
// can have any text, so there could be as many groups as letters. The others are counted
// together.
const (
	maxSamples = 3
	maxGroups  = 1000
)

// ReasonAlive is the reason of a group of messages that are no dead letters.
const ReasonAlive = "not dead"

// Groups gathers dead letters.
type Groups struct {
	// Alive says that no queue names this one as its dead-letter queue: then messages that do not say why
	// they died are alive.
	Alive bool

	byKey    map[[3]string]*Group
	patterns map[string]string // of errors that were seen before
}

// maxPatterns is how many errors are remembered: most letters of an outage have the same, and to
// find a pattern takes longer than all the rest.
const maxPatterns = 10_000

// pattern is Pattern of an error.
func (g *Groups) pattern(err string) string {
	if known, ok := g.patterns[err]; ok {
		return known
	}
	found := Pattern(err)
	if g.patterns == nil {
		g.patterns = make(map[string]string)
	}
	if len(g.patterns) < maxPatterns {
		g.patterns[strings.Clone(err)] = found // without the message around it
	}
	return found
}

// Add counts a letter.
func (g *Groups) Add(m *Message) {
	if g.byKey == nil {
		g.byKey = make(map[[3]string]*Group)
	}
	d := Death{Reason: "unknown"}
	switch {
	case m.Death != nil:
		d = *m.Death
	case g.Alive:
		d.Reason = ReasonAlive
	}
	pattern := g.pattern(d.Error)
	key := [3]string{d.Reason, NameOf(lastPart(d.Source)), pattern}
	group := g.byKey[key]
	if group == nil {
		if len(g.byKey) >= maxGroups {
			key = [3]string{"other"}
			d, pattern = Death{At: d.At}, ""
			group = g.byKey[key]
		}
		if group == nil {
			group = &Group{Reason: key[0], Source: key[1], Error: d.Error, Pattern: pattern}
			g.byKey[key] = group
		}
	}
	at := d.At
	if at.IsZero() {
		at = m.Sent
	}
	group.Count++
	if group.First.IsZero() || at.Before(group.First) {
		group.First = at
	}
	group.diedAt(at, d.Error)
	if len(group.Samples) < maxSamples {
		group.Samples = append(group.Samples, m.ID)
	}
}

// diedAt notes that letters of g died until then, the last of them with an error. Readers bring
// letters in any order, and a group shows the same error whatever the order.
func (g *Group) diedAt(then time.Time, err string) {
	switch {
	case then.After(g.Last):
		g.Last, g.Error = then, err
	case then.Equal(g.Last) && err < g.Error:
		g.Error = err
	}
}

// Merge adds what other has gathered.
func (g *Groups) Merge(other *Groups) {
	for key, group := range other.byKey {
		if g.byKey == nil {
			g.byKey = make(map[[3]string]*Group)
		}
		mine := g.byKey[key]
		if mine == nil && len(g.byKey) < maxGroups {
			g.byKey[key] = group
			continue
		}
		if mine == nil {
			key = [3]string{"other"}
			if mine = g.byKey[key]; mine == nil {
				mine = &Group{Reason: key[0], First: group.First}
				g.byKey[key] = mine
			}
			group.Error = ""
		}
		mine.Count += group.Count
		if group.First.Before(mine.First) {
			mine.First = group.First
		}
		mine.diedAt(group.Last, group.Error)
		mine.Samples = append(mine.Samples, group.Samples[:min(len(group.Samples), maxSamples-len(mine.Samples))]...)
	}
}

// List returns the groups, the largest first.
func (g *Groups) List() []Group {
	groups := make([]Group, 0, len(g.byKey))
	for _, group := range g.byKey {
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Pattern, b.Pattern))
	})
	return groups
}

// maxPattern is how many bytes of an error are compared.
const maxPattern = 300

// changing are the parts of a text that differ between errors of the same cause. Regular
// expressions take most of the time of a million letters: possible reports quickly whether one can
// match at all.
var changing = []struct {
	pattern  *regexp.Regexp
	name     string
	possible func(text string) bool
}{
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "<id>", func(text string) bool {
		return strings.Count(text, "-") >= 4
	}},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>", func(text string) bool {
		return strings.Count(text, "-") >= 2 && strings.Count(text, ":") >= 2
	}},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(:\d+)?\b|\[[0-9a-fA-F:]+\](:\d+)?`), "<address>", func(text string) bool {
		return strings.Count(text, ".") >= 3 || strings.Contains(text, "[")
	}},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "<id>", func(text string) bool { return strings.Contains(text, "0x") }},
	{regexp.MustCompile(`\b[0-9a-zA-Z]*(?:\d[a-zA-Z]+\d|[a-zA-Z]\d[0-9a-zA-Z]*\d)[0-9a-zA-Z]{4,}\b`), "<id>", mixesDigits},
}

// mixesDigits reports whether text has a digit beside a letter.
func mixesDigits(text string) bool {
	for i := 1; i < len(text); i++ {
		if isDigit(text[i]) && isLetter(text[i-1]) || isLetter(text[i]) && isDigit(text[i-1]) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Pattern returns an error's text without the parts that differ between errors of the same
// cause: ids, times, addresses, numbers other than codes.
func Pattern(err string) string {
	err = strings.Join(strings.Fields(terminal.Shorten(err, maxPattern)), " ")
	var b strings.Builder
	for err != "" {
		next, end := len(err), len(err)
		if from, to, found := findCode(err); found {
			next, end = from, to
		}
		b.WriteString(withoutChanging(err[:next]) + err[next:end])
		err = err[end:]
	}
	return b.String()
}

func withoutChanging(text string) string {
	for _, c := range changing {
		if c.possible(text) {
			text = c.pattern.ReplaceAllString(text, c.name)
		}
	}
	return withoutNumbers(text)
}

// withoutNumbers replaces numbers, with their fractions, by <n>.
func withoutNumbers(text string) string {
	digits := func(from int) int {
		for from < len(text) && isDigit(text[from]) {
			from++
		}
		return from
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := digits(i)
		if end == i {
			b.WriteByte(text[i])
			i++
			continue
		}
		if end < len(text) && text[end] == '.' {
			if fraction := digits(end + 1); fraction > end+1 {
				end = fraction
			}
		}
		b.WriteString("<n>")
		i = end
	}
	return b.String()
}

// wideTable is the width from which on there is room for ids.
const wideTable = 120

// GroupsTable is a line for each group, for so many columns.
func GroupsTable(groups []Group, now time.Time, width int) Table {
	t := Table{Header: []string{"count", "reason", "from", "last", "sample", "error"}, Right: []bool{true, false, false, true, false, false}}
	for _, g := range groups {
		sample := ""
		if len(g.Samples) > 0 && width >= wideTable {
			sample = g.Samples[0]
		}
		t.Rows = append(t.Rows, []string{count(g.Count), g.Reason, g.Source, Ago(now.Sub(g.Last)), sample, cmp.Or(g.Pattern, "-")})
	}
	return t.WithoutEmpty()
}
