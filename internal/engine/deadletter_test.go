package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

func TestDeadLetter(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		for _, limit := range []int{1, 3} {
			t.Run(fmt.Sprintf("fifo=%v maxReceives=%d", fifo, limit), func(t *testing.T) {
				l := newLab(t, engine.Settings{FIFO: fifo, DeadLetter: deadQueue, MaxReceives: limit})
				dead := l.e.Create(l.now, deadQueue, engine.Settings{FIFO: fifo, Visibility: time.Minute})
				l.send("g", "m")
				for range limit {
					l.wantReceive(1, "m")
					l.change("m", 0)
				}
				l.wait(time.Hour)
				l.woken()
				l.wantReceive(1, "")
				if got := l.e.Woken(nil); !slices.Contains(got, dead) {
					t.Error("the dead-letter queue was not reported")
				}
				l.wantCounts(0, 0, 0)
				got, err := l.e.Receive(l.now, dead, 1, -1, nil)
				if err != nil || len(got) != 1 {
					t.Fatalf("dead-letter queue: received %v, %v", got, err)
				}
				want := engine.Delivery{
					Message:       engine.Message{ID: id("m"), Group: "g", Dedup: "m"},
					Receipt:       engine.Receipt{Number: got[0].Receipt.Number, Generation: uint32(limit + 1)},
					SendNumber:    1,
					SentAt:        epoch,
					FirstReceived: epoch,
					Receives:      limit + 1,
					Source:        mainQueue,
					VisibleAt:     l.now.Add(time.Minute),
					InFlight:      true,
				}
				if fifo {
					want.SentAt, want.Dedup, want.Sequence = l.now, id("m").String(), 2
				}
				if diff := gocmp.Diff(want, got[0]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDeadLetterIsNotTriggeredByAVisibilityChange(t *testing.T) {
	l := newLab(t, engine.Settings{DeadLetter: deadQueue, MaxReceives: 1})
	l.e.Create(l.now, deadQueue, engine.Settings{})
	l.send("", "m")
	l.receive(1)
	l.change("m", 0)
	l.wantCounts(1, 0, 0)
}

func TestWithoutADeadLetterQueueExhaustedMessagesAreDelivered(t *testing.T) {
	l := newLab(t, engine.Settings{DeadLetter: deadQueue, MaxReceives: 1})
	dead := l.e.Create(l.now, deadQueue, engine.Settings{})
	l.e.Drop(l.now, dead)
	l.send("", "m")
	for range 3 {
		l.wantReceive(1, "m")
		l.change("m", 0)
	}
}

// A dead-letter queue with a redrive policy of its own delivers what comes in,
// although the receive count goes on from the source's.
func TestDeadLetterChainDeliversInEachQueue(t *testing.T) {
	l := newLab(t, engine.Settings{DeadLetter: deadQueue, MaxReceives: 2})
	dead := l.e.Create(l.now, deadQueue, engine.Settings{DeadLetter: "last", MaxReceives: 2})
	last := l.e.Create(l.now, "last", engine.Settings{})
	l.send("", "m")
	var seen []string
	for range 8 {
		for _, q := range []*engine.Queue{l.q, dead, last} {
			got, _ := l.e.Receive(l.now, q, 1, 0, nil)
			for _, d := range got {
				seen = append(seen, fmt.Sprintf("%s:%d", q.Key(), d.Receives))
			}
		}
	}
	want := "main:1 main:2 dead:3 dead:4 last:5"
	if got := strings.Join(seen, " "); !strings.HasPrefix(got, want) {
		t.Errorf("received %s, want %s ...", got, want)
	}
}

func TestQueueThatIsItsOwnDeadLetterQueueDeliversOn(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		l := newLab(t, engine.Settings{FIFO: fifo, DeadLetter: mainQueue, MaxReceives: 1})
		l.send("g", "m")
		for range 3 {
			if got := l.receiveFor(10, 0); got != "m" {
				t.Errorf("fifo=%v: received %q, want m", fifo, got)
			}
			if got := l.receiveFor(10, 0); got != "" {
				t.Errorf("fifo=%v: received %q in the call that moves it, want none", fifo, got)
			}
		}
	}
}
