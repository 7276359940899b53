// Package gate decides when the messages of one key, or all messages of a consumer, may go to
// their handlers: all of them while their breaker is closed, none while they are paused or the
// breaker is open, one while it is half-open, and while it is ramping as many as its level.
//
// A [Gate] is plain data, and its methods are functions of their arguments. It counts messages and
// does not know them: its owner holds them, and tells it which pass and how they end.
package gate

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

const (
	// ProbeTimeout is when the context of a probe ends.
	ProbeTimeout = 30 * time.Second

	// rampPatience is how long, while ramping, messages that have failed wait for others
	// to run first.
	rampPatience = time.Second
	// othersPerTried is how many of the others pass, while the level rises, before one that has
	// failed may. If all of those fail again, four of five outcomes are still as usual, which
	// lowers no level.
	othersPerTried = 4
	// rampIdle: while ramping, if no handler has run for this time, more may run at once
	// and hidden messages are woken.
	rampIdle = 2 * time.Second

	// freshEvery: one of this number of canaries is a message that has not failed.
	freshEvery = 4
	// freshPatience is how long to wait for such a message while others are held.
	freshPatience = 2 * time.Second
	// A canary may run for twice as long as handlers take, within these bounds; then
	// another one starts: a canary that hangs must not hide the end of an outage.
	shortCanary = 15 * time.Second
	longCanary  = 2 * time.Minute
)

// Gate is that of one key. [New] makes one.
type Gate struct {
	Breaker breaker.Breaker // its state changes through Turn and Ramp alone
	Paused  bool

	holding int // messages that are held behind it
	trying  int // those of them that have failed because the dependency was unavailable

	active      int       // messages let through since the breaker last changed, and not yet ended
	wanted      bool      // half-open: the next message is the canary
	fresh       bool      // the canary must be a message that has not failed
	canaries    int       // started so far
	probing     bool      // the user's probe has not returned
	sinceOpened int       // canaries since the breaker has opened, other than after a canary
	waitFor     time.Time // ramping: messages that have failed wait for others until then
	rested      time.Time // ramping: no handler starts before
	others      int       // messages that passed and had not failed, since one passed that had
	passed      int       // messages that passed and had not failed
	credit      int       // how many that have failed may pass: see TurnOfTried
}

// New returns a gate that holds no message.
func New(b breaker.Breaker) Gate { return Gate{Breaker: b} }

// State returns the state of the breaker.
func (g *Gate) State() breaker.State { return g.Breaker.State() }

// Shut reports whether no message of the key becomes ready, but canaries.
func (g *Gate) Shut() bool {
	return g.Paused || g.State() == breaker.Open || g.State() == breaker.HalfOpen
}

// Admits reports whether one more message may pass.
func (g *Gate) Admits(now time.Time) bool {
	switch {
	case g.Paused:
		return false
	case g.State() == breaker.Ramping:
		return g.active < g.Breaker.Level() && !now.Before(g.rested)
	case g.State() == breaker.HalfOpen:
		return g.wanted
	}
	return g.State() == breaker.Closed
}

// AdmitsThis is Admits for one message; tried reports that it has failed because the dependency
// was unavailable. While g waits for one that has not, it keeps up to most of the others.
func (g *Gate) AdmitsThis(tried bool, most int, now time.Time) bool {
	if g.fresh && tried && g.holding < most {
		return false
	}
	return g.Admits(now)
}

// Pass lets a message through. It reports whether the message counts until its owner calls
// [Gate.Ended], which it does unless the breaker is closed.
func (g *Gate) Pass(tried bool) (counts bool) {
	if counts = g.State() != breaker.Closed; counts {
		g.active++
		g.wanted, g.fresh = false, false
	}
	if tried {
		g.others, g.credit = 0, max(0, g.credit-1)
		return counts
	}
	g.waitFor = time.Time{}
	g.others++
	if g.passed++; g.passed%othersPerTried == 0 {
		g.giveCredit()
	}
	return counts
}

// Ended notes that the run of a message that counts is over, or did not take place.
func (g *Gate) Ended() { g.active-- }

// Active returns how many messages were let through and have not ended.
func (g *Gate) Active() int { return g.active }

// Wanted reports whether the next message is the canary.
func (g *Gate) Wanted() bool { return g.wanted }

// Hold counts a message that is held behind g.
func (g *Gate) Hold(tried bool) { g.count(tried, 1) }

