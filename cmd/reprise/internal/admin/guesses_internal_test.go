package admin

import (
	"testing"
	"time"
)

// TestLineOfGuesses: ten wrong tokens are answered at once, the next 32 one a second, and those behind them not at all. The
// line moves on by one a second, however many were refused meanwhile: they have no place in it.
func TestLineOfGuesses(t *testing.T) {
	var g guesses
	now := time.Now()
	for i := range guessBurst + maxGuesses {
		want := max(0, time.Duration(i+1-guessBurst)*guessEvery)
		if wait, ok := g.join(now); !ok || wait != want {
			t.Fatalf("wrong token %d: wait %v, %t, want %v", i+1, wait, ok, want)
		}
	}
	for range 1000 {
		if _, ok := g.join(now); ok {
			t.Fatal("the line is full, and takes another one")
		}
	}
	if wait, ok := g.join(now.Add(guessEvery)); !ok || wait != maxGuesses*guessEvery {
		t.Errorf("a second later: wait %v, %t, want the last place", wait, ok)
	}
	if wait, ok := g.join(now.Add((guessBurst + maxGuesses + 1) * guessEvery)); !ok || wait != 0 {
		t.Errorf("when the line is empty: wait %v, %t, want an answer at once", wait, ok)
	}
}
