package sending

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// A world is one sender's machine, those who hand over messages, and a queue that
// refuses some, throttles, loses replies and is slow: in virtual time and without
// goroutines.
type world struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	set     Settings
	machine *Machine
	now     time.Time
	calm    time.Time // there are no faults from here on
	events  events
	order   int

	all       []*letter
	live      []*letter // those of all that are not gone
	underWay  int       // requests
	flushes   int       // that have not ended
	timer     time.Time
	taken     map[string][]uint64
	tracing   bool
	trace     []byte
	moves     map[[2]State]bool
	complains int
}

// letter is a message, and what has become of it.
type letter struct {
	Message
	bad     bool // the queue refuses requests with it
	has     bool // the queue has it
	answers int
	last    State
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now.Add(d), w.order, do})
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.random.Int64N(int64(d))) }

func (w *world) oneIn(n int) bool { return w.random.IntN(n) == 0 }

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, after %v: %s", w.seed, w.now.Sub(start), fmt.Sprintf(format, args...))
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, seed uint64, moves map[[2]State]bool) *world {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a simulation
	w := &world{t: t, seed: seed, random: r, now: start, taken: make(map[string][]uint64), moves: moves}
	w.set = Settings{
		FIFO:          w.oneIn(2),
		Linger:        time.Duration(r.IntN(3)) * 20 * time.Millisecond,
		Requests:      1 + r.IntN(4),
		MaxWaiting:    []int{-1, 1, 3, 12, 40}[r.IntN(5)],
		MaxBytes:      []int{-1, MaxBytes, 3 * MaxBytes}[r.IntN(3)],
		Tries:         []int{0, 0, 1, 2, 6}[r.IntN(5)],
		LastingTries:  3,
		ComplainEvery: 30 * time.Second,
		Retry:         retry.Policy{Backoff: retry.Exponential{Base: 100 * time.Millisecond, Max: 5 * time.Second}, Jitter: retry.Equal},
		Seed:          "host queue",
	}
	w.machine = New(w.set)
	w.calm = start.Add(w.upTo(time.Minute))
	return w
}

// run lets everybody do something, and returns when nothing is left to do.
func (w *world) run() {
	period := 1 + w.upTo(20*time.Second)
	for range 10 + w.random.IntN(50) {
		w.after(w.upTo(period), w.handOver)
	}
	for range w.random.IntN(4) {
		w.after(w.upTo(period), w.flush)
	}
	end := time.Hour // far beyond the last fault: by then all is answered without a hurry
	switch w.random.IntN(3) {
	case 0:
		end = w.upTo(period)
	case 1:
		end = period + w.upTo(time.Minute)
	}
	w.after(end, w.close)
	for steps := 0; len(w.events) > 0; steps++ {
		if steps > 20_000 {
			w.fatalf("no end after %d events; counts %v", steps, w.machine.counts)
		}
		next := heap.Pop(&w.events).(event)
		w.now = next.at
		next.do()
		w.settle()
	}
	w.finish()
}

func (w *world) handOver() {
	if w.machine.Closing() {
		return
	}
	for range 1 + w.random.IntN(4)*w.random.IntN(4) {
		l := &letter{bad: w.oneIn(30)}
		l.Cargo, l.Size, l.Tell = l, 1+w.random.IntN(1000), w.oneIn(2)
		if w.oneIn(20) {
			l.Size = MaxBytes - w.random.IntN(MaxBytes)
		}
		l.Group = string(rune('a' + w.random.IntN(4)))
		w.all, w.live = append(w.all, l), append(w.live, l)
		w.machine.Add(w.now, &l.Message)
		if w.oneIn(8) && (!l.Tell || l.State() == Outside) {
			w.after(w.upTo(10*time.Second), func() {
				if !l.Tell || l.State() == Outside { // as the shell does
					w.note("withdraw %d", l.number)
					w.machine.Withdraw(w.now, &l.Message)
				}
			})
		}
	}
}

func (w *world) flush() {
	f := &Flush{Cargo: &w.flushes}
	w.flushes++
	w.machine.Hurry(w.now, f)
	if w.oneIn(4) {
		w.after(w.upTo(time.Second), func() {
			if !f.ended() {
				w.machine.Forget(f)
				w.flushes--
			}
		})
	}
}

func (f *Flush) ended() bool { return f.left == 0 }

func (w *world) close() {
	w.note("close")
	w.flushes++
	f := &Flush{Cargo: &w.flushes}
	w.machine.Close(w.now, f)
	if !w.oneIn(3) {
		return
	}
	w.after(w.upTo(20*time.Second), func() { // its context ends
		if f.ended() {
			return
		}
		w.note("stop")
		w.machine.Stop()
		w.discardWhenQuiet()
	})
}

func (w *world) discardWhenQuiet() {
	if w.underWay == 0 {
		w.machine.Discard(w.now)
		return
	}
	w.after(time.Second, w.discardWhenQuiet)
}

func (w *world) note(format string, args ...any) {
	if !w.tracing {
		return
	}
	w.trace = fmt.Appendf(w.trace, "%d ", w.now.Sub(start))
	w.trace = fmt.Appendf(w.trace, format, args...)
	w.trace = append(w.trace, '\n')
}

