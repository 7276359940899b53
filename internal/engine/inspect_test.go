package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

func TestMessagesPagesThroughTheQueueAsItIsNow(t *testing.T) {
	l := newLab(t, engine.Settings{Retention: time.Hour})
	for i := range 600 {
		l.send("", fmt.Sprintf("m%03d", i))
	}
	l.receiveFor(10, time.Minute)
	l.delete("m000", "m003")
	l.wait(time.Minute) // the leases are over, and nothing has advanced the queue
	var names []string
	for after := uint64(0); ; {
		page := l.e.Messages(l.now, l.q, after, 50)
		if len(page) == 0 {
			break
		}
		if len(page) > 50 {
			t.Errorf("a page has %d messages, want at most 50", len(page))
		}
		for _, d := range page {
			if d.InFlight || !d.VisibleAt.IsZero() {
				t.Errorf("%s is shown as hidden after its lease", name(d.ID))
			}
			names = append(names, name(d.ID))
		}
		after = page[len(page)-1].Receipt.Number
	}
	if len(names) != 598 || !slices.IsSorted(names) {
		t.Errorf("%d messages, sorted %v; want 598 in the order of sending", len(names), slices.IsSorted(names))
	}
	if all := slices.Collect(l.e.All(l.now, l.q)); !slices.Equal(all, l.e.Messages(l.now, l.q, 0, 1000)) || len(all) != 598 {
		t.Errorf("All yields %d messages, or others than the pages", len(all))
	}
	for d := range l.e.All(l.now, l.q) {
		if name(d.ID) != "m001" {
			t.Errorf("All begins with %s, want m001", name(d.ID))
		}
		break
	}
	l.now = epoch.Add(time.Hour)
	if got := l.e.Messages(l.now, l.q, 0, 10); len(got) != 0 {
		t.Errorf("%d expired messages are shown", len(got))
	}
	if got := slices.Collect(l.e.All(l.now, l.q)); len(got) != 0 {
		t.Errorf("All yields %d expired messages", len(got))
	}
}

// Has knows a message by the number of any of its receipts, until it is deleted or expires.
func TestHas(t *testing.T) {
	l := newLab(t, engine.Settings{Retention: time.Hour})
	l.send("", "a", "b")
	l.receive(2)
	has := func(name string) bool { return l.e.Has(l.now, l.q, engine.Receipt{Number: l.receipts[name].Number}) }
	if !has("a") || !has("b") || l.e.Has(l.now, l.q, engine.Receipt{Number: l.receipts["b"].Number + 1<<32}) {
		t.Error("it does not have a or b, or has one that was never sent")
	}
	l.delete("a")
	if has("a") || !has("b") {
		t.Error("it has a after its delete, or not b")
	}
	l.wait(time.Hour)
	if has("b") {
		t.Error("it has b after its retention")
	}
}

func TestIDIsAUUID(t *testing.T) {
	id := engine.ID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	if got, want := id.String(), "00112233-4455-6677-8899-aabbccddeeff"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestHiddenIsWhatMessagesShows: however many slots it looks at in a call, Hidden finds each message
// that Messages shows as hidden once, and nothing else: not what was deleted, has expired, or is due.
func TestHiddenIsWhatMessagesShows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, settings := range []engine.Settings{{Retention: time.Hour}, {Retention: time.Hour, FIFO: true, Delay: 7 * time.Minute}} {
		l := newLab(t, settings)
		for i := range 3000 {
			m := engine.Message{ID: id(fmt.Sprintf("m%04d", i)), Delay: -1, Dedup: fmt.Sprint(i)}
			if settings.FIFO {
				m.Group = fmt.Sprint("g", i%500)
			} else if i%3 == 0 {
				m.Delay = time.Duration(1+random.IntN(900)) * time.Second
			}
			l.e.Send(l.now, l.q, m)
			switch i % 7 {
			case 1:
				l.receiveFor(1, time.Duration(1+random.IntN(7200))*time.Second)
			case 2:
				if all := l.e.Messages(l.now, l.q, 0, 1+random.IntN(20)); len(all) > 0 {
					l.e.Remove(l.now, l.q, all[len(all)-1].Receipt)
				}
			}
			l.wait(2 * time.Second)
		}
		type hidden struct {
			number uint64
			due    time.Time
		}
		want := []hidden{}
		for d := range l.e.All(l.now, l.q) {
			if !d.VisibleAt.IsZero() {
				want = append(want, hidden{d.Receipt.Number, d.VisibleAt})
			}
		}
		if len(want) < 50 {
			t.Fatalf("%d messages are hidden: the test shows nothing", len(want))
		}
		for _, slots := range []int{1, 7, 100, 10_000} {
			got := []hidden{}
			for after, first := uint64(0), true; after != 0 || first; first = false {
				after = l.e.Hidden(l.now, l.q, after, slots, func(number uint64, due time.Time) { got = append(got, hidden{number, due}) })
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d slots at a time: %d messages, want the %d that Messages shows as hidden", slots, len(got), len(want))
			}
		}
	}
}

// TestContent: the number of a queue's content changes with every message that comes or goes, and
// with nothing else.
func TestContent(t *testing.T) {
	l := newLab(t, engine.Settings{Retention: time.Hour})
	other := l.e.Create(l.now, "other", engine.Settings{})
	seen := map[uint64]string{l.e.Content(l.now, other): "another queue"}
	last := uint64(0)
	for _, step := range []struct {
		what    string
		do      func()
		changes bool
	}{
		{"created", func() {}, true},
		{"sent", func() { l.send("", "a", "b", "c", "d") }, true},
		{"received", func() { l.receive(2) }, false},
		{"time", func() { l.wait(time.Minute) }, false},
		{"deleted", func() { l.receive(1); l.delete("c") }, true},
		{"transferred", func() {
			d := l.e.Messages(l.now, l.q, 0, 1)[0]
			if _, moved := l.e.Transfer(l.now, l.q, other, d.Receipt, engine.Message{ID: id("x")}, true); !moved {
				t.Error("not transferred")
			}
		}, true},
		{"expired", func() { l.wait(time.Hour) }, true},
		{"sent again", func() { l.send("", "e") }, true},
		{"purged", func() { l.e.Purge(l.now, l.q) }, true},
	} {
		step.do()
		got := l.e.Content(l.now, l.q)
		if (got != last) != step.changes {
			t.Errorf("%s: the number was %d and is %d", step.what, last, got)
		}
		if step.changes && seen[got] != "" {
			t.Errorf("%s: the number is %d, as after %s", step.what, got, seen[got])
		}
		last, seen[got] = got, step.what
	}
}
