package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// newRedriveLab has a message "x" of main in the dead-letter queue, received
// twice.
func newRedriveLab(t *testing.T, fifo bool) (l *lab, dead *engine.Queue) {
	l = newLab(t, engine.Settings{FIFO: fifo, DeadLetter: deadQueue, MaxReceives: 2})
	dead = l.e.Create(l.now, deadQueue, engine.Settings{FIFO: fifo})
	l.send("g", "x")
	for range 2 {
		l.wantReceive(1, "x")
		l.change("x", 0)
	}
	l.wantReceive(1, "")
	return l, dead
}

func TestRedriveMakesANewMessage(t *testing.T) {
	for name, fifo := range map[string]bool{"standard": false, "FIFO": true} {
		t.Run(name, func(t *testing.T) {
			l, dead := newRedriveLab(t, fifo)
			l.wait(time.Hour)
			l.woken()
			if moved, err := l.e.Redrive(l.now, dead, nil, id("y")); !moved || err != nil {
				t.Fatalf("redrive: %v, %v", moved, err)
			}
			l.wantWoken(true)
			got, err := l.e.Receive(l.now, l.q, 1, time.Minute, nil)
			if err != nil || len(got) != 1 {
				t.Fatalf("received %v, %v", got, err)
			}
			want := engine.Delivery{
				Message: engine.Message{ID: id("y"), Group: "g", Dedup: "x"}, Receipt: got[0].Receipt, Sequence: got[0].Sequence, SendNumber: 1,
				SentAt: l.now, FirstReceived: l.now, Receives: 1, VisibleAt: l.now.Add(time.Minute), InFlight: true,
			}
			if fifo {
				want.Dedup = id("x").String() // what the dead-letter queue gave it
			}
			if diff := cmp.Diff(want, got[0]); diff != "" {
				t.Errorf("redriven message (-want +got):\n%s", diff)
			}
			if moved, err := l.e.Redrive(l.now, dead, nil, id("z")); moved || err != nil {
				t.Errorf("redrive of an empty queue: %v, %v", moved, err)
			}
		})
	}
}

func TestRedriveNeedsToKnowWhereTo(t *testing.T) {
	l, dead := newRedriveLab(t, false)
	other := l.e.Create(l.now, "other", engine.Settings{})
	l.e.Send(l.now, other, engine.Message{ID: id("by hand")})
	if moved, err := l.e.Redrive(l.now, other, nil, id("y")); moved || err != engine.ErrNoSource {
		t.Errorf("redrive of a message that was sent: %v, %v; want %v", moved, err, engine.ErrNoSource)
	}
	l.e.Drop(l.now, l.q)
	if moved, err := l.e.Redrive(l.now, dead, nil, id("y")); moved || err != engine.ErrSourceGone {
		t.Errorf("redrive to a deleted queue: %v, %v; want %v", moved, err, engine.ErrSourceGone)
	}
	if moved, err := l.e.Redrive(l.now, dead, other, id("y")); !moved || err != nil {
		t.Errorf("redrive to another queue: %v, %v", moved, err)
	}
	if v, _, _ := l.e.Counts(l.now, other); v != 2 {
		t.Errorf("the destination has %d messages, want 2", v)
	}
}

// A redrive settles what is due before it looks for a message.
func TestRedriveSeesTheQueueAsItIsNow(t *testing.T) {
	for name, prepare := range map[string]func(*lab){
		"a lease is over": func(l *lab) {
			l.send("", "m")
			l.receiveFor(1, time.Minute)
			l.wait(time.Minute)
		},
		"the first message has expired": func(l *lab) {
			l.send("", "old")
			l.wait(30 * time.Minute)
			l.send("", "m")
			l.wait(30 * time.Minute)
		},
	} {
		l := newLab(t, engine.Settings{Retention: time.Hour})
		to := l.e.Create(l.now, "to", engine.Settings{})
		prepare(l)
		if moved, err := l.e.Redrive(l.now, l.q, to, id("y")); !moved || err != nil {
			t.Errorf("%s: %v, %v", name, moved, err)
		}
		if got, err := l.e.Receive(l.now, to, 1, -1, nil); err != nil || len(got) != 1 || got[0].Dedup != "m" {
			t.Errorf("%s: redriven are %v, %v, want m", name, got, err)
		}
	}
}

// In flight, delayed and expired messages stay where they are.
func TestRedriveTakesVisibleMessagesInOrder(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true, Retention: time.Hour})
	to := l.e.Create(l.now, "to", engine.Settings{FIFO: true})
	l.send("a", "old")
	l.wait(59 * time.Minute)
	l.send("b", "held", "behind")
	l.receiveFor(10, 10*time.Minute) // old and the two of b
	l.change("behind", 0)
	l.send("c", "c1", "c2")
	l.wait(time.Minute)
	for _, want := range []bool{true, true, false} {
		if moved, err := l.e.Redrive(l.now, l.q, to, id("moved")); moved != want || err != nil {
			t.Errorf("redrive: %v, %v; want %v", moved, err, want)
		}
	}
	got, err := l.e.Receive(l.now, to, 10, -1, nil)
	if err != nil || len(got) != 2 || got[0].Dedup != "c1" || got[1].Dedup != "c2" {
		t.Errorf("redriven: %v, %v; want c1 and c2", got, err)
	}
}
