package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

func TestInFlightQuota(t *testing.T) {
	for _, test := range []struct {
		name string
		fifo bool
		want error
	}{
		{"standard answers OverLimit", false, engine.ErrOverLimit},
		{"FIFO answers nothing", true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{FIFO: test.fifo, InFlightLimit: 3})
			for i := range 6 {
				l.send(fmt.Sprint(i), fmt.Sprint(i))
			}
			l.wantReceive(2, "0 1")
			l.wantReceive(10, "2") // what is left of the quota
			got, err := l.e.Receive(l.now, l.q, 10, -1, nil)
			if len(got) != 0 || err != test.want {
				t.Errorf("at the quota: received %d, %v, want %v", len(got), err, test.want)
			}
			l.woken()
			l.delete("1")
			l.wantWoken(true)
			l.wantReceive(10, "3")
			l.woken()
			l.change("0", 0)
			l.wantWoken(true)
			l.wantCounts(3, 2, 0)
			l.wait(30 * time.Second)
			if got := l.receive(10); strings.Count(got, " ") != 2 {
				t.Errorf("received %q after the leases ended, want three", got)
			}
		})
	}
}

// A message in flight that expires makes room at once.
func TestExpiryMakesRoom(t *testing.T) {
	l := newLab(t, engine.Settings{InFlightLimit: 1, Retention: time.Hour})
	l.send("", "a")
	l.receiveFor(1, 2*time.Hour)
	l.wait(time.Hour - time.Second)
	l.send("", "b")
	l.wait(time.Second)
	l.wantReceive(1, "b")
}

// A queue is reported when a receive may get more than before, and else is not.
func TestWokenOnlyForMore(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.woken()
	l.e.Configure(l.now, l.q, engine.Settings{Visibility: time.Minute})
	l.wantWoken(false) // the queue is empty
	l.send("", "a", "b")
	l.wantReceive(1, "a")
	l.wantWoken(true)
	l.delete("a")
	l.wantWoken(false) // b could be received before
}

func TestDelayedMessagesDoNotCountAgainstTheQuota(t *testing.T) {
	l := newLab(t, engine.Settings{InFlightLimit: 1, Delay: time.Minute})
	l.send("", "a", "b")
	l.e.Send(l.now, l.q, engine.Message{ID: id("c")})
	l.wantReceive(10, "c")
	l.wantCounts(0, 1, 2)
}

func TestDefaultQuotaIs120000(t *testing.T) {
	l := newLab(t, engine.Settings{Visibility: time.Hour})
	for range 120_001 {
		l.e.Send(l.now, l.q, engine.Message{})
	}
	var got []engine.Delivery
	var err error
	for range 12_000 {
		if got, err = l.e.Receive(l.now, l.q, 10, -1, got[:0]); len(got) != 10 {
			t.Fatalf("received %d, %v", len(got), err)
		}
	}
	if _, err = l.e.Receive(l.now, l.q, 10, -1, nil); err != engine.ErrOverLimit {
		t.Errorf("got %v, want %v", err, engine.ErrOverLimit)
	}
	l.e.Configure(l.now, l.q, engine.Settings{InFlightLimit: -1})
	if got, err = l.e.Receive(l.now, l.q, 10, -1, nil); len(got) != 1 || err != nil {
		t.Errorf("without a limit: received %d, %v", len(got), err)
	}
}
