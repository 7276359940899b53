// Package giveups finds out when many different messages are given up and hardly one succeeds:
// usually the handler, or a service that it calls, is then misconfigured, and the messages are
// fine.
//
// Call a [Watch] for each message that is given up and for each that succeeds. It is plain data,
// and its methods are functions of their arguments: it has no clock and no timer of its own.
package giveups

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// many is how many different messages must have been given up: fewer could be a few
	// damaged ones.
	many = 20
	// Window is how many finished messages count, and remembered is for how long: an alarm on the
	// dead-letter queue is the right tool for a queue that loses a message a day.
	Window     = 50
	remembered = time.Hour
	// The state begins when at most one in oneInBegins of them has succeeded, and ends when at
	// least one in oneInEnds has: far enough apart that it does not begin and end in turns.
	oneInBegins = 20
	oneInEnds   = 5
	// The state also ends when no message has been given up for Quiet.
	Quiet = 10 * time.Minute
)

// Watch finds out when many different messages are given up and hardly one succeeds.
// The zero Watch has seen nothing. Until a message is given up it keeps nothing.
type Watch struct {
	recent    []finished // the oldest first
	givenUp   int        // of recent
	begun     bool
	since     time.Time // the first of recent when it began
	last      time.Time // when one was given up
	total     int       // given up since then
	lastError string
}

// finished is a message that was given up or has succeeded.
type finished struct {
	id      string // of a message that was given up
	at      time.Time
	reason  retry.Reason
	givenUp bool
}

// GaveUp notes that the message with that id was given up for reason, after an error whose text is
// problem. It reports whether the state begins with it.
func (w *Watch) GaveUp(id string, reason retry.Reason, problem string, now time.Time) (begins bool) {
	for i := range w.recent {
		if w.recent[i].givenUp && w.recent[i].id == id {
			return false // one message, however often
		}
	}
	w.last, w.lastError = now, problem
	w.total++
	w.givenUp++
	w.note(finished{id: id, at: now, reason: reason, givenUp: true})
	succeeded := len(w.recent) - w.givenUp
	if w.begun || w.givenUp < many || succeeded*oneInBegins > len(w.recent) {
		return false
	}
	w.begun, w.since, w.total = true, w.firstGivenUp(), w.givenUp
	return true
}

// Succeeded notes that a message has succeeded. It reports whether the state ends with it; the
// caller then calls End.
func (w *Watch) Succeeded(now time.Time) (ends bool) {
	if w.givenUp == 0 && !w.begun {
		return false // no message has been given up
	}
	w.note(finished{at: now})
	return w.begun && (len(w.recent)-w.givenUp)*oneInEnds >= len(w.recent)
}

// Gone reports whether the state is over because no message has been given up for long, and when
// this is or will be the case if none is given up meanwhile. If it is over, the caller calls End.
func (w *Watch) Gone(now time.Time) (ends bool, at time.Time) {
	at = w.last.Add(Quiet)
	return w.begun && !now.Before(at), at
}

// Begun reports whether the state has begun and has not been ended.
func (w *Watch) Begun() bool { return w.begun }

// End forgets everything.
func (w *Watch) End() { *w = Watch{} }

// Summary describes the recent messages. See the fields of reprise.GivingUp, which have the same
// names.
type Summary struct {
	Since              time.Time
	GivenUp, Succeeded int
	Total              int
	PerMinute          float64
	Reason             retry.Reason
	Problem            string
}

// Summary returns the summary at now.
func (w *Watch) Summary(now time.Time) Summary {
	said := Summary{Since: w.since, GivenUp: w.givenUp, Succeeded: len(w.recent) - w.givenUp, Total: w.total, Problem: w.lastError}
	reasons := make(map[retry.Reason]int)
	for _, f := range w.recent {
		if !f.givenUp {
			continue
		}
		if reasons[f.reason]++; reasons[f.reason] > reasons[said.Reason] {
			said.Reason = f.reason
		}
	}
	took := max(time.Second, now.Sub(w.firstGivenUp()))
	said.PerMinute = float64(w.givenUp) / took.Minutes()
	return said
}

// note adds f, and drops messages that are too old or too many.
func (w *Watch) note(f finished) {
	w.recent = append(w.recent, f)
	dropped := 0
	for _, old := range w.recent {
		if len(w.recent)-dropped <= Window && f.at.Sub(old.at) <= remembered {
			break
		}
		dropped++
		if old.givenUp {
			w.givenUp--
		}
	}
	w.recent = append(w.recent[:0], w.recent[dropped:]...)
	if w.givenUp == 0 && !w.begun {
		w.End()
	}
}

// firstGivenUp is when the oldest of recent that was given up was.
func (w *Watch) firstGivenUp() time.Time {
	for _, f := range w.recent {
		if f.givenUp {
			return f.at
		}
	}
	return w.last
}
