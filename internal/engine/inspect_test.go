package engine_test

import (
	"fmt"
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
