package groups

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A world is a FIFO queue and a consumer that works it off, by itself or in batches, as
// the machine says. Handlers fail, messages wait for their time or behind a breaker,
// leases end unnoticed, and settlements are refused. As in the real consumer, the machine
// hears of messages that are gone when a step has ended.
type world struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	now     time.Time
	batches bool
	calm    bool // from here on all goes well
	machine *Machine[*letter]
	queue   [][]*letter // all that was sent, by group, in order
	held    []*letter   // by the consumer
	gone    []*letter   // the machine is yet to hear of it
	batch   []*letter   // in the handler
	trace   []byte
}

// letter is a message, as the queue knows it and as the consumer does.
type letter struct {
	Member[*letter]
	number, in int

	visible time.Time // when the queue hands it out next
	receipt int       // the newest
	deleted bool

	stage  stage
	handle int       // the receipt that the consumer knows
	due    time.Time // while it is scheduled; when it is to be visible again
	done   bool      // to be deleted
	lost   bool      // while it ran
}

// stage is where the consumer has a letter.
type stage int

const (
	away      stage = iota // not held
	waiting                // behind its group's head, or stalled
	scheduled              // for its time
	shelved                // behind a breaker
	lined                  // for a worker
	running
	settling
)

const lease = 30 * time.Second

func (w *world) oneIn(n int) bool { return w.random.IntN(n) == 0 }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.random.Int64N(int64(d))) }

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, after %v: %s", w.seed, w.now.Sub(start), fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) {
	w.trace = fmt.Appendf(w.trace, "%d ", w.now.Sub(start))
	w.trace = append(fmt.Appendf(w.trace, format, args...), '\n')
}

// run works off a queue, and checks at each step that the machine is sound.
func run(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a simulation
	w := &world{t: t, seed: seed, random: r, now: start, batches: seed%2 == 0, machine: New[*letter]()}
	w.queue = make([][]*letter, 1+r.IntN(3))
	for n := range 1 + r.IntN(40) {
		g := r.IntN(len(w.queue))
		w.queue[g] = append(w.queue[g], &letter{number: n, in: g, visible: start})
	}
	left := func() bool {
		return slices.ContainsFunc(w.queue, func(group []*letter) bool {
			return slices.ContainsFunc(group, func(l *letter) bool { return !l.deleted })
		})
	}
	for steps := 0; left() || len(w.held) > 0; steps++ {
		if w.calm = steps > 400; steps > 4000 {
			w.fatalf("no end: %d are held", len(w.held))
		}
		w.step()
		for i := 0; i < len(w.gone); i++ {
			l := w.gone[i]
			a := w.machine.Gone(&l.Member, l.done, l.due, w.now)
			w.note("gone %d %v", l.number, l.done)
			w.follow(a)
		}
		w.gone = w.gone[:0]
		w.check()
	}
	if len(w.machine.groups) > 0 || w.machine.Counts() != (Counts{}) {
		w.fatalf("nothing is held, but there are groups %v and counts %+v", w.machine.groups, w.machine.Counts())
	}
	return w
}

// step lets some time pass, and has somebody do something.
func (w *world) step() {
	w.now = w.now.Add(w.upTo(2 * time.Second))
	if !w.calm && w.oneIn(60) {
		w.now = w.now.Add(2 * lease) // a machine that slept
	}
	for _, l := range w.held {
		if w.ours(l) && (w.calm || !w.oneIn(20)) {
			l.visible = w.now.Add(lease)
		}
	}
	switch w.random.IntN(4) {
	case 0:
		w.receive(w.queue[w.random.IntN(len(w.queue))])
	case 1:
		w.start()
	case 2:
		w.end()
	default:
		if len(w.held) > 0 {
			w.touch(w.held[w.random.IntN(len(w.held))])
		}
	}
}

// ours reports whether the queue would obey the consumer about l.
func (w *world) ours(l *letter) bool { return l.handle == l.receipt && l.visible.After(w.now) }

// receive hands out the first messages of a group, of which none is in flight.
func (w *world) receive(group []*letter) {
	var batch []*letter
	for _, l := range group {
		switch {
		case l.deleted:
		case l.visible.After(w.now):
			return
		case len(batch) < 10:
			batch = append(batch, l)
		}
	}
	if w.oneIn(10) && len(batch) > 1 {
		slices.Reverse(batch[1:]) // the order of the sequence numbers counts
	}
	for _, l := range batch {
		l.receipt++
		l.handle, l.visible = l.receipt, w.now.Add(lease)
		if l.stage != away {
			l.lost = false
			continue // a duplicate: the consumer has a newer handle now
		}
		w.note("join %d", l.number)
		l.Member = Member[*letter]{Cargo: l, Sequence: fmt.Sprint(l.number), Size: l.number}
		l.stage, l.lost = waiting, false
		w.held = append(w.held, l)
		w.follow(w.machine.Join(&l.Member, fmt.Sprint(l.in), w.now))
	}
}

