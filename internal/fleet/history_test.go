package fleet_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"time"
)

// event is something that happened.
type event struct {
	at    time.Time
	token string // empty: to no message
	node  int    // 0: none
	text  string
}

func (e event) String() string {
	return fmt.Sprintf("%s node %d %s %s", clock(e.at), e.node, e.token, e.text)
}

// note adds an event to the history, and returns the message that it is about.
func (f *fleet) note(token string, n *node, format string, args ...any) *part {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log(token, n, format, args...)
	return f.parts[token]
}

// log is note for a caller that holds f.mu. A dead process has no history.
func (f *fleet) log(token string, n *node, format string, args ...any) {
	if !n.crashed {
		f.events = append(f.events, event{time.Now(), token, n.number, fmt.Sprintf(format, args...)})
	}
}

// record returns what the fleet leaves behind. What happened at one instant is put
// into one order: it has none.
func (f *fleet) record() record {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := record{lived: time.Since(f.began), messages: len(f.line)}
	for _, p := range f.line {
		r.runs += p.total
	}
	slices.SortStableFunc(f.events, func(a, b event) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.node, b.node), cmp.Compare(a.token, b.token), cmp.Compare(a.text, b.text))
	})
	h := fnv.New64a()
	for _, e := range f.events {
		line := fmt.Sprint(e.at.UnixNano(), " ", e)
		fmt.Fprintln(h, line)
		r.events = append(r.events, line)
	}
	r.trace = h.Sum64()
	return r
}

// broken fails the test with an invariant that does not hold, the first time, and
// the history of the message concerned, if it is one. The caller holds f.mu.
func (f *fleet) broken(invariant string, p *part, format string, args ...any) {
	f.t.Helper()
	if f.guilty[invariant] {
		return
	}
	f.guilty[invariant] = true
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks: %s\n\tat %s: %s\n\tfifo %v, receives %d, calm %v, leaky %v, faults %+v, redeliveries %d %%", f.seed, invariant, clock(time.Now()), fmt.Sprintf(format, args...), f.fifo, f.receives, f.calm, f.leaky, f.faults, f.twice)
	token := ""
	if p != nil {
		token = p.token
		fmt.Fprintf(&b, "\n\tmessage %s:", token)
	}
	var lines []string
	for _, e := range f.events {
		if e.token == token && token != "" || e.token == "" && !strings.HasPrefix(e.text, "asks for ") { // most of them in vain
			lines = append(lines, e.String())
		}
	}
	const shown = 60
	fmt.Fprintf(&b, "\n\t\t%s", strings.Join(lines[max(0, len(lines)-shown):], "\n\t\t"))
	if invariant == *fleetUntil {
		fmt.Println(b.String()) // a mutant may keep its fleet from ever ending
		os.Exit(1)
	}
	f.t.Error(b.String())
}
