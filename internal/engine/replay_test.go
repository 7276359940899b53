package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

func TestReplay(t *testing.T) {
	for _, test := range []struct {
		name    string
		between func(*lab)
		want    bool
	}{
		{"nothing happened", func(l *lab) {}, true},
		{"others were sent", func(l *lab) { l.send("g", "c") }, true},
		{"one was deleted", func(l *lab) { l.delete("a") }, false},
		{"one was extended", func(l *lab) { l.change("b", time.Hour) }, false},
		{"one was given back", func(l *lab) { l.change("b", 0) }, false},
		{"one was received again", func(l *lab) { l.change("b", 0); l.change("a", 0); l.receive(10) }, false},
		{"the leases ended", func(l *lab) { l.wait(time.Minute) }, false},
		{"the queue was purged", func(l *lab) { l.e.Purge(l.now, l.q) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{FIFO: true, Visibility: 30 * time.Second})
			l.send("g", "a", "b")
			first, err := l.e.Receive(l.now, l.q, 10, time.Minute, nil)
			if err != nil || len(first) != 2 {
				t.Fatalf("received %v, %v", first, err)
			}
			var leases []engine.Lease
			for _, d := range first {
				l.receipts[name(d.ID)] = d.Receipt
				leases = append(leases, engine.Lease{Receipt: d.Receipt, Until: d.VisibleAt})
			}
			l.wait(10 * time.Second)
			test.between(l)
			again, ok := l.e.Replay(l.now, l.q, leases, -1, nil)
			if ok != test.want || !ok && len(again) > 0 {
				t.Fatalf("replay: %v, %v; want %v", again, ok, test.want)
			}
			if !ok {
				return
			}
			for i := range first {
				first[i].VisibleAt = l.now.Add(30 * time.Second) // the queue's
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("replayed (-want +got):\n%s", diff)
			}
			if _, ok := l.e.Replay(l.now, l.q, leases, 0, nil); ok {
				t.Error("the leases of before the replay are still taken for current")
			}
		})
	}
}

// Replayed without a lease the messages are visible.
func TestReplayWithoutLease(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	l.send("g", "a")
	first, _ := l.e.Receive(l.now, l.q, 1, time.Minute, nil)
	l.woken()
	again, ok := l.e.Replay(l.now, l.q, []engine.Lease{{first[0].Receipt, first[0].VisibleAt}}, 0, nil)
	if !ok || len(again) != 1 || !again[0].VisibleAt.IsZero() {
		t.Errorf("replay: %v, %v", again, ok)
	}
	l.wantWoken(true)
	l.wantCounts(1, 0, 0)
}
