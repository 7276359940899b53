package calls

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A client adds entries and carries out the requests that a machine gives it. Beside the
// machine it keeps a list of all entries and notes of each what is to become of it.
type client struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	set     Settings
	now     time.Time
	machine Machine[*entry]
	entries []*entry // all, in the order in which they were added
	out     int      // how many of them have gone out
	under   int      // requests under way
	end     time.Time
	reasons map[string]int // why requests were closed
	trace   []byte
}

type entry struct {
	number int
	Entry[*entry]
	until time.Time // for so long it waits for others
	last  string    // why no other is to be added to its request; empty: others may be
}

func (c *client) oneIn(n int) bool { return c.random.IntN(n) == 0 }

func (c *client) upTo(d time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(d)))
}

func (c *client) fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("seed %d, after %v: %s", c.seed, c.now.Sub(start), fmt.Sprintf(format, args...))
}

// simulate adds a number of entries, and checks each request that goes out.
func simulate(t *testing.T, seed uint64) *client {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a simulation
	c := &client{t: t, seed: seed, random: r, now: start, reasons: make(map[string]int)}
	c.set = Settings{Entries: 1 + r.IntN(10), Requests: 1 + r.IntN(5), Linger: c.upTo(time.Second), Hurried: c.upTo(20 * time.Millisecond)}
	if c.oneIn(3) {
		c.set.Linger = 0
	}
	if c.oneIn(2) {
		c.set.Bytes = 100
	}
	c.machine = New[*entry](c.set)
	for n := range 200 {
		c.step(n)
		c.send()
	}
	for c.out < len(c.entries) {
		if at := c.machine.Deadline(); !at.IsZero() {
			c.now = later(c.now, at)
			c.due()
		}
		if c.under > 0 {
			c.ended()
		}
		c.send()
	}
	if at := c.machine.Deadline(); !at.IsZero() {
		c.fatalf("nothing is left, but something is due at %v", at)
	}
	return c
}

// step lets some time pass, or none, and gives the machine an input.
func (c *client) step(number int) {
	if c.oneIn(2) {
		c.now = c.now.Add(c.upTo(100 * time.Millisecond))
	}
	switch c.random.IntN(10) {
	case 0:
		if c.under > 0 {
			c.ended()
		}
	case 1, 2:
		c.due()
	case 3:
		c.machine.Flush()
		c.close("flushed")
	case 4:
		if c.end.IsZero() && c.oneIn(10) {
			c.end = c.now.Add(c.upTo(10 * time.Second))
			c.machine.Hurry(c.end)
		}
	default:
		c.add(number)
	}
}

// add adds an entry, and notes of the one before whether they may share a request.
func (c *client) add(number int) {
	e := &entry{number: number}
	e.Entry = Entry[*entry]{Cargo: e, Size: c.random.IntN(60), Alone: c.oneIn(8), Ends: c.now.Add(c.upTo(5 * time.Second))}
	if c.oneIn(20) {
		e.Size = c.random.IntN(300)
	}
	size := e.Size
	for _, other := range c.open() {
		size += other.Size
	}
	switch {
	case c.set.Bytes == 0:
	case e.Alone:
		c.close("before one alone")
	case size > c.set.Bytes:
		c.close("too large")
	}
	e.until = earlier(c.now.Add(c.set.Linger), c.tenth(e.Ends))
	if !c.end.IsZero() {
		e.until = earlier(e.until, earlier(c.now.Add(c.set.Hurried), c.tenth(c.end)))
	}
	c.entries = append(c.entries, e)
	c.machine.Add(c.now, e.Entry)
	switch {
	case c.set.Bytes > 0 && e.Alone:
		c.close("alone")
	case len(c.open()) == c.set.Entries:
		c.close("full")
	}
}

// tenth is when a tenth of the time until end has passed.
func (c *client) tenth(end time.Time) time.Time { return later(c.now, c.now.Add(end.Sub(c.now)/10)) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// open are the last entries, to whose request others may be added.
func (c *client) open() []*entry {
	n := len(c.entries)
	for n > 0 && c.entries[n-1].last == "" {
		n--
	}
	return c.entries[n:]
}

// close notes that no entry is to be added to what is open.
func (c *client) close(reason string) {
	if open := c.open(); len(open) > 0 {
		open[len(open)-1].last = reason
		c.reasons[reason]++
	}
}

// due gives the machine the time. What has waited until then is closed, and nothing else.
func (c *client) due() {
	var first time.Time
	for i, e := range c.open() {
		if i == 0 || e.until.Before(first) {
			first = e.until
		}
	}
	if at := c.machine.Deadline(); !at.Equal(first) {
		c.fatalf("the deadline is %v, want %v", at, first)
	}
	c.machine.Due(c.now)
	if !first.After(c.now) {
		c.close("waited")
	}
	if at := c.machine.Deadline(); !at.IsZero() && !at.After(c.now) {
		c.fatalf("the deadline %v is not over", at)
	}
}

func (c *client) ended() {
	c.under--
	c.machine.Ended()
}

// send takes requests from the machine until there are none.
func (c *client) send() {
	for c.under < c.set.Requests {
		left := c.entries[c.out:]
		n := slices.IndexFunc(left, func(e *entry) bool { return e.last != "" }) + 1
		want := left[:n] // nothing, if none is closed
		got := c.machine.Next()
		if !slices.Equal(got, want) {
			c.fatalf("%v goes out, want %v", numbers(got), numbers(want))
		}
		if n == 0 {
			return
		}
		c.under++
		c.out += n
		c.trace = fmt.Appendln(c.trace, c.now.Sub(start), numbers(got), got[n-1].last)
	}
	if got := c.machine.Next(); got != nil {
		c.fatalf("%v goes out beside %d requests", numbers(got), c.under)
	}
}

func numbers(batch []*entry) (all []int) {
	for _, e := range batch {
		all = append(all, e.number)
	}
	return all
}

// TestSimulation adds entries to many machines. All of them go out, each once and in
// order, with the others that they may share a request with, and not sooner.
func TestSimulation(t *testing.T) {
	reasons := make(map[string]int)
	for seed := range uint64(1000) {
		for reason, n := range simulate(t, seed).reasons {
			reasons[reason] += n
		}
	}
	for _, reason := range []string{"full", "too large", "before one alone", "alone", "flushed", "waited"} {
		if reasons[reason] < 100 {
			t.Errorf("%d requests were closed for %q: that is hardly tried", reasons[reason], reason)
		}
	}
}

// TestSimulationRepeats: one seed always gives the same story.
func TestSimulationRepeats(t *testing.T) {
	for seed := range uint64(20) {
		if first, second := simulate(t, seed), simulate(t, seed); string(first.trace) != string(second.trace) {
			t.Errorf("seed %d gave two stories", seed)
		}
	}
}
