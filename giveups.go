package reprise

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// GivingUp says that many different messages are given up, for whatever reason, and
// hardly one succeeds: mostly the handler or what it calls is misconfigured, and
// nothing is wrong with the messages. See [Observer].GivingUp and [Status].GivingUp.
type GivingUp struct {
	// Over says that it has ended: messages succeed again, or none has been given up
	// for ten minutes. Of a Status it is false.
	Over bool
	// Since is when the first of these messages was given up; At is when this was
	// found to begin or to end, or when the Status was taken.
	Since, At time.Time
	// GivenUp and Succeeded count the messages of the last hour that were given up and
	// that succeeded, the last 50 at most.
	GivenUp, Succeeded int
	// Total counts the messages given up since Since.
	Total int
	// PerMinute is the rate at which messages have been given up of late.
	PerMinute float64
	// Reason is the most frequent reason, Problem the text of the latest error.
	Reason  retry.Reason
	Problem string
}

// String is one sentence for an operator.
func (g GivingUp) String() string {
	text := fmt.Sprintf("messages are given up and hardly one succeeds: %d of the last %d, %.3g a minute, %d since %s, mostly for the reason %v",
		g.GivenUp, g.GivenUp+g.Succeeded, g.PerMinute, g.Total, g.Since.UTC().Format(time.RFC3339), g.Reason)
	if g.Problem != "" {
		text += ": " + g.Problem
	}
	return text
}

const (
	// giveUpsMany different messages must have been given up. Fewer could be a few
	// damaged ones.
	giveUpsMany = 20
	// giveUpsWindow is how many finished messages are looked at, and giveUpsFor for how
	// long: a queue that loses a message a day is left to the dead-letter queue's alarm.
	giveUpsWindow = 50
	giveUpsFor    = time.Hour
	// It begins when at most one in giveUpsBegin of them has succeeded, and is over when
	// at least one in giveUpsEnd has: far enough apart that it does not begin and end by
	// turns.
	giveUpsBegin = 20
	giveUpsEnd   = 5
	// giveUpsQuiet without a message given up ends it too.
	giveUpsQuiet = 10 * time.Minute
)

// giveUps finds out when many different messages are given up and hardly one
// succeeds. It is plain data, and its methods are functions of what they are given:
// it has no clock and no timer of its own. Until a message is given up it keeps
// nothing.
type giveUps struct {
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

// lost takes in that the message was given up. It says whether it begins with this.
func (g *giveUps) lost(id string, reason retry.Reason, problem string, now time.Time) (begins bool) {
	for i := range g.recent {
		if g.recent[i].givenUp && g.recent[i].id == id {
			return false // one message, however often
		}
	}
	g.last, g.lastError = now, problem
	g.total++
	g.givenUp++
	g.note(finished{id: id, at: now, reason: reason, givenUp: true})
	succeeded := len(g.recent) - g.givenUp
	if g.begun || g.givenUp < giveUpsMany || succeeded*giveUpsBegin > len(g.recent) {
		return false
	}
	g.begun, g.since, g.total = true, g.firstGivenUp(), g.givenUp
	return true
}

// succeeded takes in that a message has succeeded. It says whether it is over by that.
func (g *giveUps) succeeded(now time.Time) (ends bool) {
	if g.givenUp == 0 && !g.begun {
		return false // nothing to hold it against
	}
	g.note(finished{at: now})
	return g.begun && (len(g.recent)-g.givenUp)*giveUpsEnd >= len(g.recent)
}

// quiet says whether it is over since none has been given up for long; if not, when
// that will be.
func (g *giveUps) quiet(now time.Time) (ends bool, at time.Time) {
	at = g.last.Add(giveUpsQuiet)
	return g.begun && !now.Before(at), at
}

// end forgets everything.
func (g *giveUps) end() { *g = giveUps{} }

// now is what there is to say.
func (g *giveUps) now(now time.Time) GivingUp {
	said := GivingUp{
		Since: g.since, At: now, GivenUp: g.givenUp, Succeeded: len(g.recent) - g.givenUp, Total: g.total, Problem: g.lastError,
	}
	reasons := make(map[retry.Reason]int)
	for _, f := range g.recent {
		if !f.givenUp {
			continue
		}
		if reasons[f.reason]++; reasons[f.reason] > reasons[said.Reason] {
			said.Reason = f.reason
		}
	}
	took := max(time.Second, now.Sub(g.firstGivenUp()))
	said.PerMinute = float64(g.givenUp) / took.Minutes()
	return said
}

// note adds f, and drops what is too old or too much.
func (g *giveUps) note(f finished) {
	g.recent = append(g.recent, f)
	dropped := 0
	for _, old := range g.recent {
		if len(g.recent)-dropped <= giveUpsWindow && f.at.Sub(old.at) <= giveUpsFor {
			break
		}
		dropped++
		if old.givenUp {
			g.givenUp--
		}
	}
	g.recent = append(g.recent[:0], g.recent[dropped:]...)
	if g.givenUp == 0 && !g.begun {
		g.end()
	}
}

// firstGivenUp is when the oldest of recent that was given up was.
func (g *giveUps) firstGivenUp() time.Time {
	for _, f := range g.recent {
		if f.givenUp {
			return f.at
		}
	}
	return g.last
}
