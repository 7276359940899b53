package engine_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// The oldest message is the one that was sent first, in whatever state it is; none is older than the
// retention.
func TestOldest(t *testing.T) {
	l := newLab(t, engine.Settings{Retention: time.Minute, Visibility: 30 * time.Second})
	want := func(ago time.Duration) {
		t.Helper()
		sent, ok := l.e.Oldest(l.now, l.q)
		if ok != (ago >= 0) || ok && l.now.Sub(sent) != ago {
			t.Errorf("the oldest was sent %v ago (%v), want %v", l.now.Sub(sent), ok, ago)
		}
	}
	want(-1)
	l.send("", "a")
	l.wait(10 * time.Second)
	l.send("", "b")
	want(10 * time.Second)
	l.wantReceive(1, "a")
	want(10 * time.Second)
	l.delete("a")
	want(0)
	l.send("", "c")
	l.wait(59 * time.Second)
	want(59 * time.Second)
	l.wait(time.Second)
	want(-1)
}
