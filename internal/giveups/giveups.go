// Package giveups finds out when many different messages are given up and hardly one
// succeeds: mostly the handler, or what it calls, is misconfigured then, and nothing is
// wrong with the messages.
//
// Tell a [Watch] of each message that is given up and of each that succeeds. It is plain
// data, and its methods are functions of what they are given: it has no clock and no
// timer of its own.
package giveups

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// many is how many different messages must have been given up: fewer could be a few
	// damaged ones.
	many = 20
	// Window is how many finished messages are looked at, and remembered is for how
	// long: a queue that loses a message a day is left to the dead-letter queue's alarm.
	Window     = 50
	remembered = time.Hour
	// It begins when at most one in oneInBegins of them has succeeded, and is over when
	// at least one in oneInEnds has: far enough apart that it does not begin and end by
	// turns.
	oneInBegins = 20
	oneInEnds   = 5
	// It is over too when no message has been given up for Quiet.
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
	id      string // of one that was given up
	at      time.Time
	reason  retry.Reason
	givenUp bool
}

// GaveUp takes in that the message with that id was given up for reason, after an error
// whose text is problem. It reports whether giving up by the many begins with it.
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

// Succeeded takes in that a message has succeeded. It reports whether giving up by the
// many is over by that; the caller then calls End.
func (w *Watch) Succeeded(now time.Time) (ends bool) {
	if w.givenUp == 0 && !w.begun {
		return false // nothing to hold it against
	}
	w.note(finished{at: now})
	return w.begun && (len(w.recent)-w.givenUp)*oneInEnds >= len(w.recent)
}

// Gone reports whether giving up by the many is over since no message has been given up
// for long, and when that is or will be so if none is given up meanwhile. If it is over,
// the caller calls End.
func (w *Watch) Gone(now time.Time) (ends bool, at time.Time) {
	at = w.last.Add(Quiet)
	return w.begun && !now.Before(at), at
}

// Begun reports whether giving up by the many has begun and has not been ended.
func (w *Watch) Begun() bool { return w.begun }

// End forgets everything.
func (w *Watch) End() { *w = Watch{} }

// Summary is what there is to say of the messages of late. See the fields of
// reprise.GivingUp, which have the same names.
type Summary struct {
	Since              time.Time
	GivenUp, Succeeded int
	Total              int
	PerMinute          float64
	Reason             retry.Reason
	Problem            string
}

// Summary returns what there is to say at now.
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

// note adds f, and drops what is too old or too much.
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
