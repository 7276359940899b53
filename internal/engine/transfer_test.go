package engine_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// receiptOf returns the receipt of a message of the queue as an inspection shows it.
func (l *lab) receiptOf(name string) engine.Receipt {
	l.t.Helper()
	r, found := l.e.Find(l.q, id(name))
	if !found {
		l.t.Fatalf("there is no message %s", name)
	}
	return r
}

// A transfer takes the message that is named, in whatever order, and the recorder sees one removal
// and one arrival.
func TestTransferMakesANewMessage(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newLab(t, engine.Settings{})
		to := l.e.Create(l.now, "to", engine.Settings{FIFO: true})
		tape := newTape(t)
		l.e.Record(tape)
		l.send("", "a", "b", "c")
		l.wait(time.Hour)
		as := engine.Message{ID: id("b2"), Group: "g", Dedup: "d", Payload: "new"}
		number, moved := l.e.Transfer(l.now, l.q, to, l.receiptOf("b"), as, keep)
		if !moved || keep != (number == 2) || !keep && number != 4 {
			t.Fatalf("keep %v: moved %v with the number %d", keep, moved, number)
		}
		got, err := l.e.Receive(l.now, to, 10, -1, nil)
		if err != nil || len(got) != 1 || name(got[0].ID) != "b2" || got[0].Group != "g" || got[0].Dedup != "d" || got[0].Payload != "new" ||
			got[0].Receives != 1 || !got[0].SentAt.Equal(l.now) || got[0].Source != "" || got[0].SendNumber != number {
			t.Errorf("keep %v: received %+v, %v", keep, got, err)
		}
		l.wantReceive(10, "a c")
		if wasMoved := len(tape.moved) == 1; wasMoved != keep {
			t.Errorf("keep %v: recorded as moved are %v", keep, tape.moved)
		}
		if left := len(tape.queues[mainQueue].messages); left != 2 {
			t.Errorf("keep %v: %d messages are recorded in the queue, want 2", keep, left)
		}
	}
}

// A transfer leaves messages that somebody works on, or has received since it looked. A removal leaves the same ones.
func TestTransferLeavesWhatOthersHave(t *testing.T) {
	l := newLab(t, engine.Settings{Retention: 2 * time.Hour})
	to := l.e.Create(l.now, "to", engine.Settings{})
	l.e.Send(l.now, l.q, engine.Message{ID: id("delayed"), Delay: time.Hour})
	l.send("", "held", "again", "gone")
	before := l.receiptOf("again")
	gone := l.receiptOf("gone")
	l.receiveFor(3, time.Minute)
	l.change("again", 0)
	l.delete("gone")
	for name, r := range map[string]engine.Receipt{"delayed": l.receiptOf("delayed"), "held": l.receiptOf("held"), "again": before, "gone": gone} {
		if _, moved := l.e.Transfer(l.now, l.q, to, r, engine.Message{}, false); moved {
			t.Errorf("%s was moved", name)
		}
		if l.e.RemoveIdle(l.now, l.q, r) {
			t.Errorf("%s was removed", name)
		}
	}
	l.wantCounts(1, 1, 1)
	l.wait(time.Minute) // the lease of held is over
	for _, name := range []string{"held", "again"} {
		if _, moved := l.e.Transfer(l.now, l.q, to, l.receiptOf(name), engine.Message{ID: id(name)}, false); !moved {
			t.Errorf("%s was not moved when it was visible", name)
		}
	}
	l.wait(time.Hour)
	if r := l.receiptOf("delayed"); !l.e.RemoveIdle(l.now, l.q, r) || l.e.RemoveIdle(l.now, l.q, r) {
		t.Error("a message that is visible now was not removed once")
	}
	l.wait(time.Hour)
	l.wantCounts(0, 0, 0)
}

// No message of a FIFO group overtakes one before it that somebody has.
func TestTransferKeepsTheOrderOfGroups(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	to := l.e.Create(l.now, "to", engine.Settings{FIFO: true})
	l.send("g", "1", "2", "3", "4")
	l.send("h", "5")
	l.receiveFor(3, time.Minute)
	l.change("1", 0)
	move := func(name string) bool {
		_, moved := l.e.Transfer(l.now, l.q, to, l.receiptOf(name), engine.Message{ID: id(name), Group: "g"}, false)
		return moved
	}
	for _, test := range []struct {
		name string
		want bool
	}{{"4", false}, {"2", false}, {"1", true}, {"4", false}, {"5", true}} {
		if got := move(test.name); got != test.want {
			t.Errorf("%s: moved %v, want %v", test.name, got, test.want)
		}
	}
	l.wait(time.Minute)
	for _, name := range []string{"2", "3", "4"} {
		if !move(name) {
			t.Errorf("%s was not moved after the leases", name)
		}
	}
}
