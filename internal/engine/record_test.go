package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// tape is a recorder that keeps the last state of everything, and fails its test
// when it is told what cannot be.
type tape struct {
	t        *testing.T
	queues   map[string]*reel
	sequence uint64 // the highest
	told     int    // events
	moved    []uint64
	emptied  []engine.RemovedMessages
}

type reel struct {
	messages    map[uint64]engine.State
	acceptances map[uint64]engine.Acceptance
}

func newTape(t *testing.T) *tape { return &tape{t: t, queues: map[string]*reel{}} }

func (p *tape) reel(q *engine.Queue) *reel {
	p.told++
	r := p.queues[q.Key()]
	if r == nil {
		r = &reel{messages: map[uint64]engine.State{}, acceptances: map[uint64]engine.Acceptance{}}
		p.queues[q.Key()] = r
	}
	return r
}

func (p *tape) Changed(q *engine.Queue, s *engine.State) {
	r := p.reel(q)
	if before, known := r.messages[s.Sequence]; !known && s.Sequence <= p.sequence {
		p.t.Errorf("message %d of %s came after message %d of some queue", s.Sequence, q.Key(), p.sequence)
	} else if known && (before.Slot != s.Slot || before.SendNumber != s.SendNumber || before.ID != s.ID) {
		p.t.Errorf("message %d of %s became another: %+v, before %+v", s.Sequence, q.Key(), s, before)
	}
	p.sequence = max(p.sequence, s.Sequence)
	r.messages[s.Sequence] = *s
}

func (p *tape) Left(q *engine.Queue, sequence, sendNumber uint64, moved bool) {
	r := p.reel(q)
	if moved {
		p.moved = append(p.moved, sendNumber)
	}
	if s, known := r.messages[sequence]; !known || s.SendNumber != sendNumber {
		p.t.Errorf("message %d (%d) left %s, which has %+v, %v", sequence, sendNumber, q.Key(), s, known)
	}
	delete(r.messages, sequence)
}

func (p *tape) Emptied(q *engine.Queue, rest engine.RemovedMessages) {
	r := p.reel(q)
	var want []uint64
	for _, s := range r.messages {
		want = append(want, s.SendNumber)
	}
	slices.Sort(want)
	got := slices.Sorted(rest.SendNumbers())
	if !slices.Equal(got, want) || rest.Len() != len(want) {
		p.t.Errorf("%s was emptied of %v (%d), had %v", q.Key(), got, rest.Len(), want)
	}
	clear(r.messages)
	clear(r.acceptances)
	p.emptied = append(p.emptied, rest)
}

func (p *tape) Accepted(q *engine.Queue, a *engine.Acceptance) {
	p.reel(q).acceptances[a.Sequence] = *a
}

func (p *tape) Forgotten(q *engine.Queue, sequence uint64) {
	r := p.reel(q)
	if _, known := r.acceptances[sequence]; !known {
		p.t.Errorf("%s forgot %d, which it did not know", q.Key(), sequence)
	}
	delete(r.acceptances, sequence)
}

// play makes an engine of what was recorded about the queues of another.
func (p *tape) play(now time.Time, queues ...*engine.Queue) *engine.Engine {
	e := engine.New()
	for _, recorded := range queues {
		q := e.Create(now, recorded.Key(), recorded.Settings())
		r := p.reel(q)
		for _, sequence := range slices.Sorted(maps.Keys(r.messages)) {
			s := r.messages[sequence]
			if err := q.Restore(&s); err != nil {
				p.t.Errorf("restore message %d of %s: %v", sequence, q.Key(), err)
			}
		}
		for _, sequence := range slices.Sorted(maps.Keys(r.acceptances)) {
			a := r.acceptances[sequence]
			if err := q.RestoreAcceptance(&a); err != nil {
				p.t.Errorf("restore acceptance %d of %s: %v", sequence, q.Key(), err)
			}
		}
	}
	e.Resume(p.sequence)
	e.Record(p)
	return e
}

// rebuild replaces the engine by one made of what the tape has, and goes on.
func (tw *twin) rebuild() {
	if tw.rebuilds == 0 || tw.m.step%tw.rebuilds != 0 {
		return
	}
	tw.logf("rebuild")
	var queues []*engine.Queue
	for key := range tw.m.queues {
		queues = append(queues, tw.e.Lookup(key))
	}
	tw.e = tw.tape.play(tw.now, queues...)
	tw.e.Woken(nil) // nobody waits at a server that has just begun
	for _, mq := range tw.m.queues {
		for group := range mq.turns { // whose turn it is is not kept
			mq.turns[group] = modelTurn{0, tw.m.step}
		}
	}
}

