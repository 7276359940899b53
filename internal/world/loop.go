package world

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Loop runs events in the order of their times, and at the same time in the order in which they
// were added. It is made by [NewLoop].
type Loop struct {
	// Random is the only source of randomness in the world.
	Random *rand.Rand

	start  time.Time
	now    int64 // nanoseconds since start
	last   uint64
	events []event // a heap
	atOnce int     // events that have run at this time
	err    error

	trace trace
	noted map[string]int
	tell  func(at time.Duration, text string)
}

type event struct {
	at    int64
	order uint64
	in    *Process // it happens there, if the process is alive then; nil: nowhere in particular
	who   string
	what  happening
}

// happening is what an event does. It is a type of its own where there are most events, those of
// requests, so that they need no closure.
type happening interface{ happen() }

type call func()

func (c call) happen() { c() }

// MostAtOnce is how many events may run at one time. A machine that adds events at the same time
// for ever exceeds it, which ends the run.
const MostAtOnce = 100_000

// NewLoop returns a loop that begins at start. The same seed gives the same run.
func NewLoop(start time.Time, seed uint64) *Loop {
	return &Loop{Random: rand.New(rand.NewPCG(seed, 0)), start: start, trace: newTrace, noted: make(map[string]int)} //nolint:gosec // G404: a simulation
}

// Now returns the loop's time, which no process sees: see [Process.Now].
func (l *Loop) Now() time.Time { return l.start.Add(time.Duration(l.now)) }

// Since returns how long the loop has run, in its own time.
func (l *Loop) Since() time.Duration { return time.Duration(l.now) }

// After runs do when d has passed; if d is 0 or less, after the other events that are due now.
// The error of too many events names who.
func (l *Loop) After(d time.Duration, who string, do func()) {
	l.after(d, nil, who, call(do))
}

func (l *Loop) after(d time.Duration, in *Process, who string, what happening) {
	l.last++
	l.push(event{l.now + int64(max(d, 0)), l.last, in, who, what})
}

// Run runs the events up to end, where the time then is. If too many events run at one time it
// returns an error, and later calls do nothing.
func (l *Loop) Run(end time.Duration) error {
	for l.err == nil && len(l.events) > 0 && l.events[0].at <= int64(end) {
		next := l.pop()
		if next.at > l.now {
			l.now, l.atOnce = next.at, 0
		}
		if l.atOnce++; l.atOnce > MostAtOnce {
			l.err = fmt.Errorf("world: %s has asked for %d events at one time, %v after the start: a machine must ask for a later time than now when it has nothing to do", next.who, MostAtOnce, l.Since())
			break
		}
		if next.in == nil {
			next.what.happen()
		} else {
			next.in.run(next.what)
		}
	}
	if l.err == nil {
		l.now, l.atOnce = max(l.now, int64(end)), 0
	}
	return l.err
}

// Listen calls tell with every note from now on. Without it notes are not formatted: a failing
// seed runs again to tell its story.
func (l *Loop) Listen(tell func(at time.Duration, text string)) { l.tell = tell }

// Note records an event for the trace: what happened, to whom, and a number. See [Loop.Trace].
func (l *Loop) Note(who, what string, n int64) {
	l.noted[what]++
	l.trace.number(l.now)
	l.trace.number(n)
	l.trace.text(who)
	l.trace.text(what)
	if l.tell != nil {
		l.tell(l.Since(), fmt.Sprintf("%s %s %d", who, what, n))
	}
}

// Noted counts the notes by their what: it shows a test which paths no seed has reached.
func (l *Loop) Noted() map[string]int { return l.noted }

// Trace returns a hash of all notes with their times, in their order.
func (l *Loop) Trace() uint64 { return uint64(l.trace) }

// trace is a hash, FNV-1a: that of hash/fnv costs an allocation for each string.
type trace uint64

const (
	newTrace   trace = 14695981039346656037
	tracePrime trace = 1099511628211
)

func (t *trace) number(n int64) {
	for i := range 8 {
		*t = (*t ^ trace(byte(n>>(8*i)))) * tracePrime
	}
}

func (t *trace) text(s string) {
	h := *t
	for i := range len(s) {
		h = (h ^ trace(s[i])) * tracePrime
	}
	*t = h
}

// Chance reports true with probability p.
func (l *Loop) Chance(p float64) bool { return p > 0 && l.Random.Float64() < p }

// Between draws a duration from low to high, both included.
func (l *Loop) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(l.Random.Int64N(int64(high-low)+1))
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// push and pop maintain a heap with four children per node. It is shallow, since most new events
// are due after the present ones.
func (l *Loop) push(e event) {
	l.events = append(l.events, e)
	i := len(l.events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&l.events[parent]) {
			break
		}
		l.events[i] = l.events[parent]
		i = parent
	}
	l.events[i] = e
}

func (l *Loop) pop() event {
	next := l.events[0]
	n := len(l.events) - 1
	e := l.events[n]
	l.events[n] = event{}
	l.events = l.events[:n]
	if n == 0 {
		return next
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for child := first + 1; child < min(first+4, n); child++ {
			if l.events[child].before(&l.events[least]) {
				least = child
			}
		}
		if !l.events[least].before(&e) {
			break
		}
		l.events[i] = l.events[least]
		i = least
	}
	l.events[i] = e
	return next
}
