package gate

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// open opens the gate's breaker.
func open(g *Gate) { g.Turn(func(b *breaker.Breaker) { b.Open(start, 0.5) }) }

// halfOpen has a gate whose breaker was just opened, and is probed.
func halfOpen() *Gate {
	g := New(breaker.New(3))
	open(&g)
	g.Turn((*breaker.Breaker).Probe)
	return &g
}

// ramping has a gate whose breaker is ramping: a canary has succeeded.
func ramping() *Gate {
	g := halfOpen()
	g.Turn(func(b *breaker.Breaker) { b.Answered(time.Second, start) })
	return g
}

func TestAdmits(t *testing.T) {
	closed := New(breaker.New(3))
	if !closed.Admits(start) || closed.Shut() {
		t.Error("a closed breaker keeps messages back")
	}
	if closed.Pass(false) || closed.Active() != 0 {
		t.Error("messages count behind a closed breaker")
	}
	for name, shut := range map[string]*Gate{"open": new(New(breaker.New(3))), "half-open": halfOpen()} {
		if name == "open" {
			open(shut)
		}
		if shut.State().String() != name || shut.Admits(start) || !shut.Shut() {
			t.Errorf("%s: state %v, admits %v, shut %v", name, shut.State(), shut.Admits(start), shut.Shut())
		}
	}
	for name, g := range map[string]*Gate{"closed": &closed, "ramping": ramping()} {
		if !g.Admits(start) || g.Shut() {
			t.Errorf("%s: no message passes", name)
		}
		g.Paused = true
		if g.Admits(start) || !g.Shut() {
			t.Errorf("%s: messages pass a gate that is paused", name)
		}
	}
}

func TestRampingAdmitsUpToTheLevel(t *testing.T) {
	g := ramping()
	level := g.Breaker.Level()
	for range level {
		if !g.Admits(start) || !g.Pass(true) {
			t.Fatalf("of %d, only %d may pass", level, g.Active())
		}
	}
	if g.Admits(start) {
		t.Errorf("more than %d may pass", level)
	}
	if at := g.NextTurn(start); !at.IsZero() {
		t.Errorf("while all of the level run, more pass at %v", at)
	}
	g.Ended()
	if !g.Admits(start) {
		t.Error("no other passes after one has ended")
	}
	g.Rest(start.Add(time.Second))
	if g.Admits(start.Add(time.Second - 1)) {
		t.Error("one passes before the rest is over")
	}
	if !g.Admits(start.Add(time.Second)) {
		t.Error("none passes when the rest is over")
	}
}

// TestTurnForgetsWhatPassed: messages that were let through may hang for hours.
func TestTurnForgetsWhatPassed(t *testing.T) {
	g := ramping()
	g.Pass(true)
	g.Rest(start.Add(time.Hour))
	g.AwaitOthers(start)
	g.Turn(func(b *breaker.Breaker) { b.Open(start, 0.5) })
	g.Turn((*breaker.Breaker).Probe)
	for range freshEvery {
		g.WantCanary(1)
	}
	g.Turn(func(b *breaker.Breaker) { b.Answered(time.Second, start) })
	if g.Active() != 0 || g.Wanted() || g.WantsFresh() || !g.Admits(start) {
		t.Errorf("%d are active, a canary is wanted: %v, one is admitted: %v", g.Active(), g.Wanted(), g.Admits(start))
	}
	g.Hold(true)
	if at := g.NextTurn(start); !at.Equal(start) {
		t.Errorf("a message that is held passes at %v, want at once", at)
	}
}

func TestCounts(t *testing.T) {
	g := ramping()
	g.Hold(true)
	g.Hold(true)
	g.Hold(false)
	g.Unhold(true)
	if g.Holding() != 2 || g.Untried() != 1 || g.Idle() {
		t.Errorf("%d are held, %d of them have not failed, idle: %v", g.Holding(), g.Untried(), g.Idle())
	}
	if got := g.Shelved(); got != 1 {
		t.Errorf("ramping: %d do not count against the room, want that which has failed", got)
	}
	g.Paused = true
	if got := g.Shelved(); got != 2 {
		t.Errorf("paused: %d do not count against the room, want both", got)
	}
	g.Paused = false
	g.Turn(func(b *breaker.Breaker) { b.Open(start, 0.5) })
	if got := g.Shelved(); got != 2 {
		t.Errorf("open: %d do not count against the room, want both", got)
	}
}

func TestIdle(t *testing.T) {
	for name, busy := range map[string]func(*Gate){
		"paused":  func(g *Gate) { g.Paused = true },
		"holding": func(g *Gate) { g.Hold(false) },
		"probing": func(g *Gate) { g.Probe() },
	} {
		g := New(breaker.New(3))
		if !g.Idle() {
			t.Error("a new gate is not idle")
		}
		if busy(&g); g.Idle() {
			t.Errorf("%s: it is idle", name)
		}
	}
}

func TestRamp(t *testing.T) {
	g := ramping()
	level := g.Breaker.Level()
	for range 10 {
		if _, on := g.Ramp(func(b *breaker.Breaker) { b.Idle(1000, start) }); !on {
			t.Fatal("a change that goes on ramping was not made")
		}
	}
	if g.Breaker.Level() <= level {
		t.Errorf("after ten changes the level is %d, and was %d before", g.Breaker.Level(), level)
	}
	b, on := g.Ramp(func(b *breaker.Breaker) { b.Open(start, 0.5) })
	if on || b.State() != breaker.Open || g.State() != breaker.Ramping {
		t.Errorf("a change that ends the ramp was made, to %v of a gate that is %v: %v", b.State(), g.State(), on)
	}
}

