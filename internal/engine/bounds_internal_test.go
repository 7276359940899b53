package engine

import (
	"slices"
	"testing"
	"time"
	"unsafe"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// A Receive settles the messages that are due in portions, and reports that it stopped.
func TestReceiveSettlesAPortionOfALargeBacklog(t *testing.T) {
	const backlog = 10 * maxSettled
	for _, test := range []struct {
		name   string
		before func(e *Engine, q *Queue) time.Time
		left   func(q *Queue) int
		atMost int
	}{
		{"leases over", func(e *Engine, q *Queue) time.Time {
			for range backlog {
				_, _ = e.Receive(start, q, 1, time.Minute, nil)
			}
			return start.Add(time.Minute)
		}, func(q *Queue) int { return q.hidden.len() }, maxSettled},
		{"expired", func(_ *Engine, _ *Queue) time.Time {
			return start.Add(defaultRetention)
		}, func(q *Queue) int { return q.messages.live }, 2 * maxSettled},
		{"exhausted", func(e *Engine, q *Queue) time.Time {
			for range backlog {
				_, _ = e.Receive(start, q, 1, 0, nil)
			}
			e.Create(start, "dead", Settings{})
			e.Configure(start, q, Settings{DeadLetter: "dead", MaxReceives: 1})
			return start
		}, func(q *Queue) int { return q.messages.live }, maxSettled},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := New()
			q := e.Create(start, "main", Settings{})
			for range backlog {
				e.Send(start, q, Message{})
			}
			now := test.before(e, q)
			before := test.left(q)
			e.Woken(nil) // what was sent
			got, err := e.Receive(now, q, 1, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if handled := before - test.left(q); handled < maxSettled || handled > test.atMost {
				t.Errorf("one receive settled %d messages, want %d to %d", handled, maxSettled, test.atMost)
			}
			if len(got) == 0 {
				if woken := e.Woken(nil); !slices.Contains(woken, q) {
					t.Error("a receive that stopped early was not reported")
				}
			}
			e.Send(now, q, Message{ID: ID{1}})
			fresh := func(d Delivery) bool { return d.ID == ID{1} }
			for calls := 0; !slices.ContainsFunc(got, fresh); calls++ {
				if got, err = e.Receive(now, q, 10, time.Minute, got[:0]); err != nil || calls > backlog/maxSettled+backlog/10+1 {
					t.Fatalf("the fresh message was not received after %d calls, %v", calls, err)
				}
			}
		})
	}
}

// A receive skips some expired messages more than it settles before it looks.
func TestReceiveSkipsExpiredMessages(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{})
	for range maxSettled + 10 {
		e.Send(start, q, Message{})
	}
	now := start.Add(defaultRetention)
	e.Send(now, q, Message{ID: ID{1}})
	if got, err := e.Receive(now, q, 1, time.Minute, nil); err != nil || len(got) != 1 || got[0].ID != (ID{1}) {
		t.Errorf("received %v, %v, want the fresh message", got, err)
	}
	if q.messages.live != 1 {
		t.Errorf("%d messages are in the queue, want the fresh one", q.messages.live)
	}
}

func TestAdvanceStopsAtItsLimit(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{})
	for range 25 {
		e.Send(start, q, Message{Delay: time.Minute})
	}
	now := start.Add(time.Minute)
	for _, want := range []int{15, 5, 0} {
		if more := e.Advance(now, q, 10); more != (want > 0) || q.hidden.len() != want {
			t.Errorf("%d left, more is %v; want %d", q.hidden.len(), more, want)
		}
	}
	now = start.Add(defaultRetention)
	for _, want := range []int{15, 5, 0} {
		if more := e.Advance(now, q, 10); more != (want > 0) || q.messages.live != want {
			t.Errorf("%d not expired, more is %v; want %d", q.messages.live, more, want)
		}
	}
}

// At the quota a receive that has not settled everything due does not claim
// that the quota is full.
func TestNoOverLimitWhileSomethingIsDue(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{InFlightLimit: 1})
	e.Send(start, q, Message{})
	_, _ = e.Receive(start, q, 1, time.Hour, nil)
	for range 3 * maxSettled {
		e.Send(start, q, Message{Delay: time.Minute})
	}
	now := start.Add(time.Minute)
	if _, err := e.Receive(now, q, 1, 0, nil); err != nil {
		t.Errorf("got %v while delays are due, want none", err)
	}
	for e.Advance(now, q, maxSettled) {
	}
	if _, err := e.Receive(now, q, 1, 0, nil); err != ErrOverLimit {
		t.Errorf("got %v, want %v", err, ErrOverLimit)
	}
}

func TestWindowForgetsAndGivesMemoryBack(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{FIFO: true})
	send := func(now time.Time, n int) {
		var dedup [2]byte
		for i := range n {
			dedup[0], dedup[1] = byte(i), byte(i>>8)
			e.Send(now, q, Message{Group: "g", Dedup: string(dedup[:])})
		}
	}
	send(start, 1000)
	send(start.Add(time.Duration(dedupWindow)), 501)
	if n := len(q.window.accepted); n != 501 || len(q.window.index) != 501 {
		t.Errorf("%d accepted and %d indexed are remembered, want 501", n, len(q.window.index))
	}
	send(start.Add(2*time.Duration(dedupWindow)), 501)
	if n := cap(q.window.accepted); n > 2000 {
		t.Errorf("the window keeps room for %d after 501 in five minutes", n)
	}
}

