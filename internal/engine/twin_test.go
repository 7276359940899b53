package engine_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// twin drives the engine and the model through the same operations, decoded
// from bytes, and compares all that can be observed after each.
type twin struct {
	t      *testing.T
	e      *engine.Engine
	m      *model
	now    time.Time
	sent   uint64
	script []byte
	log    []logLine

	receipts   []engine.Receipt // every one that was handed out, with some forged
	numbers    map[uint64]engine.ID
	sendNumber uint64 // of the newest message

	tape     *tape
	rebuilds int // steps from one rebuilding of the engine to the next; 0: none
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	mainQueue  = "main"
	deadQueue  = "dead"
	maxBacklog = 60 // in all queues: below what one call settles, so that nothing stays due
)

func FuzzAgainstModel(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randomScript(seed, 200))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		runScript(t, script)
	})
}

func TestRandomOperationsAgainstModel(t *testing.T) {
	for seed := range uint64(250) {
		runScript(t, randomScript(seed, 600))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomScript(seed uint64, length int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	script := make([]byte, length)
	for i := range script {
		script[i] = byte(r.Uint32())
	}
	return script
}

func runScript(t *testing.T, script []byte) {
	tw := &twin{
		t: t, e: engine.New(), m: &model{queues: map[string]*modelQueue{}},
		now: epoch, script: script, numbers: map[uint64]engine.ID{}, tape: newTape(t),
	}
	tw.e.Record(tw.tape)
	kind := tw.byte()
	tw.rebuilds = []int{0, 0, 1, 2, 3, 5, 8, 13}[kind>>5]
	base := engine.Settings{FIFO: kind&1 != 0, DedupPerGroup: kind&2 != 0}
	tw.create(mainQueue, tw.settings(base))
	tw.create(deadQueue, tw.settings(base))
	for len(tw.script) > 0 && !t.Failed() && tw.m.step < 2000 {
		tw.m.step++
		tw.advanceClock()
		tw.rebuild()
		before := tw.receivable()
		tw.m.prune(tw.now)
		tw.noteReady()
		tw.operate()
		tw.compare()
		tw.compareWoken(before)
		tw.noteBlocked()
		tw.noteReady()
	}
	if t.Failed() {
		for _, line := range tw.log {
			t.Log(line)
		}
	}
}

func (tw *twin) byte() byte {
	if len(tw.script) == 0 {
		return 0
	}
	b := tw.script[0]
	tw.script = tw.script[1:]
	return b
}

func pick[T any](tw *twin, from ...T) T { return from[int(tw.byte())%len(from)] }

// logLine is formatted only if the test fails.
type logLine struct {
	step   int
	at     time.Duration
	format string
	args   []any
}

func (l logLine) String() string {
	return fmt.Sprintf("%3d %12v ", l.step, l.at) + fmt.Sprintf(l.format, l.args...)
}

func (tw *twin) logf(format string, args ...any) {
	tw.log = append(tw.log, logLine{tw.m.step, tw.now.Sub(epoch), format, args})
}

func (tw *twin) failf(format string, args ...any) {
	tw.t.Helper()
	tw.logf("FAILED")
	tw.t.Errorf(format, args...)
}

// queue picks one of the queues that exist, the main one three times in four.
func (tw *twin) queue() (*engine.Queue, *modelQueue) {
	key := pick(tw, mainQueue, mainQueue, mainQueue, deadQueue)
	if tw.m.queues[key] == nil {
		key = mainQueue
	}
	return tw.e.Lookup(key), tw.m.queues[key]
}

func (tw *twin) settings(s engine.Settings) engine.Settings {
	s.Delay = pick(tw, 0, 0, 0, time.Second, time.Minute)
	s.Visibility = pick(tw, 30*time.Second, 0, time.Second, time.Hour)
	s.Retention = pick(tw, 0, 0, time.Minute, time.Hour, time.Hour, 24*time.Hour)
	s.DeadLetter = pick(tw, deadQueue, deadQueue, "", mainQueue, "missing")
	s.MaxReceives = pick(tw, 0, 1, 2, 3)
	s.InFlightLimit = pick(tw, 0, -1, 3, 12)
	return s
}

func (tw *twin) create(key string, s engine.Settings) {
	tw.logf("create %s %+v", key, s)
	tw.e.Create(tw.now, key, s)
	tw.m.queues[key] = &modelQueue{key: key, settings: s, turns: map[string]modelTurn{}}
}

func (tw *twin) advanceClock() {
	tw.now = tw.now.Add(pick(tw, 0, 0, 0, 0, 0, 0, time.Millisecond, time.Second, time.Second, time.Second, 29*time.Second, 30*time.Second,
		time.Minute, 5*time.Minute-time.Second, 5*time.Minute, time.Hour, 11*time.Hour, 12*time.Hour))
}

func (tw *twin) operate() {
	q, mq := tw.queue()
	switch op := tw.byte() % 33; {
	case op < 9:
		tw.send(q, mq)
	case op < 17:
		tw.receive(q, mq)
	case op < 21:
		r := tw.receipt()
		got, want := tw.e.Delete(tw.now, q, r), tw.m.delete(tw.now, mq, r)
		tw.logf("delete from %s %v: %v", mq.key, r, got)
		tw.compareErrors(got, want)
	case op < 25:
		r := tw.receipt()
		d := pick(tw, 0, 0, time.Second, time.Minute, time.Hour, 12*time.Hour-time.Second, 12*time.Hour)
		got, want := tw.e.ChangeVisibility(tw.now, q, r, d), tw.m.changeVisibility(tw.now, mq, r, d)
		tw.logf("change visibility on %s of %v to %v: %v", mq.key, r, d, got)
		tw.compareErrors(got, want)
	case op == 25:
		limit := int(tw.byte() % 8)
		more := tw.e.Advance(tw.now, q, limit)
		tw.logf("advance %s by %d: %v", mq.key, limit, more)
	case op == 26:
		tw.configure(q, mq)
	case op == 27:
		tw.logf("purge %s", mq.key)
		tw.e.Purge(tw.now, q)
		mq.messages, mq.accepted = nil, nil
	case op == 28:
		r := tw.receipt()
		tw.logf("expose in %s %v", mq.key, r)
		tw.e.Expose(tw.now, q, r)
		if x := mq.byNumber(r.Number); x != nil && x.hidden(tw.now) && x.receives == int(r.Generation) {
			x.visibleAt = tw.now
		}
	case op == 29:
		r := tw.receipt()
		tw.logf("remove from %s %v", mq.key, r)
		tw.e.Remove(tw.now, q, r)
		if x := mq.byNumber(r.Number); x != nil {
			mq.delete(x)
		}
	case op == 30:
		tw.deadLetter(q, mq)
	case op == 31:
		tw.dropOrCreate()
	case op == 32 && tw.byte()%2 == 0:
		r := tw.receipt()
		x := mq.byNumber(r.Number)
		want := x != nil && x.hidden(tw.now) && !x.inFlight(tw.now)
		got := tw.e.EndDelay(tw.now, q, r)
		tw.logf("end the delay in %s of %v: %v", mq.key, r, got)
		if got != want {
			tw.t.Fatalf("end of the delay: %v, want %v", got, want)
		}
		if want {
			x.visibleAt = tw.now
		}
	case op == 32:
		r, d := tw.receipt(), pick(tw, 0, time.Second, time.Minute, 12*time.Hour)
		x := mq.byNumber(r.Number)
		want := x != nil && d > 0 && !mq.settings.FIFO && !x.hidden(tw.now)
		got := tw.e.Hide(tw.now, q, r, d)
		tw.logf("hide in %s %v for %v: %v", mq.key, r, d, got)
		if got != want {
			tw.t.Fatalf("hide: %v, want %v", got, want)
		}
		if want {
			x.visibleAt, x.delayedLater = tw.now.Add(d), true
			if x.visibleAt.Sub(x.sentAt)%time.Second == 0 {
				x.visibleAt = x.visibleAt.Add(1)
			}
		}
	}
}

func (tw *twin) send(q *engine.Queue, mq *modelQueue) {
	backlog := 0
	for _, each := range tw.m.queues {
		backlog += len(each.messages)
	}
	if backlog >= maxBacklog {
		return
	}
	tw.sent++
	m := engine.Message{
		Group:   pick(tw, "a", "a", "b", "c"),
		Dedup:   fmt.Sprint(tw.byte() % pick[byte](tw, 2, 4, 64, 64)),
		Delay:   pick(tw, -1, -1, -1, 0, time.Second, time.Minute),
		Payload: tw.sent,
	}
	if !mq.settings.FIFO && m.Group == "a" {
		m.Group = ""
	}
	binary.BigEndian.PutUint64(m.ID[8:], tw.sent)
	got, want := tw.e.Send(tw.now, q, m), tw.m.send(tw.now, mq, m)
	tw.logf("send to %s %+v: %+v", mq.key, m, got)
	tw.adoptSendNumber(mq, &want, got)
	if mq.settings.FIFO {
		tw.compareSequence(mq, &want, got)
	}
	if got != want {
		tw.failf("send: got %+v, want %+v", got, want)
	}
}

// adoptSendNumber takes the sendNumber of a fresh message over from the engine, if no
// other message can have had it; a duplicate has its original's.
func (tw *twin) adoptSendNumber(mq *modelQueue, want *engine.Sent, got engine.Sent) {
	if want.Duplicate {
		return
	}
	if got.SendNumber <= tw.sendNumber {
		tw.failf("send: sendNumber %d after %d", got.SendNumber, tw.sendNumber)
	}
	tw.sendNumber, want.SendNumber = got.SendNumber, got.SendNumber
	mq.messages[len(mq.messages)-1].sendNumber = got.SendNumber
	if mq.settings.FIFO {
		mq.accepted[len(mq.accepted)-1].sent.SendNumber = got.SendNumber
	}
}

// compareSequence takes the number of a fresh message over from the engine, if
// it is larger than those before; a duplicate has its original's.
func (tw *twin) compareSequence(mq *modelQueue, want *engine.Sent, got engine.Sent) {
	if want.Duplicate {
		return
	}
	for _, a := range mq.accepted[:len(mq.accepted)-1] {
		if got.Sequence <= a.sent.Sequence {
			tw.failf("send: sequence %d after %d", got.Sequence, a.sent.Sequence)
		}
	}
	want.Sequence = got.Sequence
	mq.accepted[len(mq.accepted)-1].sent.Sequence = got.Sequence
	mq.messages[len(mq.messages)-1].sequence = got.Sequence
}

func (tw *twin) receive(q *engine.Queue, mq *modelQueue) {
	count := 1 + int(tw.byte()%10)
	visibility := pick(tw, -1, -1, 0, time.Second, 12*time.Hour)
	got, err := tw.e.Receive(tw.now, q, count, visibility, nil)
	var taken []engine.ID
	for _, d := range got {
		taken = append(taken, d.ID)
	}
	moved := tw.moved(q, mq)
	tw.logf("receive %d from %s for %v: %v, dead-lettered %v, %v", count, mq.key, visibility, taken, moved, err)
	for _, id := range slices.Concat(taken, moved) {
		if x := find(mq.messages, id); x != nil {
			defer func() { mq.turns[x.group] = modelTurn{tw.m.step, tw.m.step} }()
		}
	}
	if err := tw.m.receive(tw.now, mq, count, visibility, taken, moved, err); err != nil {
		tw.failf("receive: %v", err)
		return
	}
	for i, id := range taken {
		x := find(mq.messages, id)
		tw.adopt(mq, x, got[i])
		if diff := gocmp.Diff(mq.delivery(tw.now, x), got[i]); diff != "" {
			tw.failf("receive (-want +got):\n%s", diff)
		}
		tw.receipts = append(tw.receipts, got[i].Receipt)
	}
}

// moved lists the messages that are no longer in the queue under the numbers
// they had, in the order in which they came into the dead-letter queue.
func (tw *twin) moved(q *engine.Queue, mq *modelQueue) []engine.ID {
	here := map[uint64]bool{}
	for _, d := range tw.e.Messages(tw.now, q, 0, 1000) {
		here[d.Receipt.Number] = true
	}
	arrival := map[engine.ID]uint32{} // 0: it had expired for the dead-letter queue
	if to := tw.e.Lookup(mq.settings.DeadLetter); to != nil {
		for _, d := range tw.e.Messages(tw.now, to, 0, 1000) {
			arrival[d.ID] = uint32(d.Receipt.Number)
		}
	}
	var ids []engine.ID
	for _, x := range mq.messages {
		if !here[x.number] {
			ids = append(ids, x.id)
		}
	}
	slices.SortFunc(ids, func(a, b engine.ID) int { return cmp.Compare(arrival[a], arrival[b]) })
	return ids
}

func (tw *twin) configure(q *engine.Queue, mq *modelQueue) {
	s := tw.settings(engine.Settings{FIFO: pick(tw, true, false), DedupPerGroup: pick(tw, true, false)})
	tw.logf("configure %s %+v", mq.key, s)
	tw.e.Configure(tw.now, q, s)
	tw.m.configure(tw.now, mq, s)
	tw.m.prune(tw.now)
	if got := q.Settings(); got != mq.settings {
		tw.failf("settings: got %+v, want %+v", got, mq.settings)
	}
}

func (tw *twin) deadLetter(q *engine.Queue, mq *modelQueue) {
	r := tw.receipt()
	got, want := tw.e.DeadLetter(tw.now, q, r), false
	if x := mq.byNumber(r.Number); x != nil {
		want = tw.m.deadLetter(tw.now, mq, x.id)
	}
	tw.m.prune(tw.now)
	tw.logf("dead-letter from %s %v: %v", mq.key, r, got)
	if got != want {
		tw.failf("dead-letter: got %v, want %v", got, want)
	}
}

func (tw *twin) dropOrCreate() {
	fifo := tw.m.queues[mainQueue].settings.FIFO
	if tw.m.queues[deadQueue] == nil {
		tw.create(deadQueue, tw.settings(engine.Settings{FIFO: fifo}))
		return
	}
	tw.logf("drop %s", deadQueue)
	tw.e.Drop(tw.now, tw.e.Lookup(deadQueue))
	delete(tw.m.queues, deadQueue)
}

// receipt picks an old receipt, mostly a recent one; some are forged.
func (tw *twin) receipt() engine.Receipt {
	n := len(tw.receipts)
	if n == 0 {
		return engine.Receipt{Number: uint64(tw.byte()), Generation: 1}
	}
	b := int(tw.byte())
	r := tw.receipts[n-1-b%min(n, 64)]
	switch b >> 6 {
	case 3:
		r.Generation += uint32(b % 3)
	case 2:
		if found, ok := tw.e.Find(tw.e.Lookup(mainQueue), tw.numbers[r.Number]); ok {
			return found
		}
	}
	return r
}
