package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

func TestDeliveryCarriesTheMessageAndItsTimes(t *testing.T) {
	l := newLab(t, engine.Settings{})
	m := engine.Message{ID: id("m"), Group: "tenant", Payload: "body"}
	l.e.Send(l.now, l.q, m)
	l.wait(time.Second)
	l.receiveFor(1, time.Second)
	l.wait(time.Minute)
	got, err := l.e.Receive(l.now, l.q, 1, 5*time.Second, nil)
	if err != nil || len(got) != 1 {
		t.Fatalf("received %v, %v", got, err)
	}
	want := engine.Delivery{
		Message:       m,
		Receipt:       engine.Receipt{Number: got[0].Receipt.Number, Generation: 2},
		SendNumber:    1,
		SentAt:        epoch,
		FirstReceived: epoch.Add(time.Second),
		Receives:      2,
		VisibleAt:     l.now.Add(5 * time.Second),
		InFlight:      true,
	}
	if diff := gocmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDelay(t *testing.T) {
	for _, test := range []struct {
		name             string
		queue, message   time.Duration
		fifo             bool
		wantVisibleAfter time.Duration
	}{
		{name: "none", message: -1},
		{name: "the queue's", queue: 10 * time.Second, message: -1, wantVisibleAfter: 10 * time.Second},
		{name: "the message's wins", queue: 10 * time.Second, message: 3 * time.Second, wantVisibleAfter: 3 * time.Second},
		{name: "the message's zero wins", queue: 10 * time.Second, message: 0},
		{name: "FIFO: only the queue's", fifo: true, queue: 10 * time.Second, message: 0, wantVisibleAfter: 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{FIFO: test.fifo, Delay: test.queue})
			l.e.Send(l.now, l.q, engine.Message{ID: id("m"), Group: "g", Dedup: "m", Delay: test.message})
			if test.wantVisibleAfter > 0 {
				l.wantCounts(0, 0, 1)
				l.wait(test.wantVisibleAfter - 1)
				l.wantReceive(1, "")
				l.wait(1)
			}
			l.wantReceive(1, "m")
		})
	}
}

func TestReceiveWithoutLeaseLeavesTheMessageVisible(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("", "a", "b")
	if got := l.receiveFor(10, 0); got != "a b" {
		t.Errorf("received %q, want each message once", got)
	}
	l.wantCounts(2, 0, 0)
	got, _ := l.e.Receive(l.now, l.q, 1, 0, nil)
	if got[0].Receives != 2 {
		t.Errorf("receive count is %d, want 2", got[0].Receives)
	}
}

// A message that returns goes behind those that wait: fresh messages are not
// held up by returning ones, nor these by a stream of fresh ones.
func TestReturnedAndFreshMessagesAlternateByTheTimeTheyBecameVisible(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("", "old1", "old2")
	l.receiveFor(2, 10*time.Second)
	l.wait(5 * time.Second)
	l.send("", "fresh1")
	l.wait(5 * time.Second)
	l.e.Advance(l.now, l.q, 10)
	l.send("", "fresh2")
	l.wantReceive(10, "fresh1 old1 old2 fresh2")
}

func TestStaleReceiptsOnAStandardQueue(t *testing.T) {
	// Each case begins with a message received twice: the first lease of 10 s
	// has lapsed, the second of 60 s holds. first and second are the receipts.
	for _, test := range []struct {
		name       string
		do         func(l *lab, first, second engine.Receipt) error
		want       error
		wantCounts [3]int
	}{
		{"superseded receipt: delete succeeds and does not delete", func(l *lab, first, _ engine.Receipt) error {
			return l.e.Delete(l.now, l.q, first)
		}, nil, [3]int{0, 1, 0}},
		{"newest receipt deletes", func(l *lab, _, second engine.Receipt) error {
			return l.e.Delete(l.now, l.q, second)
		}, nil, [3]int{}},
		{"newest receipt deletes after its lease", func(l *lab, _, second engine.Receipt) error {
			l.wait(time.Hour)
			return l.e.Delete(l.now, l.q, second)
		}, nil, [3]int{}},
		{"repeated delete succeeds", func(l *lab, _, second engine.Receipt) error {
			return errors.Join(l.e.Delete(l.now, l.q, second), l.e.Delete(l.now, l.q, second))
		}, nil, [3]int{}},
		{"superseded receipt exposes what another receive holds", func(l *lab, first, _ engine.Receipt) error {
			return l.e.ChangeVisibility(l.now, l.q, first, 0)
		}, nil, [3]int{1, 0, 0}},
		{"visible again: a change hides the message anew", func(l *lab, _, second engine.Receipt) error {
			return errors.Join(l.e.ChangeVisibility(l.now, l.q, second, 0), l.e.ChangeVisibility(l.now, l.q, second, 10*time.Second))
		}, nil, [3]int{0, 1, 0}},
		{"change after delete", func(l *lab, _, second engine.Receipt) error {
			l.delete("m")
			return l.e.ChangeVisibility(l.now, l.q, second, time.Second)
		}, engine.ErrGone, [3]int{}},
		{"a number never given", func(l *lab, _, second engine.Receipt) error {
			return l.e.ChangeVisibility(l.now, l.q, engine.Receipt{Number: second.Number + 1, Generation: 1}, time.Second)
		}, engine.ErrGone, [3]int{0, 1, 0}},
		{"a generation still to come", func(l *lab, _, second engine.Receipt) error {
			second.Generation++
			return l.e.ChangeVisibility(l.now, l.q, second, time.Second)
		}, engine.ErrGone, [3]int{0, 1, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{})
			l.send("", "m")
			l.receiveFor(1, 10*time.Second)
			first := l.receipts["m"]
			l.wait(10 * time.Second)
			l.receiveFor(1, time.Minute)
			if got := test.do(l, first, l.receipts["m"]); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			l.wantCounts(test.wantCounts[0], test.wantCounts[1], test.wantCounts[2])
		})
	}
}