// follow does what the machine answers.
func (w *world) follow(a Answer[*letter]) {
	if a.Recall != nil {
		l := a.Recall.Cargo
		if l.state == stalled && l.stage != waiting {
			w.fatalf("%d is stalled, and %d", l.number, l.stage)
		}
		if l.stage < running && l.stage != away {
			w.settle(l, false, a.Until)
		}
	}
	for _, m := range a.Return {
		if l := m.Cargo; l.stage == waiting {
			w.settle(l, false, a.Until)
		}
		if !a.Until.After(w.now) && len(w.gone) == 0 {
			w.fatalf("%d is given back until %v ago", m.Cargo.number, w.now.Sub(a.Until))
		}
	}
	if a.Begin != nil && a.Begin.Cargo.stage == waiting {
		w.begin(a.Begin.Cargo)
	}
}

// begin finds out what a head needs.
func (w *world) begin(l *letter) {
	if !w.machine.Begin(&l.Member) {
		l.stage = waiting
		w.note("stalled %d", l.number)
		return
	}
	w.first(l)
	switch w.random.IntN(8) {
	case 0:
		if !w.hold(l, w.now.Add(w.upTo(2*MaxHold))) {
			w.settle(l, false, l.due)
		}
	case 1:
		w.settle(l, true, time.Time{}) // it has been run already
	case 2:
		l.stage = shelved
	default:
		w.line(l)
	}
}

func (w *world) line(l *letter) {
	l.stage = lined
	if w.batches {
		w.machine.Ready(&l.Member)
	}
}

// hold has l wait for its time, if that may be.
func (w *world) hold(l *letter, due time.Time) bool {
	l.due = due
	if !w.machine.MayHold(&l.Member, due.Sub(w.now), 15) {
		return false
	}
	l.stage = scheduled
	w.machine.Hold(&l.Member)
	return true
}

// first checks that nothing of l's group before it is in the queue.
func (w *world) first(l *letter) {
	for _, earlier := range w.queue[l.in] {
		if earlier.number >= l.number {
			return
		}
		if !earlier.deleted && !slices.Contains(w.batch, earlier) {
			w.fatalf("%d begins before %d, which is in stage %d and %v", l.number, earlier.number, earlier.stage, earlier.state)
		}
	}
}

// start starts a handler.
func (w *world) start() {
	if len(w.batch) > 0 {
		return
	}
	for _, l := range w.held {
		if l.stage != lined {
			continue
		}
		if w.batches {
			w.machine.Busy(&l.Member)
		}
		w.run(l)
		if !w.batches {
			return
		}
		n := 0
		behind := w.machine.Behind(&l.Member)
		for n < len(behind) && !w.oneIn(4) {
			w.run(behind[n].Cargo)
			n++
		}
		w.machine.Along(&l.Member, n)
		if w.oneIn(2) {
			return // otherwise with another group
		}
	}
}

func (w *world) run(l *letter) {
	w.note("run %d", l.number)
	if l.stage != lined && l.stage != waiting {
		w.fatalf("%d runs from stage %d", l.number, l.stage)
	}
	w.first(l)
	l.stage = running
	w.batch = append(w.batch, l)
}

// end ends the handlers, each group's messages by themselves.
func (w *world) end() {
	for len(w.batch) > 0 {
		n := slices.IndexFunc(w.batch, func(l *letter) bool { return l.in != w.batch[0].in })
		if n < 0 {
			n = len(w.batch)
		}
		w.endGroup(w.batch[:n])
		w.batch = w.batch[n:]
	}
}

func (w *world) endGroup(all []*letter) {
	at := slices.IndexFunc(all, func(l *letter) bool { return l.lost || !w.calm && w.oneIn(3) })
	failed := at >= 0
	if !failed {
		at = len(all) - 1
	}
	if w.batches {
		for _, l := range all[:at] {
			w.machine.Done(&l.Member)
			w.settle(l, true, time.Time{})
		}
		w.machine.Lead(&all[at].Member)
		again := all[at+1:]
		for _, l := range again {
			l.stage = waiting
			w.machine.Again(&l.Member)
		}
		for _, l := range again {
			if l.lost {
				w.lose(l)
			}
		}
	}
	switch l := all[at]; {
	case !failed || w.oneIn(4): // and if it failed, it is dead-lettered
		w.settle(l, true, time.Time{})
	case l.lost:
		w.lose(l)
	case w.oneIn(3):
		w.settle(l, false, w.now.Add(w.upTo(time.Minute)))
	case w.oneIn(2):
		l.stage = shelved
	case !w.hold(l, w.now.Add(w.upTo(2*MaxHold))):
		w.settle(l, false, l.due)
	}
}

