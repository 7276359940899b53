package admin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// guesses slows down those who try tokens, all of them together, by the API and by the dashboard's form: an attacker
// has many addresses, and behind a proxy the operator has the same one.
//
// A right token is always taken, and at once, whatever others try: any limit that a right token has to wait for could be
// used up by somebody else. Wrong ones are answered in turn; those beyond the line are refused, and their connections
// closed. The zero value is ready for use.
type guesses struct {
	mu   sync.Mutex
	last time.Time // when the last in line is answered, or was; without a burst
}

const (
	// guessBurst wrong tokens are answered at once, then one every guessEvery.
	guessBurst = 10
	guessEvery = time.Second
	// maxGuesses bounds the line, and so the connections that it holds. The last in line waits less than the server's
	// timeout for writing.
	maxGuesses = 32
)

// join returns how long the answer to a wrong token has to wait; ok is false if the line is full.
func (g *guesses) join(now time.Time) (wait time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if whole := now.Add(-guessBurst * guessEvery); g.last.Before(whole) {
		g.last = whole
	}
	turn := g.last.Add(guessEvery)
	if turn.Sub(now) > maxGuesses*guessEvery {
		return 0, false
	}
	g.last = turn
	return max(0, turn.Sub(now)), true
}

// wrong waits until a request may be told that its token is wrong. The error is for a request beyond the line. If the client
// goes, its turn passes unused: else clients that do not wait would be answered faster.
func (g *guesses) wrong(ctx context.Context) *Error {
	wait, ok := g.join(time.Now())
	if !ok {
		return problem(http.StatusTooManyRequests, "too-many", "this is not the token of this process, and too many wrong ones are tried at the moment: it is in the place that --admin-token names")
	}
	if wait == 0 {
		return nil
	}
	turn := time.NewTimer(wait)
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
	}
	return nil
}