func TestReceiptDoesNotReachALaterMessageInTheSamePlace(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("", "old")
	l.receive(1)
	l.delete("old")
	l.send("", "new")
	l.delete("old")
	if err := l.e.ChangeVisibility(l.now, l.q, l.receipts["old"], time.Minute); err != engine.ErrGone {
		t.Errorf("got %v, want %v", err, engine.ErrGone)
	}
	l.wantReceive(1, "new")
}

func TestTwelveHourRule(t *testing.T) {
	for _, test := range []struct {
		name   string
		held   time.Duration // since the receive
		change time.Duration
		want   error
	}{
		{"12 h right after the receive", 0, 12 * time.Hour, engine.ErrBeyond12Hours},
		{"a second less", 0, 12*time.Hour - time.Second, nil},
		{"the rest after 40 minutes", 40 * time.Minute, 11*time.Hour + 20*time.Minute, engine.ErrBeyond12Hours},
		{"a second less than the rest", 40 * time.Minute, 11*time.Hour + 20*time.Minute - time.Second, nil},
		{"zero is never too long", 12 * time.Hour, 0, nil},
		{"visible again after 12 h", 12 * time.Hour, time.Second, engine.ErrBeyond12Hours},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{})
			l.send("", "m")
			l.receiveFor(1, 12*time.Hour)
			l.wait(test.held)
			if got := l.e.ChangeVisibility(l.now, l.q, l.receipts["m"], test.change); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestExtensionsDoNotResetTheTwelveHoursButAReceiveDoes(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("", "m")
	l.receiveFor(1, time.Hour)
	for range 11 {
		l.wait(time.Hour - time.Second)
		l.change("m", time.Hour)
	}
	if err := l.e.ChangeVisibility(l.now, l.q, l.receipts["m"], 2*time.Hour); err != engine.ErrBeyond12Hours {
		t.Errorf("got %v, want %v", err, engine.ErrBeyond12Hours)
	}
	l.change("m", 0)
	l.receive(1)
	l.change("m", 11*time.Hour)
}

func TestRetention(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(l *lab)
	}{
		{"visible", func(l *lab) {}},
		{"in flight", func(l *lab) { l.receiveFor(1, time.Hour) }},
		{"a visibility change does not extend it", func(l *lab) {
			l.receive(1)
			l.wait(30 * time.Second)
			l.change("m", time.Hour)
		}},
		{"delayed", func(l *lab) {
			l.e.Purge(l.now, l.q)
			l.e.Send(l.now, l.q, engine.Message{ID: id("m"), Delay: time.Hour})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{Retention: time.Minute})
			l.send("", "m")
			test.do(l)
			l.now = epoch.Add(time.Minute - 1)
			if v, f, d := l.e.Counts(l.now, l.q); v+f+d != 1 {
				t.Error("gone before its retention ended")
			}
			l.now = epoch.Add(time.Minute)
			l.delete("m") // of an expired message succeeds
			l.wantReceive(1, "")
			l.wantCounts(0, 0, 0)
		})
	}
}

func TestRetentionIsTakenFromTheQueueAsItIsNow(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("", "m")
	l.wait(3 * time.Minute)
	l.e.Configure(l.now, l.q, engine.Settings{Retention: 4 * time.Minute})
	l.wantCounts(1, 0, 0)
	l.e.Configure(l.now, l.q, engine.Settings{Retention: 3 * time.Minute})
	l.wantCounts(0, 0, 0)
	l.e.Configure(l.now, l.q, engine.Settings{})
	l.wantReceive(1, "")
}