// Cases that the twin does not have, or cannot see.
func TestRecord(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*lab)
		want int // events
	}{
		{"a delay that ends is no change", func(l *lab) { l.wait(time.Minute); l.wantCounts(2, 0, 0) }, 0},
		{"a lease that ends is no change", func(l *lab) { l.receive(2); l.wait(time.Hour); l.wantCounts(2, 0, 0) }, 2},
		{"a receive is one change a message", func(l *lab) { l.receive(2) }, 2},
		{"so is one without a lease", func(l *lab) { l.receiveFor(2, 0) }, 2},
		{"retention that ends is a loss", func(l *lab) { l.wait(5 * 24 * time.Hour); l.wantCounts(0, 0, 0) }, 2},
		{"a delete of what has expired is a loss too", func(l *lab) {
			l.receive(1)
			l.wait(5 * 24 * time.Hour)
			l.delete("a")
		}, 2},
		{"a purge is one", func(l *lab) { l.e.Purge(l.now, l.q) }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{})
			l.send("", "a", "b")
			tape := newTape(t)
			l.e.Record(tape)
			tape.queues[mainQueue] = &reel{messages: map[uint64]engine.State{1: {Slot: 1, Sequence: 1, SendNumber: 1, ID: id("a")},
				2: {Slot: 2, Sequence: 2, SendNumber: 2, ID: id("b")}}}
			tape.sequence = 2
			test.do(l)
			if tape.told != test.want {
				t.Errorf("the recorder was told %d times, want %d", tape.told, test.want)
			}
		})
	}
}

// A crash has made the engine forget a receive. Its consumer, who is told that the
// delete was done, will not come again.
func TestForgottenReceiptDeletes(t *testing.T) {
	l := newLab(t, engine.Settings{})
	tape := newTape(t)
	l.e.Record(tape)
	l.send("", "a")
	sent := tape.queues[mainQueue].messages[1]
	l.wantReceive(1, "a")
	tape.queues[mainQueue].messages[1] = sent

	l.e = tape.play(l.now, l.q)
	l.q = l.e.Lookup(mainQueue)
	l.wantCounts(1, 0, 0)
	l.delete("a")
	l.wantCounts(0, 0, 0)
}

// A message that is dead-lettered and redriven keeps its sendNumber, under which its
// body is known; replayed receives change leases as others do.
func TestRecordOfMovesAndReplays(t *testing.T) {
	l := newLab(t, engine.Settings{Visibility: time.Minute, DeadLetter: deadQueue, MaxReceives: 1})
	dead := l.e.Create(l.now, deadQueue, engine.Settings{})
	tape := newTape(t)
	l.e.Record(tape)
	l.send("", "a", "b", "c")

	l.wantReceive(2, "a b")
	leases := []engine.Lease{{Receipt: l.receipts["a"], Until: l.now.Add(time.Minute)}}
	l.wait(time.Second)
	if _, ok := l.e.Replay(l.now, l.q, leases, time.Hour, nil); !ok {
		t.Fatal("the receive was not replayed")
	}
	if !l.e.DeadLetter(l.now, l.q, l.receipts["b"]) {
		t.Fatal("b was not dead-lettered")
	}
	if moved, err := l.e.Redrive(l.now, dead, nil, id("b2")); !moved || err != nil {
		t.Fatalf("redrive: %v, %v", moved, err)
	}
	type seen struct {
		Name        string
		SendNumber  uint64
		HiddenUntil time.Duration
		Receives    uint32
	}
	want := []seen{{"a", 1, time.Hour + time.Second, 1}, {"c", 3, 0, 0}, {"b2", 2, 0, 0}}
	var got []seen
	messages := tape.queues[mainQueue].messages
	for _, sequence := range slices.Sorted(maps.Keys(messages)) {
		s := messages[sequence]
		this := seen{name(s.ID), s.SendNumber, 0, s.Receives}
		if s.HiddenUntil != engine.Never {
			this.HiddenUntil = time.Duration(s.HiddenUntil - epoch.UnixNano())
		}
		got = append(got, this)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if left := len(tape.queues[deadQueue].messages); left != 0 {
		t.Errorf("%d messages recorded in the dead-letter queue, want none", left)
	}
	l.wantReceive(1, "c")
	l.delete("a", "c")
	if want := []uint64{2, 2}; !slices.Equal(tape.moved, want) { // to the dead-letter queue and back
		t.Errorf("recorded as moved to another queue are %v, want %v: a and c were deleted", tape.moved, want)
	}
}

// TestRemovedMessagesDoNotChange: messages that a purge removed can be read later, after new
// ones were sent.
func TestRemovedMessagesDoNotChange(t *testing.T) {
	l := newLab(t, engine.Settings{})
	tape := newTape(t)
	l.e.Record(tape)
	l.send("", "a", "b")
	l.e.Purge(l.now, l.q)
	l.send("", "c")
	if got := slices.Sorted(tape.emptied[0].SendNumbers()); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("the purge removed %v, want 1 and 2", got)
	}
}