// settle does what the shell does after an input, and checks the invariants.
func (w *world) settle() {
	for _, e := range w.machine.Effects() {
		w.carryOut(e)
	}
	w.machine.Done()
	for batch := w.machine.Next(w.now); batch != nil; batch = w.machine.Next(w.now) {
		w.request(batch)
	}
	if len(w.machine.Effects()) > 0 {
		w.fatalf("Next left effects %v, which nobody carries out", w.machine.Effects())
	}
	w.check()
	if at := w.machine.Deadline(); !at.IsZero() {
		if !at.After(w.now) {
			w.fatalf("the deadline is %v ago", w.now.Sub(at))
		}
		if w.timer.Equal(at) {
			return
		}
		w.timer = at
		w.after(at.Sub(w.now), func() {
			if w.timer.Equal(w.now) { // it has not been set anew
				w.timer = time.Time{}
				w.machine.Due(w.now)
			}
		})
	}
}

func (w *world) carryOut(e Effect) {
	if e.Kind == Flushed {
		*e.Flush.Cargo.(*int)--
		for _, l := range w.live {
			if l.number <= e.Flush.upTo && l.state != Gone {
				w.fatalf("a flush ended while message %d is %v", l.number, l.state)
			}
		}
		return
	}
	l := e.Message.Cargo.(*letter)
	w.note("effect %d %v %d", e.Kind, e.From, l.number)
	switch e.Kind {
	case Answered, GivenUp, Abandoned:
		if l.answers++; l.answers > 1 {
			w.fatalf("message %d is answered %d times", l.number, l.answers)
		}
		if l.has && !l.unsure && e.Kind != Answered {
			w.fatalf("message %d is given up as certainly unsent, but the queue has it", l.number)
		}
		if l.state == Telling {
			w.after(w.upTo(time.Second), func() { w.machine.Told(w.now, &l.Message) })
		}
	case Complain:
		if w.complains++; l.tries < 2 {
			w.fatalf("a complaint at the first failure")
		}
	}
}

// request sends a batch to the queue.
func (w *world) request(batch []*Message) {
	if len(batch) == 0 {
		w.fatalf("an empty request")
	}
	bytes := 0
	for _, m := range batch {
		w.note("send %d", m.number)
		if bytes += m.Size; m.alone && len(batch) > 1 {
			w.fatalf("message %d, which was refused together with others, is sent with others again", m.number)
		}
		tries := m.tries
		if m.alone {
			tries-- // it may have been refused together with others
		}
		if w.set.Tries > 0 && tries >= w.set.Tries {
			w.fatalf("message %d is sent again after %d requests, the limit is %d", m.number, m.tries, w.set.Tries)
		}
	}
	if len(batch) > MaxEntries || bytes > MaxBytes {
		w.fatalf("a request of %d messages, %d bytes", len(batch), bytes)
	}
	live := batch[:0]
	for _, m := range batch {
		if m.Tell && w.oneIn(40) { // its context has ended
			w.machine.Drop(w.now, m)
		} else {
			live = append(live, m)
		}
	}
	for _, e := range w.machine.Effects() {
		w.carryOut(e)
	}
	w.machine.Done()
	w.underWay++
	took := time.Duration(1)
	if w.faulty() {
		took += w.upTo(10 * time.Second)
	}
	mode := w.random.IntN(12)
	w.after(took/2, func() { // the queue has it
		results := w.serve(live, mode)
		w.after(took/2+1, func() {
			w.underWay--
			w.note("reply %v", results)
			w.machine.Replied(w.now, live, &results)
		})
	})
}

func (w *world) faulty() bool { return w.now.Before(w.calm) }

// serve is what the queue makes of a request.
func (w *world) serve(batch []*Message, mode int) (results [MaxEntries]Result) {
	all := func(r Result) {
		for i := range batch {
			results[i] = r
		}
	}
	for _, m := range batch {
		if m.Cargo.(*letter).bad {
			all(Result{Verdict: Unacceptable})
			return results
		}
	}
	if !w.faulty() {
		mode = -1
	}
	switch mode {
	case 0: // a throttle
		all(Result{Verdict: Failed})
		return results
	case 1: // the queue is missing
		all(Result{Verdict: Lasting})
		return results
	case 2: // lost on the way there
		all(Result{Verdict: Failed, Unsure: true})
		return results
	}
	for i, m := range batch {
		if mode == 3 && w.oneIn(2) {
			results[i].Verdict = Failed
			continue
		}
		if mode == 4 && w.oneIn(5) {
			results[i].Verdict = Refused
			continue
		}
		w.take(m.Cargo.(*letter))
	}
	if mode == 5 { // the reply is lost
		all(Result{Verdict: Failed, Unsure: true})
	}
	return results
}

