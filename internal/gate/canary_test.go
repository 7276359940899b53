package gate

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

func TestCanaries(t *testing.T) {
	const most = 10
	g := halfOpen()
	g.Hold(true)
	fresh := 0
	for n := 1; n <= 2*freshEvery; n++ {
		if g.WantCanary(most) {
			t.Error("it has no room for one that has not failed")
		}
		if !g.Wanted() || !g.Admits(start) {
			t.Fatal("no canary may pass")
		}
		if g.WantsFresh() {
			fresh++
			if n%freshEvery != 2 {
				t.Errorf("canary %d must be one that has not failed", n)
			}
			if g.AdmitsThis(true, most, start) {
				t.Error("one that has failed passes in the place of one that has not")
			}
			if !g.AdmitsThis(true, 1, start) {
				t.Error("one that has failed does not pass, though no more can be held")
			}
		}
		if !g.AdmitsThis(false, most, start) {
			t.Error("one that has not failed does not pass")
		}
		if !g.Pass(false) || g.Wanted() || g.Admits(start) || g.WantsFresh() {
			t.Error("a second canary passes")
		}
		g.Ended()
	}
	if fresh != 2 {
		t.Errorf("%d of %d canaries had to be messages that have not failed, want 2", fresh, 2*freshEvery)
	}
}

// TestEarlyCanariesAreFresh: each time the breaker opens, by itself or from a ramp, the first canary is
// preferably a message that has not failed, and the second must be one. A canary that fails begins
// nothing anew.
func TestEarlyCanariesAreFresh(t *testing.T) {
	g := halfOpen()
	answered := func() { g.Turn(func(b *breaker.Breaker) { b.Answered(time.Second, start) }) }
	for n, ramps := range []bool{false, false, false, true, false, true, false} {
		if ramps {
			answered()
		}
		open(g)
		g.Turn((*breaker.Breaker).Probe)
		g.WantCanary(10)
		first := n == 0 || ramps
		second := n == 1 || n == 4 || n == 6
		if g.PrefersFresh() != first || g.WantsFresh() != second {
			t.Errorf("canary %d: one that has not failed is preferred %v, wanted %v", n+1, g.PrefersFresh(), g.WantsFresh())
		}
		g.Pass(!second)
	}
}

// TestCanariesOfManyFailures: so many messages that have failed cannot keep all others out.
func TestCanariesOfManyFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		tried, others int
		makeRoom      bool
	}{
		"as many as possible have failed": {3, 0, true},
		"one fewer":                       {2, 0, false},
		"one has not failed":              {2, 1, false},
	} {
		g := halfOpen()
		for range tt.tried {
			g.Hold(true)
		}
		for range tt.others {
			g.Hold(false)
		}
		if got := g.WantCanary(3); got != tt.makeRoom || g.WantsFresh() != tt.makeRoom {
			t.Errorf("%s: room must be made: %v, for one that has not failed: %v", name, got, g.WantsFresh())
		}
	}
}

func TestMoreCanaries(t *testing.T) {
	g := halfOpen()
	for n, want := range []bool{true, true, false} { // of four places canaries take two
		if got := g.MoreCanaries(4); got != want {
			t.Errorf("with %d under way, another may start: %v", n, got)
		}
		g.Pass(false)
	}
	one := halfOpen()
	if !one.MoreCanaries(1) {
		t.Error("with one place there is no canary at all")
	}
	if one.Pass(false); one.MoreCanaries(1) {
		t.Error("with one place there are two canaries")
	}
}

func TestProbe(t *testing.T) {
	g := halfOpen()
	first := g.Probe()
	if !g.Probing() {
		t.Error("it does not know of its probe")
	}
	if !g.ProbeEnded(first) || g.Probing() {
		t.Error("the result does not count")
	}
	late := g.Probe()
	g.WantCanary(1)
	if g.ProbeEnded(late) || g.Probing() {
		t.Error("the result counts after a canary has started")
	}
}

func TestCanaryPatience(t *testing.T) {
	for usual, want := range map[time.Duration]time.Duration{
		0:                shortCanary,
		time.Second:      shortCanary,
		20 * time.Second: 40 * time.Second,
		time.Hour:        longCanary,
	} {
		if got := halfOpen().CanaryPatience(usual); got != want {
			t.Errorf("where handlers take %v, a canary may run for %v, want %v", usual, got, want)
		}
	}
	probing := halfOpen()
	probing.Probe()
	if got := probing.CanaryPatience(time.Hour); got != ProbeTimeout+shortCanary {
		t.Errorf("a probe may run for %v", got)
	}
	g := halfOpen()
	g.WantCanary(1)
	if got := g.CanaryPatience(0); got != shortCanary {
		t.Errorf("where nothing is held, it waits %v for a message", got)
	}
	g.Hold(true)
	if got := g.CanaryPatience(0); got != freshPatience {
		t.Errorf("where others are held, it waits %v for one that has not failed", got)
	}
}
