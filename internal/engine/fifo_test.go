package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// The rows of the table of FIFO situations in the SQS reference, observed on
// AWS by LocalStack's validated tests: m1, m2, m3 of one group.
func TestGroupLocking(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(l *lab)
	}{
		{"m1 in flight blocks m2 sent later until m1 is deleted", func(l *lab) {
			l.send("g", "m1")
			l.wantReceive(10, "m1")
			l.send("g", "m2")
			l.woken()
			l.wantReceive(10, "")
			l.delete("m1")
			l.wantWoken(true)
			l.wantReceive(10, "m2")
		}},
		{"m1 in flight blocks m2 until m1 is visible", func(l *lab) {
			l.send("g", "m1")
			l.receive(10)
			l.send("g", "m2")
			l.woken()
			l.wait(30 * time.Second)
			l.e.Advance(l.now, l.q, 10)
			l.wantWoken(true)
			l.wantReceive(10, "m1 m2")
		}},
		{"m1 and m2 in flight, m1 deleted: m3 is blocked by m2", func(l *lab) {
			l.send("g", "m1", "m2", "m3")
			l.wantReceive(2, "m1 m2")
			l.delete("m1")
			l.wantReceive(10, "")
			l.delete("m2")
			l.wantReceive(10, "m3")
		}},
		{"m1 and m2 in flight, m2 deleted: m3 is blocked by m1", func(l *lab) {
			l.send("g", "m1", "m2", "m3")
			l.receive(2)
			l.delete("m2")
			l.wantReceive(10, "")
		}},
		{"m1 and m2 in flight, m1 exposed: m1 alone is receivable", func(l *lab) {
			l.send("g", "m1", "m2", "m3")
			l.receive(2)
			l.woken()
			l.change("m1", 0)
			l.wantWoken(true)
			l.wantReceive(10, "m1")
			l.wantReceive(10, "")
		}},
		{"all in flight, all lapse but m1: nothing", func(l *lab) { lapse(l, "m1", "") }},
		{"all in flight, all lapse but m2: m1", func(l *lab) { lapse(l, "m2", "m1") }},
		{"all in flight, all lapse but m3: m1 and m2", func(l *lab) { lapse(l, "m3", "m1 m2") }},
		{"m1 goes to the dead-letter queue: the group flows", func(l *lab) {
			l.e.Create(l.now, deadQueue, engine.Settings{FIFO: true})
			l.e.Configure(l.now, l.q, engine.Settings{FIFO: true, Visibility: 30 * time.Second, DeadLetter: deadQueue, MaxReceives: 1})
			l.send("g", "m1", "m2", "m3")
			l.receive(1)
			l.change("m1", 0)
			l.wantReceive(10, "m2 m3")
		}},
		{"a lapsed batch comes again in its order", func(l *lab) {
			l.send("g", "m1", "m2", "m3")
			l.receive(10)
			l.wait(30 * time.Second)
			l.wantReceive(10, "m1 m2 m3")
		}},
		{"a delayed message blocks what is behind it", func(l *lab) {
			l.e.Configure(l.now, l.q, engine.Settings{FIFO: true, Delay: time.Minute})
			l.send("g", "m1")
			l.wait(30 * time.Second)
			l.send("g", "m2")
			l.wantReceive(10, "")
			l.wait(30 * time.Second)
			l.wantReceive(10, "m1")
		}},
		{"m1 expires in flight: m2 is receivable", func(l *lab) {
			l.e.Configure(l.now, l.q, engine.Settings{FIFO: true, Retention: time.Minute})
			l.send("g", "m1")
			l.receiveFor(10, time.Hour)
			l.wait(30 * time.Second)
			l.send("g", "m2")
			l.woken()
			l.wait(30 * time.Second)
			if next, ok := l.e.Next(l.q); !ok || !next.Equal(l.now) {
				t.Errorf("next: got %v %v, want the expiry of m1", next, ok)
			}
			l.e.Advance(l.now, l.q, 10)
			l.wantWoken(true)
			l.wantReceive(10, "m2")
		}},
		{"a receive without a lease blocks nothing", func(l *lab) {
			l.send("g", "m1", "m2")
			if got := l.receiveFor(10, 0); got != "m1 m2" {
				t.Errorf("received %q", got)
			}
			l.wantReceive(10, "m1 m2")
		}},
		{"other groups are free", func(l *lab) {
			l.send("g", "m1", "m2")
			l.receive(1)
			l.send("h", "n1")
			l.wantReceive(10, "n1")
		}},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(newLab(t, engine.Settings{FIFO: true})) })
	}
}

// lapse receives m1, m2, m3, lets all leases but one lapse, and says what must
// come then.
func lapse(l *lab, extended, want string) {
	l.t.Helper()
	l.send("g", "m1", "m2", "m3")
	l.wantReceive(10, "m1 m2 m3")
	l.change(extended, time.Minute)
	l.wait(30 * time.Second)
	l.wantReceive(10, want)
}

func TestGroupsAreFilledOneAfterTheOther(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	l.send("g1", "a1")
	l.send("g2", "b1")
	l.send("g1", "a2", "a3")
	l.wantReceive(10, "a1 a2 a3 b1")
}

func TestServedGroupGoesBehindTheOthers(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	l.send("g1", "a1", "a2", "a3", "a4")
	l.send("g2", "b1")
	l.send("g3", "c1")
	l.wantReceive(1, "a1")
	l.delete("a1")
	l.wantReceive(2, "b1 c1")
	l.delete("b1", "c1")
	l.wantReceive(2, "a2 a3")
}