// The window ends for all that was accepted at one instant, however many they are.
func TestWindowEndsForAllAtOnce(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{FIFO: true})
	ids := []string{"a", "b", "c", "d", "e"}
	for _, id := range ids {
		e.Send(start, q, Message{Group: "g", Dedup: id})
	}
	for i, wait := range []time.Duration{time.Duration(dedupWindow) - 1, time.Duration(dedupWindow)} {
		if sent := e.Send(start.Add(wait), q, Message{Group: "g", Dedup: "e"}); sent.Duplicate != (i == 0) {
			t.Errorf("%v after the first of its id a message is a duplicate: %v", wait, sent.Duplicate)
		}
	}
}

func TestEmptiedQueueGivesMemoryBack(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{FIFO: true, InFlightLimit: -1})
	for i := range 10 * chunkSize {
		name := string([]byte{byte(i), byte(i >> 8)})
		e.Send(start, q, Message{Group: name, Dedup: name})
	}
	got, _ := e.Receive(start, q, 10*chunkSize, time.Hour, nil)
	for _, d := range got {
		if err := e.Delete(start, q, d.Receipt); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(q.messages.chunks); n != 1 {
		t.Errorf("%d chunks are kept, want 1", n)
	}
	if cap(q.groups.slots) > chunkSize || len(q.ages.positions) > 0 || len(q.hidden.positions) > 0 {
		t.Errorf("kept: %d groups, %d ages, %d hidden", cap(q.groups.slots), len(q.ages.positions), len(q.hidden.positions))
	}
}

// A purge keeps none of the payloads.
func TestPurgeGivesPayloadsBack(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{})
	for range 10 {
		e.Send(start, q, Message{Payload: "a"})
	}
	e.Purge(start, q)
	for slot, m := range q.messages.chunks[0] {
		if m.payload != nil {
			t.Errorf("slot %d keeps %v", slot, m.payload)
		}
	}
}

// Groups come and go while others stay: the places of those without messages are used again.
func TestGroupsGiveTheirPlacesBack(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{FIFO: true, Visibility: time.Minute})
	e.Send(start, q, Message{Group: "stays", Dedup: "stays"})
	_, _ = e.Receive(start, q, 1, time.Hour, nil)
	for i := range 10 {
		name := string([]byte{byte(i)})
		e.Send(start, q, Message{Group: name, Dedup: name})
		got, _ := e.Receive(start, q, 1, -1, nil)
		if len(got) != 1 || e.Delete(start, q, got[0].Receipt) != nil {
			t.Fatalf("received %v", got)
		}
	}
	if len(q.groups.index) != 1 || len(q.groups.slots) != 3 { // the first slot is never used
		t.Errorf("%d groups are known in %d places, want one and a free place", len(q.groups.index), len(q.groups.slots)-1)
	}
}

// However many messages a queue dead-letters, it is one source.
func TestSourceIsKeptOnce(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{DeadLetter: "dead"})
	dead := e.Create(start, "dead", Settings{})
	for range 3 {
		e.Send(start, q, Message{})
		got, _ := e.Receive(start, q, 1, time.Minute, nil)
		if len(got) != 1 || !e.DeadLetter(start, q, got[0].Receipt) {
			t.Fatalf("received %v", got)
		}
	}
	if len(dead.sources) != 1 {
		t.Errorf("sources are %q, want one", dead.sources)
	}
}

// Sending, receiving and deleting allocate nothing once the queue has grown.
func TestStandardCycleDoesNotAllocate(t *testing.T) {
	e := New()
	q := e.Create(start, "main", Settings{Visibility: time.Minute})
	for range 1000 {
		e.Send(start, q, Message{})
	}
	got := make([]Delivery, 0, 10)
	allocs := testing.AllocsPerRun(1000, func() {
		got, _ = e.Receive(start, q, 10, -1, got[:0])
		for _, d := range got {
			if err := e.ChangeVisibility(start, q, d.Receipt, time.Hour); err != nil {
				t.Error(err)
			}
			if err := e.Delete(start, q, d.Receipt); err != nil {
				t.Error(err)
			}
			e.Send(start, q, Message{})
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for ten messages, want 0", allocs)
	}
}

// TestSizeOfAWaitingMessage: a waiting message takes, beside its payload, the record without
// the payload's header, the entry among the ages, and its index.
func TestSizeOfAWaitingMessage(t *testing.T) {
	size := unsafe.Sizeof(record{}) - unsafe.Sizeof(record{}.payload) + unsafe.Sizeof(entry{}) + unsafe.Sizeof(uint32(0))
	if size > 108 {
		t.Errorf("a waiting message costs %d bytes, want at most 108", size)
	}
}
