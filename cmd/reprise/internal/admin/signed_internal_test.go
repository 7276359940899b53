package admin

import (
	"strconv"
	"testing"
	"time"
)

// TestSeenForAsLongAsItCounts: a request that a clock ahead of the process's has signed counts for twice as long as others.
// Its text is kept for as long, also when there are so many that old ones are dropped.
func TestSeenForAsLongAsItCounts(t *testing.T) {
	var s signed
	now := time.Now()
	for i := range maxSeen {
		if !s.remember(strconv.Itoa(i), now) {
			t.Fatal(i)
		}
	}
	late := now.Add(2*signedFor - time.Second) // a request signed at now plus signedFor is accepted still
	if s.remember("another", late) {
		t.Error("a text is dropped while its request counts")
	}
	if s.remember("0", late) {
		t.Error("a request is accepted twice")
	}
	if !s.remember("another", now.Add(2*signedFor+time.Second)) {
		t.Error("no room, although no request counts any more")
	}
}