// TestAwaitOthers: messages that have failed wait for a second for others, from when one could
// have passed, and again after one that had not failed.
func TestAwaitOthers(t *testing.T) {
	g := ramping()
	g.Hold(true)
	if g.AwaitOthers(start) {
		t.Error("they do not wait")
	}
	if at := g.NextTurn(start); !at.Equal(start.Add(rampPatience)) {
		t.Errorf("they pass at %v", at)
	}
	if g.AwaitOthers(start.Add(rampPatience - 1)) {
		t.Error("they pass too early")
	}
	if !g.AwaitOthers(start.Add(rampPatience)) {
		t.Error("they do not pass")
	}
	g.Pass(true)
	g.Ended()
	if !g.AwaitOthers(start.Add(rampPatience)) {
		t.Error("the next waits again")
	}
	g.Pass(false)
	g.Ended()
	if g.AwaitOthers(start.Add(rampPatience)) {
		t.Error("they do not wait again after one that has not failed")
	}
	g.Rest(start.Add(time.Minute))
	if at := g.NextTurn(start); !at.Equal(start.Add(time.Minute)) {
		t.Errorf("they pass at %v, before the rest is over", at)
	}
	g.Hold(false)
	g.Rest(start)
	if at := g.NextTurn(start.Add(time.Second)); !at.Equal(start.Add(time.Second)) {
		t.Errorf("one that has not failed passes at %v, want at once", at)
	}
}

func TestNextTurn(t *testing.T) {
	g := ramping()
	if !g.Breaker.Promising().IsZero() {
		t.Fatal("the ramp does not promise more")
	}
	if at := g.NextTurn(start); !at.Equal(start.Add(rampIdle)) || !g.IdleRamp(start) {
		t.Errorf("without messages it goes on at %v, idle: %v", at, g.IdleRamp(start))
	}
	g.Pass(false)
	if g.IdleRamp(start) {
		t.Error("it is idle while a handler runs")
	}
	g.Ended()
	g.Hold(false)
	if g.IdleRamp(start) {
		t.Error("it is idle while a message is held")
	}
	g.Paused = true
	if at := g.NextTurn(start); !at.IsZero() {
		t.Errorf("paused, it goes on at %v", at)
	}
	if at := halfOpen().NextTurn(start); !at.IsZero() {
		t.Errorf("half-open, it goes on at %v", at)
	}
}

// TestNextTurnAfterFailures: without messages a ramp goes on when its failures are forgotten.
func TestNextTurnAfterFailures(t *testing.T) {
	g := ramping()
	for g.Breaker.Promising().IsZero() {
		g.Ramp(func(b *breaker.Breaker) { b.Ended(b.Round(), "a", true, time.Second, 8, start, 0) })
	}
	forgotten := g.Breaker.Promising()
	if !forgotten.After(start.Add(rampIdle)) || g.IdleRamp(forgotten.Add(-1)) || !g.IdleRamp(forgotten) {
		t.Errorf("its failures of %v are forgotten at %v: idle just before %v, then %v", start, forgotten, g.IdleRamp(forgotten.Add(-1)), g.IdleRamp(forgotten))
	}
	for now, want := range map[time.Time]time.Time{start: forgotten, forgotten: forgotten.Add(rampIdle)} {
		if at := g.NextTurn(now); !at.Equal(want) {
			t.Errorf("at %v it goes on at %v, want %v", now, at, want)
		}
	}
}

// TestTurnOfTried: while the level rises, messages that have failed get credit from others that pass,
// and keep it while they succeed. They pass when no other waits, or after enough others.
func TestTurnOfTried(t *testing.T) {
	g := ramping()
	g.Breaker.Idle(1000, start) // now it rises
	level := g.Breaker.Level()
	g.Hold(true)
	g.Hold(false)
	for n := range othersPerTried {
		if g.TurnOfTried() {
			t.Fatalf("it is their turn after %d others", n)
		}
		g.Pass(false)
	}
	if !g.TurnOfTried() {
		t.Fatal("it is not their turn after enough others")
	}
	g.Pass(true)
	if g.TurnOfTried() || g.credit != 0 {
		t.Error("another passes after one")
	}
	g.Pass(false)
	for n := range othersPerTried - 1 {
		if g.credit != 0 {
			t.Errorf("credit of %d after %d others", g.credit, n+1)
		}
		g.Pass(false)
	}
	if g.Pass(true); g.credit != 0 {
		t.Errorf("credit of %d", g.credit)
	}
	if g.TriedSucceeded(); g.TurnOfTried() {
		t.Error("another passes before others that wait")
	}
	g.Pass(true)
	g.Unhold(false)
	if g.TurnOfTried() {
		t.Error("it is their turn without credit")
	}
	if g.TriedSucceeded(); !g.TurnOfTried() {
		t.Error("it is not their turn although the last has succeeded, and no other waits")
	}
	if at := g.NextTurn(start); level > g.Active() && !at.Equal(start) {
		t.Errorf("it is their turn, but they pass at %v", at)
	}
	g.Unhold(true)
	if g.TurnOfTried() {
		t.Error("it is the turn of none")
	}
	for range 10 * level {
		g.TriedSucceeded()
	}
	if g.credit != level {
		t.Errorf("a credit of %d at a level of %d", g.credit, level)
	}
	g.Hold(true)
	g.Turn(func(b *breaker.Breaker) { b.Relapse(time.Second, 10, start) })
	if g.credit != 0 || g.others != 0 || g.passed != 0 {
		t.Errorf("after a turn: %+v", g)
	}
	g.TriedSucceeded()
	if g.TurnOfTried() {
		t.Error("it is their turn while the level is too high")
	}
}
