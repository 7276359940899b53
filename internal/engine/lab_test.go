package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// lab is an engine with one queue under test and a clock that the test moves.
// Messages go by short names.
type lab struct {
	t        *testing.T
	e        *engine.Engine
	q        *engine.Queue
	now      time.Time
	receipts map[string]engine.Receipt // by name: the newest
}

func newLab(t *testing.T, s engine.Settings) *lab {
	l := &lab{t: t, e: engine.New(), now: epoch, receipts: map[string]engine.Receipt{}}
	if s.Visibility == 0 {
		s.Visibility = 30 * time.Second
	}
	l.q = l.e.Create(l.now, mainQueue, s)
	return l
}

func (l *lab) wait(d time.Duration) { l.now = l.now.Add(d) }

// send sends messages by name to a group (a FIFO queue's) or to none.
func (l *lab) send(group string, names ...string) {
	for _, name := range names {
		l.e.Send(l.now, l.q, engine.Message{ID: id(name), Group: group, Dedup: name, Delay: -1})
	}
}

// receive returns the names of up to n messages.
func (l *lab) receive(n int) string { return l.receiveFor(n, -1) }

func (l *lab) receiveFor(n int, visibility time.Duration) string {
	l.t.Helper()
	got, err := l.e.Receive(l.now, l.q, n, visibility, nil)
	if err != nil {
		l.t.Fatalf("receive: %v", err)
	}
	var names []string
	for _, d := range got {
		names = append(names, name(d.ID))
		l.receipts[name(d.ID)] = d.Receipt
	}
	return strings.Join(names, " ")
}

func (l *lab) delete(names ...string) {
	l.t.Helper()
	for _, n := range names {
		if err := l.e.Delete(l.now, l.q, l.receipts[n]); err != nil {
			l.t.Fatalf("delete %s: %v", n, err)
		}
	}
}

func (l *lab) change(name string, d time.Duration) {
	l.t.Helper()
	if err := l.e.ChangeVisibility(l.now, l.q, l.receipts[name], d); err != nil {
		l.t.Fatalf("change visibility of %s: %v", name, err)
	}
}

func (l *lab) wantReceive(n int, want string) {
	l.t.Helper()
	if got := l.receive(n); got != want {
		l.t.Errorf("received %q, want %q", got, want)
	}
}

func (l *lab) wantCounts(visible, inFlight, delayed int) {
	l.t.Helper()
	v, f, d := l.e.Counts(l.now, l.q)
	if v != visible || f != inFlight || d != delayed {
		l.t.Errorf("counts are %d visible, %d in flight, %d delayed, want %d, %d, %d", v, f, d, visible, inFlight, delayed)
	}
}

// woken reports whether the queue was reported since the last call.
func (l *lab) woken() bool { return slices.Contains(l.e.Woken(nil), l.q) }

func (l *lab) wantWoken(want bool) {
	l.t.Helper()
	if got := l.woken(); got != want {
		l.t.Errorf("woken: %v, want %v", got, want)
	}
}

func id(name string) (id engine.ID) {
	copy(id[:], name)
	return id
}

func name(id engine.ID) string { return strings.TrimRight(string(id[:]), "\x00") }
