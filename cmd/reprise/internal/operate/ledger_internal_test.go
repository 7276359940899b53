package operate

import (
	"fmt"
	"runtime"
	"testing"
)

// TestLedger: marks are those of one message, and are counted once.
func TestLedger(t *testing.T) {
	var l ledger
	if l.has("a", seen) {
		t.Error("an empty ledger has a message")
	}
	l.unset("a", undone)
	for range 2 {
		l.set("a", seen)
		l.set("a", done)
		l.set("a", undone)
		l.set("b", seen)
		l.set("b", undone)
	}
	if !l.has("a", done) || l.has("b", done) || !l.has("b", seen) || l.has("c", seen) || l.done != 1 || l.undone != 2 {
		t.Errorf("%+v", l)
	}
	l.unset("a", undone)
	l.unset("a", undone)
	if l.has("a", undone) || !l.has("a", done) || !l.has("a", seen) || l.done != 1 || l.undone != 1 {
		t.Errorf("after an unset: %+v", l)
	}
}

// TestLedgerIsCompact: a message takes some 30 bytes, and its id can be freed.
func TestLedgerIsCompact(t *testing.T) {
	const messages = 100_000
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // what the first has found to be unreachable by finalizers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var l ledger
	before := inUse()
	for i := range messages {
		reply := fmt.Sprintf("%036d and the rest of a reply: %01000d", i, 0)
		l.set(reply[:36], seen)
	}
	if each := int64(inUse()-before) / messages; each > 100 {
		t.Errorf("a message takes %d bytes, want 100 at most", each)
	}
	runtime.KeepAlive(&l)
}