// The recorder need not keep what a FIFO queue accepted more than five minutes ago.
func TestForgottenAcceptances(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	tape := newTape(t)
	l.e.Record(tape)
	l.send("g", "a")
	l.wait(5 * time.Minute)
	l.send("g", "b")
	if got := slices.Collect(maps.Keys(tape.queues[mainQueue].acceptances)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("recorded are the acceptances %v, want the second", got)
	}
}

// New messages come after all that were restored, whatever the number to go on from.
func TestResumeGoesOnBehindWhatWasRestored(t *testing.T) {
	for name, restore := range map[string]func(*engine.Queue) error{
		"a message": func(q *engine.Queue) error {
			return q.Restore(&engine.State{Slot: 1, Sequence: 7, SendNumber: 7, FirstReceived: engine.Never, Received: engine.Never, HiddenUntil: engine.Never, SentAt: epoch.UnixNano()})
		},
		"an acceptance": func(q *engine.Queue) error { return q.RestoreAcceptance(&engine.Acceptance{Sequence: 7}) },
	} {
		l := newLab(t, engine.Settings{FIFO: true})
		if err := restore(l.q); err != nil {
			t.Fatal(err)
		}
		l.e.Resume(3)
		if sent := l.e.Send(l.now, l.q, engine.Message{ID: id("m"), Group: "g", Dedup: "m"}); sent.Sequence != 8 {
			t.Errorf("behind %s with the number 7 one is sent with the number %d, want 8", name, sent.Sequence)
		}
	}
}

func TestRestoreRefusesWhatCannotBe(t *testing.T) {
	good := engine.State{Slot: 3, Sequence: 7, SendNumber: 5, SentAt: 1, FirstReceived: engine.Never, Received: engine.Never, HiddenUntil: engine.Never}
	for _, test := range []struct {
		name   string
		damage func(*engine.State)
	}{
		{"no sequence number", func(s *engine.State) { s.Sequence = 0 }},
		{"an earlier sequence number", func(s *engine.State) { s.Sequence = 6 }},
		{"no sendNumber", func(s *engine.State) { s.SendNumber = 0 }},
		{"an sendNumber later than the arrival", func(s *engine.State) { s.SendNumber = 8 }},
		{"no slot", func(s *engine.State) { s.Slot = 0 }},
		{"a slot beyond all memory", func(s *engine.State) { s.Slot = 1 << 31 }},
		{"the slot of another", func(s *engine.State) { s.Slot = 2 }},
		{"a receive without its time", func(s *engine.State) { s.Receives = 1 }},
		{"the time of a receive without it", func(s *engine.State) { s.Received = 1 }},
		{"fewer receives than elsewhere", func(s *engine.State) { s.Before = 1 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{})
			first := good
			first.Slot, first.Sequence = 2, 6
			if err := l.q.Restore(&first); err != nil {
				t.Fatalf("restore the first: %v", err)
			}
			bad := good
			test.damage(&bad)
			if err := l.q.Restore(&bad); err == nil {
				t.Errorf("restored %+v", bad)
			}
			if err := l.q.Restore(&good); err != nil {
				t.Errorf("refused what can be: %v", err)
			}
		})
	}
}

func TestRestoreAcceptanceRefusesWhatCannotBe(t *testing.T) {
	l := newLab(t, engine.Settings{})
	if err := l.q.RestoreAcceptance(&engine.Acceptance{Sequence: 1}); err == nil {
		t.Error("a standard queue took an acceptance")
	}
	fifo := newLab(t, engine.Settings{FIFO: true})
	if err := fifo.q.RestoreAcceptance(&engine.Acceptance{Sequence: 2}); err != nil {
		t.Error(err)
	}
	if err := fifo.q.RestoreAcceptance(&engine.Acceptance{Sequence: 2}); err == nil {
		t.Error("took one acceptance twice")
	}
}

// Recording costs no allocation.
func TestRecordAllocations(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.e.Record(counter{new(int)})
	l.send("", "a")
	var got []engine.Delivery
	if allocs := testing.AllocsPerRun(100, func() {
		got, _ = l.e.Receive(l.now, l.q, 1, time.Minute, got[:0])
		if len(got) != 1 || l.e.ChangeVisibility(l.now, l.q, got[0].Receipt, 0) != nil {
			t.Fatal("not received, or no lease")
		}
	}); allocs != 0 {
		t.Errorf("a receive and a change allocate %v times when recorded, want 0", allocs)
	}
}

type counter struct{ events *int }

func (c counter) Changed(*engine.Queue, *engine.State)          { *c.events++ }
func (c counter) Left(*engine.Queue, uint64, uint64, bool)      { *c.events++ }
func (c counter) Emptied(*engine.Queue, engine.RemovedMessages) { *c.events++ }
func (c counter) Accepted(*engine.Queue, *engine.Acceptance)    { *c.events++ }
func (c counter) Forgotten(*engine.Queue, uint64)               { *c.events++ }
