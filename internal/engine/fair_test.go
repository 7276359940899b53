package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// flood sends n messages of a tenant and receives them all, so that they are in
// flight.
func (l *lab) flood(tenant string, n int) {
	l.t.Helper()
	for i := range n {
		l.send(tenant, fmt.Sprintf("%s%d", tenant, i))
	}
	for range n {
		if got := l.receive(1); !strings.HasPrefix(got, tenant) {
			l.t.Fatalf("received %q, want a message of %s", got, tenant)
		}
	}
}

// backlog sends messages of three tenants, one of them without a group.
func (l *lab) backlog() {
	for _, m := range []struct{ tenant, name string }{{"n", "n.1"}, {"n", "n.2"}, {"q", "q.1"}, {"", "-"}, {"n", "n.3"}} {
		l.wait(time.Millisecond)
		l.send(m.tenant, m.name)
	}
}

func TestQuietTenantsGoFirst(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(*lab)
		want string
	}{
		{"nobody is noisy", func(l *lab) {
			l.flood("n", 27)
			l.backlog()
		}, "n.1 n.2 q.1 - n.3"},
		{"thirty in flight and more than a tenth of all", func(l *lab) {
			l.flood("n", 30)
			l.backlog()
		}, "q.1 - n.1 n.2 n.3"},
		{"less than a tenth of all in flight", func(l *lab) {
			l.flood("", 300)
			l.flood("n", 30)
			l.backlog()
		}, "n.1 n.2 q.1 - n.3"},
		{"a tenth of all in flight, and more on the way", func(l *lab) {
			l.flood("", 270)
			l.flood("n", 30)
			l.backlog()
		}, "n.1 q.1 - n.2 n.3"},
		{"noisy on the way", func(l *lab) {
			l.flood("n", 29)
			l.backlog()
		}, "n.1 q.1 - n.2 n.3"},
		{"nothing came for five minutes", func(l *lab) {
			l.flood("n", 30)
			l.backlog()
			l.wait(5 * time.Minute)
		}, "n.1 n.2 q.1 - n.3"},
		{"something came within five minutes", func(l *lab) {
			l.flood("n", 30)
			l.backlog()
			l.wait(3 * time.Minute)
			l.send("n", "n.4")
			l.wait(3 * time.Minute)
		}, "q.1 - n.1 n.2 n.3 n.4"},
		{"what was in flight is deleted, the backlog stays", func(l *lab) {
			l.flood("n", 30)
			l.send("n", "n.0")
			l.deleteFlood("n", 30)
			l.backlog()
		}, "q.1 - n.0 n.1 n.2 n.3"},
		{"the backlog drains", func(l *lab) {
			l.flood("n", 30)
			l.send("n", "n.0")
			l.wantReceive(1, "n.0")
			l.deleteFlood("n", 30)
			l.backlog()
		}, "n.1 n.2 q.1 - n.3"},
		{"noisy tenants go by what they have in flight", func(l *lab) {
			l.flood("n", 40)
			l.flood("m", 30)
			l.send("n", "n.0")
			l.send("m", "m.0")
			l.backlog()
		}, "q.1 - m.0 n.0 n.1 n.2 n.3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{Visibility: time.Hour})
			test.play(l)
			l.wantReceive(10, test.want)
		})
	}
}

func (l *lab) deleteFlood(tenant string, n int) {
	for i := range n {
		l.delete(fmt.Sprintf("%s%d", tenant, i))
	}
}

// A message that comes back goes behind those of other tenants: nobody starves.
// Messages that were sent at one instant come in the order of their sending, with and without a tenant.
func TestTenantsAtOneInstant(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("t", "t1")
	l.send("", "a")
	l.send("t", "t2")
	l.wantReceive(2, "t1 a")
	l.wantReceive(1, "t2")
}

// A purge forgets who was noisy.
func TestPurgeForgetsNoisyTenants(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.flood("n", 30)
	l.backlog()
	l.receive(2) // the others'
	l.e.Purge(l.now, l.q)
	l.wantReceive(1, "")
	l.send("", "m1")
	l.wait(5 * time.Minute) // after which nobody is noisy any more
	l.wantReceive(10, "m1")
	if err := engine.Invariants(l.q); err != nil {
		t.Error(err)
	}
}

func TestReturnedMessagesOfATenantGoBehind(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.send("a", "poison")
	for _, step := range []struct{ send, want string }{{"b", "poison"}, {"c", "b"}, {"d", "poison"}, {"e", "c"}, {"f", "b"}} {
		l.wait(time.Second)
		l.send(step.send, step.send)
		l.wait(time.Second)
		l.wantReceive(1, step.want)
		l.change(step.want, 0)
	}
}

// Without a lease every message is taken once, noisy or not.
func TestReceiveWithoutLeaseTakesEachOnce(t *testing.T) {
	l := newLab(t, engine.Settings{})
	l.flood("n", 30)
	l.send("n", "n.1", "n.2")
	l.send("", "x")
	l.send("q", "q.1", "q.2")
	for range 3 {
		got := strings.Fields(l.receiveFor(10, 0))
		if len(got) != 5 || got[3] != "n.1" && got[3] != "n.2" {
			t.Errorf("received %q, want the quiet ones and then the noisy ones, each once", got)
		}
	}
	l.wantCounts(5, 30, 0)
}

// A dead letter of a noisy tenant, in a queue that is its own dead-letter queue,
// is not tried again by the receive that moved it.
func TestOwnDeadLettersOfATenant(t *testing.T) {
	l := newLab(t, engine.Settings{DeadLetter: mainQueue, MaxReceives: 1})
	l.send("a", "a1", "a2")
	l.send("b", "b1")
	if got := strings.Fields(l.receiveFor(10, 0)); len(got) != 3 {
		t.Fatalf("received %q", got)
	}
	l.wantReceive(10, "")
	if got := strings.Fields(l.receive(10)); len(got) != 3 {
		t.Errorf("received %q, want the three dead letters", got)
	}
}
