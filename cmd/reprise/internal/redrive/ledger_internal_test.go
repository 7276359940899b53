package redrive

import (
	"fmt"
	"runtime"
	"testing"
)

// TestLedger: marks are those of one letter, and are counted once.
func TestLedger(t *testing.T) {
	var l ledger
	if l.has("a", taken) {
		t.Error("an empty ledger has a letter")
	}
	l.unset("a", undone)
	for range 2 {
		l.set("a", taken)
		l.set("a", sent)
		l.set("a", undone)
		l.set("b", taken)
		l.set("b", undone)
	}
	if !l.has("a", sent) || l.has("b", sent) || !l.has("b", taken) || l.has("c", taken) || l.sent != 1 || l.undone != 2 {
		t.Errorf("%+v", l)
	}
	l.unset("a", undone)
	l.unset("a", undone)
	if l.has("a", undone) || !l.has("a", sent) || !l.has("a", taken) || l.sent != 1 || l.undone != 1 {
		t.Errorf("after an unset: %+v", l)
	}
}

// TestLedgerIsCompact: a letter takes some 30 bytes, and its id can be freed.
func TestLedgerIsCompact(t *testing.T) {
	const letters = 100_000
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // what the first has found to be unreachable by finalizers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var l ledger
	before := inUse()
	for i := range letters {
		reply := fmt.Sprintf("%036d and the rest of a reply: %01000d", i, 0)
		l.set(reply[:36], taken)
	}
	if each := int64(inUse()-before) / letters; each > 100 {
		t.Errorf("a letter takes %d bytes, want 100 at most", each)
	}
	runtime.KeepAlive(&l)
}