// Unhold counts a message that is not held any more.
func (g *Gate) Unhold(tried bool) { g.count(tried, -1) }

func (g *Gate) count(tried bool, n int) {
	g.holding += n
	if tried {
		g.trying += n
	}
}

// Holding returns how many messages are held behind g.
func (g *Gate) Holding() int { return g.holding }

// Untried returns how many of them have not failed.
func (g *Gate) Untried() int { return g.holding - g.trying }

// Shelved returns how many of them do not count against the room for new messages. While g is
// ramping, those that have not failed count: otherwise a backlog would be received only to be
// held. Those that have failed do not: otherwise no other message could be received.
func (g *Gate) Shelved() int {
	if g.State() == breaker.Ramping && !g.Paused {
		return g.trying
	}
	return g.holding
}

// Idle reports whether g may be forgotten, as far as it does not depend on its breaker: it holds
// no message and is not paused. It is not idle while its probe is under way, so that no second one
// starts.
func (g *Gate) Idle() bool { return !g.Paused && g.holding == 0 && !g.probing }

// Turn changes the breaker. Messages that g has let through no longer count: they may hang for
// hours.
func (g *Gate) Turn(change func(*breaker.Breaker)) {
	probing := g.State() == breaker.HalfOpen
	if change(&g.Breaker); g.State() == breaker.Open && !probing {
		g.sinceOpened = 0
	}
	g.active, g.wanted, g.fresh = 0, false, false
	g.waitFor, g.rested = time.Time{}, time.Time{}
	g.others, g.passed, g.credit = 0, 0, 0
}

// Ramp changes the breaker, which is ramping, if it is still ramping afterwards. Otherwise it
// changes nothing and returns the changed breaker, for Turn, and false.
func (g *Gate) Ramp(change func(*breaker.Breaker)) (changed breaker.Breaker, ramping bool) {
	changed = g.Breaker
	change(&changed)
	if ramping = changed.State() == breaker.Ramping; ramping {
		g.Breaker = changed
	}
	return changed, ramping
}

// Rest has no handler start before the given time, while g is ramping.
func (g *Gate) Rest(until time.Time) { g.rested = until }

// AwaitOthers begins the time for which messages that have failed wait for others, if it has not
// begun, and reports whether it is over. While g is ramping, messages that have failed pass only
// then, or if TurnOfTried: they alone may be the reason why the breaker opened.
func (g *Gate) AwaitOthers(now time.Time) (over bool) {
	if g.waitFor.IsZero() {
		g.waitFor = now.Add(rampPatience)
	}
	return !now.Before(g.waitFor)
}

// TurnOfTried reports whether, while g is ramping, a message that has failed passes next: because
// no other waits, or enough others have passed. Every four others give one of them credit to pass,
// and one that succeeds gives its credit on: so they do not wait for as long as others keep coming,
// they use what the dependency bears beyond those, and bad messages among them do not lower the
// level.
func (g *Gate) TurnOfTried() bool {
	return g.trying > 0 && g.credit > 0 && (g.Untried() == 0 || g.others >= othersPerTried) &&
		g.State() == breaker.Ramping && g.Breaker.Rising()
}

// TriedSucceeded notes that a message that had failed before has succeeded.
func (g *Gate) TriedSucceeded() { g.giveCredit() }

// giveCredit lets one more message pass that has failed: as many as may run at once at the most.
func (g *Gate) giveCredit() { g.credit = min(g.credit+1, g.Breaker.Level()) }

// NextTurn returns when more messages may pass while g is ramping or, if none is held, when g has
// been idle for long enough; zero if only the end of a handler can change that.
func (g *Gate) NextTurn(now time.Time) (at time.Time) {
	switch {
	case g.State() != breaker.Ramping || g.Paused || g.active >= g.Breaker.Level():
		return time.Time{}
	case g.holding == 0:
		at = now.Add(rampIdle)
		if promising := g.Breaker.Promising(); promising.After(at) {
			at = promising
		}
		return at
	}
	at = g.rested
	if g.Untried() == 0 && g.waitFor.After(at) && !g.TurnOfTried() {
		at = g.waitFor
	}
	if at.Before(now) {
		at = now
	}
	return at
}

// IdleRamp reports whether g is ramping and could go on without any message: see rampIdle.
func (g *Gate) IdleRamp(now time.Time) bool {
	return g.holding == 0 && g.active == 0 && !now.Before(g.Breaker.Promising())
}