// take puts a message into the queue. A FIFO queue drops the second copy.
func (w *world) take(l *letter) {
	if l.has {
		if !l.unsure {
			w.fatalf("message %d is sent twice although its reply arrived", l.number)
		}
		return
	}
	l.has = true
	if taken := w.taken[l.Group]; w.set.FIFO && len(taken) > 0 && taken[len(taken)-1] > l.number {
		w.fatalf("group %s: message %d comes after %d", l.Group, l.number, taken[len(taken)-1])
	}
	w.taken[l.Group] = append(w.taken[l.Group], l.number)
}

// check holds what is true after every step.
func (w *world) check() {
	m := w.machine
	inside, bytes := 0, 0
	var heads [26]int
	live := w.live
	w.live = live[:0]
	for _, l := range live {
		if l.state != l.last {
			w.moves[[2]State{l.last, l.state}] = true
			l.last = l.state
		}
		if l.state != Gone {
			w.live = append(w.live, l)
		}
		if !l.state.hasRoom() {
			continue
		}
		inside++
		bytes += l.Size
		if l.state != Behind {
			heads[l.Group[0]-'a']++
		}
		if l.state == Ready && m.requests < w.set.Requests && !m.stopped && !w.now.Before(l.at.Add(w.set.Linger)) {
			w.fatalf("message %d has lingered for %v while a request could be made", l.number, w.now.Sub(l.at))
		}
	}
	switch {
	case w.set.MaxWaiting >= 0 && inside > w.set.MaxWaiting:
		w.fatalf("%d messages have room, more than %d", inside, w.set.MaxWaiting)
	case w.set.MaxBytes >= 0 && bytes > w.set.MaxBytes:
		w.fatalf("messages of %d bytes have room, more than %d", bytes, w.set.MaxBytes)
	case inside != m.inside() || bytes != m.bytes:
		w.fatalf("%d messages of %d bytes have room, but the machine counts %d of %d", inside, bytes, m.inside(), m.bytes)
	case w.underWay > w.set.Requests || w.underWay != m.requests:
		w.fatalf("%d requests are under way: the machine counts %d, the limit is %d", w.underWay, m.requests, w.set.Requests)
	case m.outside.first != nil && m.hasRoom(m.outside.first):
		w.fatalf("message %d waits for room although there is some", m.outside.first.number)
	}
	for g, n := range heads {
		if w.set.FIFO && n > 1 {
			w.fatalf("group %c has %d messages that may be in a request at once", 'a'+g, n)
		}
	}
}

// finish holds what is true in the end: everything is answered, and nothing is left.
func (w *world) finish() {
	for _, l := range w.all {
		if l.answers != 1 || l.state != Gone {
			w.fatalf("message %d is %v in the end, and was answered %d times", l.number, l.state, l.answers)
		}
	}
	m := w.machine
	if m.counts != [states]int{} || m.bytes != 0 || m.requests != 0 || len(m.groups) != 0 || w.flushes != 0 || len(m.flushes) != 0 {
		w.fatalf("left in the end: counts %v, %d bytes, %d requests, %d groups, %d flushes", m.counts, m.bytes, m.requests, len(m.groups), w.flushes)
	}
	if most := 1 + int(w.now.Sub(start)/w.set.ComplainEvery); w.complains > most {
		w.fatalf("%d complaints, at most %d may be made", w.complains, most)
	}
}

// TestSimulation runs many seeds, each with other settings, messages and faults. All
// permitted moves between states must have been seen in the end.
func TestSimulation(t *testing.T) {
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 1000
	}
	began := time.Now()
	moves := make(map[[2]State]bool)
	messages := 0
	for seed := range seeds {
		w := newWorld(t, seed, moves)
		w.run()
		messages += len(w.all)
	}
	t.Logf("%d seeds with %d messages: %.0f seeds a second", seeds, messages, float64(seeds)/time.Since(began).Seconds())
	for from := range states {
		for _, to := range permitted[from] {
			if !moves[[2]State{from, to}] {
				t.Errorf("no seed has moved a message from %v to %v", from, to)
			}
		}
	}
}

// TestSimulationRepeats holds that a seed gives the same run, byte for byte.
func TestSimulationRepeats(t *testing.T) {
	for seed := range uint64(50) {
		first, second := newWorld(t, seed, make(map[[2]State]bool)), newWorld(t, seed, make(map[[2]State]bool))
		first.tracing, second.tracing = true, true
		first.run()
		second.run()
		if len(first.trace) == 0 || string(first.trace) != string(second.trace) {
			t.Fatalf("seed %d gives two different runs", seed)
		}
	}
}

// TestSimulationVaries holds that different seeds give different runs.
func TestSimulationVaries(t *testing.T) {
	seen := make(map[uint64]uint64)
	for seed := range uint64(50) {
		w := newWorld(t, seed, make(map[[2]State]bool))
		w.tracing = true
		w.run()
		h := fnv.New64a()
		_, _ = h.Write(w.trace)
		if other, ok := seen[h.Sum64()]; ok {
			t.Fatalf("seeds %d and %d give the same run", other, seed)
		}
		seen[h.Sum64()] = seed
	}
}

// FuzzSimulation looks for a seed that breaks an invariant.
func FuzzSimulation(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		newWorld(t, seed, make(map[[2]State]bool)).run()
	})
}
