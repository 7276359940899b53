package idempotency

import (
	"fmt"
	"testing"
)

// remembered says which of the keys "0" to "n-1" l has.
func remembered(l *ledger, n int) (kept []int) {
	for i := range n {
		if _, ok := l.get(fmt.Sprint(i)); ok {
			kept = append(kept, i)
		}
	}
	return kept
}

func unrecorded(key string, result int) Completion {
	return Completion{Claim: Claim{Key: key, Token: 1}, Result: make([]byte, result)}
}

// TestLedgerIsBounded by count and by bytes: results may have 256 KiB each. The oldest
// goes first.
func TestLedgerIsBounded(t *testing.T) {
	for _, c := range []struct{ size, most int }{
		{0, maxUnrecorded},
		{maxResult, maxUnrecordedBytes / maxResult},
	} {
		t.Run(fmt.Sprint(c.size, " bytes"), func(t *testing.T) {
			var l ledger
			n := c.most + 10
			for i := range n {
				l.put(unrecorded(fmt.Sprint(i), c.size))
			}
			kept := remembered(&l, n)
			if len(kept) > c.most || len(kept) < c.most-1 { // keys count too
				t.Fatalf("%d are kept of %d, want %d", len(kept), n, c.most)
			}
			if first, last := kept[0], kept[len(kept)-1]; last != n-1 || first != n-len(kept) {
				t.Errorf("%d to %d are kept of %d, want the last", first, last, n)
			}
		})
	}
}

// TestLedgerKeepsOneEntryOfAKey: of a key that is put twice the later result counts, as
// one entry that is as old as that.
func TestLedgerKeepsOneEntryOfAKey(t *testing.T) {
	var l ledger
	l.put(unrecorded("0", 100))
	for i := 1; i < maxUnrecorded; i++ {
		l.put(unrecorded(fmt.Sprint(i), 0))
	}
	before := l.bytes
	l.put(unrecorded("0", 50))
	if l.bytes != before-50 || l.order.Len() != maxUnrecorded {
		t.Errorf("%d entries of %d bytes, want %d of %d", l.order.Len(), l.bytes, maxUnrecorded, before-50)
	}
	l.put(unrecorded("one more", 0))
	if c, ok := l.get("0"); !ok || len(c.Result) != 50 {
		t.Errorf("a result of %d bytes is kept (%v), want the later one of 50", len(c.Result), ok)
	}
}

// TestLedgerKeepsWhatCameAgain: an entry that was dropped and put again is as old as
// it is now.
func TestLedgerKeepsWhatCameAgain(t *testing.T) {
	var l ledger
	l.put(unrecorded("0", 0))
	l.drop("0")
	for i := 1; i < maxUnrecorded; i++ {
		l.put(unrecorded(fmt.Sprint(i), 0))
	}
	l.put(unrecorded("0", 0))
	if kept := remembered(&l, maxUnrecorded); len(kept) != maxUnrecorded {
		t.Errorf("%d of %d are kept, from %d on", len(kept), maxUnrecorded, kept[0])
	}
	l.drop("unknown")
	for i := range maxUnrecorded {
		l.drop(fmt.Sprint(i))
	}
	if l.bytes != 0 || l.order.Len() != 0 {
		t.Errorf("an empty ledger has %d bytes in %d entries", l.bytes, l.order.Len())
	}
}