// settle has l deleted, or hidden.
func (w *world) settle(l *letter, done bool, due time.Time) {
	w.machine.Busy(&l.Member)
	l.stage, l.done, l.due = settling, done, due
}

// touch does to l what may be due: its settlement is answered, its lease has ended, its
// time has come, its breaker lets it pass, or it has been held for too long.
func (w *world) touch(l *letter) {
	switch {
	case l.stage == running:
		l.lost = l.lost || !w.ours(l)
	case !w.ours(l):
		l.done, l.due = false, time.Time{}
		w.lose(l)
	case l.stage == settling:
		if !w.calm && w.oneIn(3) {
			return // no reply
		}
		if l.deleted = l.done; !l.done {
			l.visible = l.due
		}
		w.release(l)
	case !w.calm && w.oneIn(20):
		if a := w.machine.GiveBack(&l.Member, w.now.Add(time.Second)); len(a.Return) > 0 {
			w.follow(a)
		} else {
			w.settle(l, false, w.now.Add(time.Second))
		}
	case l.stage == scheduled && l.due.Before(w.now):
		w.machine.Busy(&l.Member)
		l.stage = waiting
		w.begin(l)
	case l.stage == shelved && (w.calm || w.oneIn(2)):
		l.stage = waiting
		w.begin(l)
	}
}

// lose gives up l, which another may hold.
func (w *world) lose(l *letter) {
	l.done, l.due = false, time.Time{}
	w.machine.Busy(&l.Member)
	w.release(l)
}

func (w *world) release(l *letter) {
	l.stage = away
	w.held = slices.DeleteFunc(w.held, func(h *letter) bool { return h == l })
	w.gone = append(w.gone, l)
}

// check counts what the machine knows once more.
func (w *world) check() {
	var counts Counts
	members := 0
	for name, g := range w.machine.groups {
		in := make(map[state]int)
		for _, l := range w.held {
			if fmt.Sprint(l.in) == name {
				in[l.state]++
			}
		}
		heads := in[head] + in[held] + in[ready] + in[stalled]
		members += heads + in[behind] + in[ahead] + in[returning] + in[along]
		switch {
		case g.ahead != in[ahead] || g.returning != in[returning] || len(g.behind) != in[behind]:
			w.fatalf("group %s has %d ahead, %d returning and %d behind, but %v are held", name, g.ahead, g.returning, len(g.behind), in)
		case heads > 1 || heads == 1 != (g.head != nil):
			w.fatalf("group %s has %d heads, and %v", name, heads, g.head)
		case heads == 0 && in[behind] > 0 && in[ahead] == 0:
			w.fatalf("group %s has %d that wait behind nothing", name, in[behind])
		case !slices.IsSortedFunc(g.behind, func(a, b *Member[*letter]) int { return a.Cargo.number - b.Cargo.number }):
			w.fatalf("group %s is out of order", name)
		}
		counts.Blocked += in[behind] + in[held]
		if in[held] > 0 {
			counts.Held += in[behind] + in[held]
		}
		if in[ready] > 0 {
			for _, m := range g.behind {
				counts.Along++
				counts.AlongBytes += m.Size
			}
		}
	}
	if counts != w.machine.Counts() {
		w.fatalf("counts are %+v, want %+v", w.machine.Counts(), counts)
	}
	if members != len(w.held) {
		w.fatalf("%d messages are held, %d of them in groups", len(w.held), members)
	}
}

// TestSimulation works off many queues. No message of a group begins before the ones that
// were sent earlier are deleted, none is forgotten, and the counts are right.
func TestSimulation(t *testing.T) {
	for seed := range uint64(600) {
		run(t, seed)
	}
}

// TestSimulationRepeats: one seed always gives the same story.
func TestSimulationRepeats(t *testing.T) {
	for seed := range uint64(20) {
		if first, second := run(t, seed), run(t, seed); string(first.trace) != string(second.trace) {
			t.Errorf("seed %d gave two stories", seed)
		}
	}
}