func TestPurgeAndDrop(t *testing.T) {
	l := newLab(t, engine.Settings{Delay: time.Minute})
	l.send("", "delayed")
	l.e.Send(l.now, l.q, engine.Message{ID: id("flying")})
	l.receive(1)
	l.e.Send(l.now, l.q, engine.Message{ID: id("visible")})
	l.wantCounts(1, 1, 1)
	l.e.Purge(l.now, l.q)
	l.wantCounts(0, 0, 0)
	l.delete("flying")
	if _, ok := l.e.Next(l.q); ok {
		t.Error("a purged queue has a next instant")
	}
	l.woken()
	l.e.Send(l.now, l.q, engine.Message{ID: id("m")})
	l.e.Drop(l.now, l.q)
	if l.woken() || l.e.Lookup(mainQueue) != nil {
		t.Error("a dropped queue is known still")
	}
}

func TestOperatorActions(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%v", fifo), func(t *testing.T) {
			l := newLab(t, engine.Settings{FIFO: fifo, Delay: time.Minute, DeadLetter: deadQueue})
			dead := l.e.Create(l.now, deadQueue, engine.Settings{FIFO: fifo})
			l.send("g", "a", "b", "c")
			find := func(name string) engine.Receipt {
				r, ok := l.e.Find(l.q, id(name))
				if !ok {
					t.Fatalf("%s not found", name)
				}
				return r
			}
			l.e.Expose(l.now, l.q, find("a"))
			l.wantReceive(10, "a")
			l.e.Expose(l.now, l.q, find("a")) // a lost lease
			if got, _ := l.e.Receive(l.now, l.q, 1, -1, nil); len(got) != 1 || got[0].Receives != 2 {
				t.Errorf("after a lost lease: received %v, want a for the second time", got)
			}
			l.e.Remove(l.now, l.q, find("b"))
			if !l.e.DeadLetter(l.now, l.q, find("c")) {
				t.Error("dead-lettering by hand was refused")
			}
			if _, ok := l.e.Find(l.q, id("b")); ok {
				t.Error("b is found after its removal")
			}
			l.wantCounts(0, 1, 0)
			if got := l.e.Messages(l.now, dead, 0, 10); len(got) != 1 || got[0].Source != mainQueue {
				t.Errorf("the dead-letter queue has %v, want c from main", got)
			}
		})
	}
}

func TestTimeNeverGoesBack(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("", "m")
	l.receiveFor(1, time.Minute)
	l.wait(time.Minute)
	l.wantCounts(1, 0, 0)
	l.wait(-time.Hour)
	l.send("", "n")
	got := l.e.Messages(l.now, l.q, 0, 10)
	if want := epoch.Add(time.Minute); len(got) != 2 || !got[1].SentAt.Equal(want) {
		t.Errorf("sent at %v after the clock was set back, want %v", got[1].SentAt, want)
	}
	later := epoch.Add(time.Hour)
	for name, do := range map[string]func(*lab){
		"create": func(l *lab) { l.e.Create(later, "other", engine.Settings{}) },
		"drop":   func(l *lab) { l.e.Drop(later, l.e.Create(epoch, "other", engine.Settings{})) },
		"purge":  func(l *lab) { l.e.Purge(later, l.q) },
	} {
		l := newLab(t, engine.Settings{})
		do(l)
		l.send("", "m")
		if got := l.e.Messages(l.now, l.q, 0, 1); len(got) != 1 || !got[0].SentAt.Equal(later) {
			t.Errorf("%v was sent before a %s at %v", got, name, later)
		}
	}
}

func TestNext(t *testing.T) {
	l := newLab(t, engine.Settings{Retention: time.Hour})
	wantNext := func(want time.Duration) {
		t.Helper()
		got, ok := l.e.Next(l.q)
		if !ok || got.Sub(epoch) != want {
			t.Errorf("next: got %v %v, want %v", got.Sub(epoch), ok, want)
		}
	}
	l.send("", "a", "b")
	if _, ok := l.e.Next(l.q); ok {
		t.Error("visible messages need no attention")
	}
	l.e.Send(l.now, l.q, engine.Message{ID: id("c"), Delay: 20 * time.Second})
	wantNext(20 * time.Second)
	l.receiveFor(1, 10*time.Second)
	wantNext(10 * time.Second)
	l.change("a", 2*time.Hour)
	wantNext(20 * time.Second)
	l.wait(20 * time.Second)
	l.e.Advance(l.now, l.q, 10)
	wantNext(time.Hour) // a, parked, expires
}
