package operate

import (
	"cmp"
	"slices"
	"strings"
	"time"
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
	// Hours is how many died in each of the Trend hours until Groups.Now, the last hour at the end;
	// none: nothing died in them, or they are not counted.
	Hours []int `json:"hours,omitempty"`
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

// Trend is how many hours a group counts.
const Trend = 24

// ReasonAlive is the reason of a group of messages that are no dead letters.
const ReasonAlive = "not dead"

// Groups gathers dead letters.
type Groups struct {
	// Alive says that no queue names this one as its dead-letter queue: then messages that do not say why
	// they died are alive.
	Alive bool
	// Now is the end of the hours that groups count. Zero: they count none.
	Now time.Time

	byKey    map[[3]string]*Group
	patterns map[string]string // of errors that were seen before
	known    map[string]string // patterns that were seen before, by themselves
	scratch  []byte
}

// maxPatterns is how many errors, and patterns, are remembered: most letters of an outage have the same,
// and to find a pattern takes longer than all the rest.
const maxPatterns = 10_000

// pattern is Pattern of an error, and makes a text only for those that were not seen before.
func (g *Groups) pattern(err string) string {
	if pattern, ok := g.patterns[err]; ok {
		return pattern
	}
	if g.patterns == nil {
		g.patterns, g.known = make(map[string]string), make(map[string]string)
	}
	g.scratch = appendPattern(g.scratch[:0], err)
	pattern, ok := g.known[string(g.scratch)]
	if !ok {
		pattern = string(g.scratch)
		if len(g.known) < maxPatterns {
			g.known[pattern] = pattern
		}
	}
	if len(g.patterns) < maxPatterns {
		g.patterns[strings.Clone(err)] = pattern // without the message around it
	}
	return pattern
}

// Add counts a letter.
func (g *Groups) Add(m *Message) {
	if m.Death == nil {
		g.add(m.ID, m.Sent, Death{}, false)
		return
	}
	g.add(m.ID, m.Sent, *m.Death, true)
}

// AddLetter counts a letter of a server.
func (g *Groups) AddLetter(l *Letter) {
	d, isDead := l.death()
	g.add(l.ID, l.Sent, d, isDead)
}

// add counts the message id, which was sent at some time and, if it is dead, died of d.
func (g *Groups) add(id string, sent time.Time, d Death, isDead bool) {
	if g.byKey == nil {
		g.byKey = make(map[[3]string]*Group)
	}
	switch {
	case isDead:
	case g.Alive:
		d = Death{Reason: ReasonAlive}
	default:
		d = Death{Reason: "unknown"}
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
		at = sent
	}
	group.Count++
	if group.First.IsZero() || at.Before(group.First) {
		group.First = at
	}
	group.diedAt(at, d.Error)
	g.died(group, at)
	if len(group.Samples) < maxSamples {
		group.Samples = append(group.Samples, id)
	}
}

// died counts a letter of a group in its hour.
func (g *Groups) died(group *Group, at time.Time) {
	ago := g.Now.Sub(at)
	if g.Now.IsZero() || ago >= Trend*time.Hour {
		return
	}
	if group.Hours == nil {
		group.Hours = make([]int, Trend)
	}
	group.Hours[Trend-1-max(0, ago/time.Hour)]++ // other machines' clocks may be ahead
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
		if mine.Hours == nil {
			mine.Hours = group.Hours
		} else {
			for hour, n := range group.Hours {
				mine.Hours[hour] += n
			}
		}
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