// The second message's lease ended before the first one expired, so the group
// was never blocked, although a receive learns of both at once.
func TestGroupKeepsItsTurnWhenItsFirstMessageExpires(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true, Retention: time.Minute})
	l.send("g", "m1")
	l.wait(30 * time.Second)
	l.send("g", "m2")
	l.receiveFor(2, 20*time.Second)
	l.change("m1", 0)
	l.wait(time.Second)
	l.send("h", "n1")
	l.wait(30 * time.Second)
	l.wantReceive(1, "m2")
}

func TestReceiptsOnAFIFOQueue(t *testing.T) {
	for _, test := range []struct {
		name               string
		before             func(l *lab)
		wantDelete, wantCV error
	}{
		{"leased", func(*lab) {}, nil, nil},
		{"lease lapsed", func(l *lab) { l.wait(30 * time.Second) }, engine.ErrExpired, engine.ErrExpired},
		{"lease extended", func(l *lab) { l.change("m", time.Minute); l.wait(30 * time.Second) }, nil, nil},
		{"given up", func(l *lab) { l.change("m", 0) }, engine.ErrExpired, engine.ErrExpired},
		{"received again", func(l *lab) {
			old := l.receipts["m"]
			l.change("m", 0)
			l.receive(1)
			l.receipts["m"] = old
		}, engine.ErrExpired, engine.ErrExpired},
		{"received without a lease", func(l *lab) { l.change("m", 0); l.receiveFor(1, 0) }, engine.ErrExpired, engine.ErrExpired},
		{"deleted", func(l *lab) { l.delete("m") }, nil, engine.ErrGone},
		{"expired by retention", func(l *lab) { l.wait(5 * 24 * time.Hour) }, nil, engine.ErrGone},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, delete := range []bool{true, false} {
				l := newLab(t, engine.Settings{FIFO: true})
				l.send("g", "m")
				l.receive(1)
				test.before(l)
				got, want := l.e.ChangeVisibility, test.wantCV
				if delete {
					if err := l.e.Delete(l.now, l.q, l.receipts["m"]); err != test.wantDelete {
						t.Errorf("delete: got %v, want %v", err, test.wantDelete)
					}
				} else if err := got(l.now, l.q, l.receipts["m"], time.Second); err != want {
					t.Errorf("change visibility: got %v, want %v", err, want)
				}
			}
		})
	}
}

func TestDeduplication(t *testing.T) {
	type send struct {
		after        time.Duration
		group, dedup string
		duplicate    bool
	}
	for _, test := range []struct {
		name     string
		perGroup bool
		sends    []send
	}{
		{"within five minutes", false, []send{{0, "g", "x", false}, {5*time.Minute - 1, "g", "x", true}}},
		{"after five minutes", false, []send{{0, "g", "x", false}, {5 * time.Minute, "g", "x", false}}},
		{"a duplicate does not begin the window anew", false, []send{
			{0, "g", "x", false}, {4 * time.Minute, "g", "x", true}, {time.Minute, "g", "x", false}, {time.Minute, "g", "x", true},
		}},
		{"scope queue: across groups", false, []send{{0, "g", "x", false}, {0, "h", "x", true}}},
		{"scope group: not across groups", true, []send{{0, "g", "x", false}, {0, "h", "x", false}, {0, "h", "x", true}}},
		{"other ids", false, []send{{0, "g", "x", false}, {0, "g", "y", false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{FIFO: true, DedupPerGroup: test.perGroup})
			accepted := map[string]engine.Sent{}
			for i, s := range test.sends {
				l.wait(s.after)
				scope := s.dedup
				if test.perGroup {
					scope += s.group
				}
				got := l.e.Send(l.now, l.q, engine.Message{ID: id(fmt.Sprint(i)), Group: s.group, Dedup: s.dedup})
				if got.Duplicate != s.duplicate {
					t.Fatalf("send %d: duplicate is %v, want %v", i, got.Duplicate, s.duplicate)
				}
				if !s.duplicate {
					accepted[scope] = got
				} else if want := accepted[scope]; got.ID != want.ID || got.Sequence != want.Sequence {
					t.Errorf("send %d: got %v, want the original's %v", i, got, want)
				}
			}
		})
	}
}

func TestDeduplicationOutlivesTheMessageButNotAPurge(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	l.send("g", "m")
	l.receive(1)
	l.delete("m")
	l.send("g", "m")
	l.wantCounts(0, 0, 0)
	l.e.Purge(l.now, l.q)
	l.send("g", "m")
	l.wantReceive(1, "m")
}

// A delay that is shortened to the age of a message ends at once.
func TestShortenedDelayWakes(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true, Delay: 10 * time.Minute})
	l.send("g", "a")
	l.wait(5 * time.Minute)
	l.wantWoken(false)
	l.e.Configure(l.now, l.q, engine.Settings{Delay: 5 * time.Minute})
	l.wantWoken(true)
	l.wantReceive(1, "a")
}

func TestDelayOfAFIFOQueueIsRetroactive(t *testing.T) {
	l := newLab(t, engine.Settings{FIFO: true})
	l.send("g", "a")
	l.wantReceive(1, "a")
	l.wait(time.Second)
	l.send("h", "b")
	l.e.Configure(l.now, l.q, engine.Settings{Delay: time.Minute, Visibility: time.Hour})
	l.wantCounts(0, 1, 1)
	l.wait(29 * time.Second) // a's lease ends: it was received, no delay applies
	l.wantReceive(10, "a")
	l.woken()
	l.e.Configure(l.now, l.q, engine.Settings{Delay: 10 * time.Second, Visibility: time.Hour})
	l.wantWoken(true)
	l.wantReceive(10, "b")
}
