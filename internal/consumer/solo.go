package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// A message whose work kills the process takes the messages beside it along, and
// nobody is left to tell. It is found by its receives: more of them than can have
// been attempts. Such a suspect is sent again with a mark in its history, and who
// receives the mark runs the message alone. A message that is innocent loses the
// mark by the end of its run, whatever that is; one that is received with the mark
// for a third time has killed twice, with nothing beside it, and is dead-lettered.
//
// Both can be mistaken, since a receive whose reply is lost looks like a death, and
// the mark can be forged. A message that is to run alone therefore keeps the others
// from starting for a minute at most while it waits, and for a minute at most while it
// runs; then they are started beside it. Afterwards the others have nine times as long
// as they were kept waiting, whoever is next: together, such messages take at most a
// tenth of the time.
//
// A message that kills after that minute takes along what was started beside it, as it
// does before it is found. Its own receives still tell: it is dead-lettered after two
// deaths. Each of the others has lost a receive by each death; one that has lost three
// becomes a suspect, runs alone, and loses the mark by the end of that run. Two marked
// messages never run side by side, and one that cannot run within a minute is not kept
// here but sent again, so that its receives begin anew: no death counts for two.

const (
	// unexplainedMany receives without an outcome make a message a suspect.
	unexplainedMany = 3
	// deadlyMany receives without an outcome are as many deaths of processes that ran a
	// marked message, with nothing beside it.
	deadlyMany = 2
	// suspectsMany suspects are dealt with in suspectsFor.
	suspectsMany = 50
	suspectsFor  = 15 * time.Minute
	// soloPatience is how long others are not started for the sake of a message
	// that waits until those running have ended.
	soloPatience = time.Minute
	// aloneAtMost is how long others are not started while a message runs alone. What
	// kills a process mostly does so within seconds: it panics in a goroutine of its
	// own, or takes memory until the system ends it. A longer time would find a few
	// more without harm to others, and let one forged mark stop everybody for as long.
	aloneAtMost = time.Minute
	// soloRest is how many times as long the others have afterwards.
	soloRest = 9
	// queueAlone is for how long a message is given back that finds another waiting.
	queueAlone = time.Minute
)

var (
	errSuspect = errors.New("it was received again and again without an outcome, as if it crashed whoever runs it")
	errCrashes = errors.New("it crashes the worker: twice it was run alone, and twice there was no outcome")
)

// soloTurn is who may start handlers: everybody, or one message, which runs alone.
type soloTurn struct {
	next    *Delivery // waits to run alone
	owner   *Machine  // of that
	running *Delivery // was started alone; after aloneAtMost, others run beside it
	taken   time.Time // since when no other is started; zero: others are
	rest    time.Time // others may start until then

	suspects      int
	suspectsSince time.Time
}

// marked reports whether d is to run alone.
func (d *Delivery) marked() bool { return d.History != nil && d.History.Alone > 0 }

// unexplained is how many of d's receives before this one were neither this
// process's own, which lives, nor the hops of a long wait, nor, of those that can be
// taken for it, attempts.
func (c *Machine) unexplained(d *Delivery, attempts int, now time.Time) int {
	arrived := d.FirstReceived
	if d.History != nil {
		arrived = d.History.Arrived
	}
	// A wait beyond 12 hours takes a receive for each.
	parked := d.hops(c.ahead) + int(now.Sub(c.local(arrived))/(retry.MaxVisibility-time.Hour))
	known := c.memory.Recall(d.ID, now)
	return d.receives - 1 - max(attempts+parked, known.Receives, known.Seen)
}

// suspicious reports whether d was received too often to be explained, even by all the
// attempts that fit into the time. FIFO siblings are received without running, by the
// dozen, and there is no telling.
func (c *Machine) suspicious(d *Delivery, now time.Time) bool {
	return !c.Queue.FIFO && d.receives > unexplainedMany && c.unexplained(d, d.Attempt-1-d.made(), now) >= unexplainedMany
}

// confine deals with d if it is, or seems to be, one that kills. It returns false if d
// may run like any other.
func (c *Machine) confine(d *Delivery, now time.Time) bool {
	if d.marked() {
		if c.unexplained(d, 0, now) >= deadlyMany {
			c.tell(Crasher{d.Subject()})
			c.skip(d, Verdict{Outcome: OutcomeDeadLetter, Reason: retry.ReasonCrash, Err: errCrashes}, now)
			return true
		}
		c.isolate(d, now)
		return true
	}
	if !c.suspicious(d, now) || !c.solo.countSuspect(now) {
		return false
	}
	c.complain("suspect", "a message seems to crash the worker; it is run alone", "message", d.Subject())
	v := Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, alone: true, Err: errSuspect}
	if c.via(d, v, now) == byVisibility || !c.copyable(d, now) {
		c.isolate(d, now) // without a record of it: the queue's own limit is what is left
		return true
	}
	c.skip(d, v, now)
	return true
}

// countSuspect counts one more suspect, and reports whether they are few enough to run
// alone. Those that were received together with one that kills are not many; where others
// release messages by the thousand, their receives cannot be explained either.
func (s *soloTurn) countSuspect(now time.Time) bool {
	if now.Sub(s.suspectsSince) > suspectsFor {
		s.suspects, s.suspectsSince = 0, now
	}
	s.suspects++
	return s.suspects <= suspectsMany
}

// giveBackForNow gives d back while another runs alone.
func (c *Machine) giveBackForNow(d *Delivery, now time.Time) {
	due := now.Add(queueAlone + spread(queueAlone, d.ID))
	c.skip(d, Verdict{Outcome: OutcomeRelease, Reason: retry.ReasonRelease, Due: due, Err: errSuspect}, now)
}

// isolate has d, which waits, run alone. If another does or will, d is given back for a
// while; so is a marked one if the others have the workers for longer, since each crash
// that it waits through here would count against it.
func (c *Machine) isolate(d *Delivery, now time.Time) {
	s := c.solo
	if s.next != nil || s.running != nil || d.marked() && s.rest.Sub(now) > queueAlone {
		c.giveBackForNow(d, now)
		return
	}
	c.move(d, stateAlone)
	s.next, s.owner = d, c
	c.claimSolo(now)
}

// claimSolo stops the starting of others once they have had their time, so that the
// message that waits to run alone can. While c is paused it could not: the others of
// its pool are not to wait for that.
func (c *Machine) claimSolo(now time.Time) {
	s := c.solo
	d := s.next
	if d == nil || c.closed || c.paused || !s.taken.IsZero() {
		return
	}
	later := func(wait time.Duration, do func(now time.Time)) {
		c.alarms.After(now.Add(wait), func(now time.Time) {
			if s.next == d {
				do(now)
			}
		})
	}
	if wait := s.rest.Sub(now); wait > 0 {
		later(wait, c.claimSolo)
		return
	}
	s.taken = now
	later(soloPatience, func(then time.Time) {
		switch { // some handler takes long: the others go on, and d tries again
		case !s.taken.Equal(now): // they do, since a pause
		case d.marked():
			c.giveBackForNow(d, then)
		default: // without a copy, to give it back would use up a receive
			c.endSolo(then)
			c.claimSolo(then)
		}
	})
}

// runAlone is called when the message that waited to run alone is started: others are
// started again when it has ended, or aloneAtMost from now.
func (c *Machine) runAlone(now time.Time) {
	s := c.solo
	d := s.next
	s.next, s.running = nil, d
	c.alarms.After(now.Add(aloneAtMost), func(now time.Time) {
		if s.running == d {
			c.endSolo(now)
		}
	})
}

// endSolo lets others start again.
func (c *Machine) endSolo(now time.Time) {
	s := c.solo
	if s.taken.IsZero() {
		return
	}
	s.rest = now.Add(soloRest * now.Sub(s.taken))
	s.taken = time.Time{}
}

// leaveSolo is called when d no longer waits, or no longer runs.
func (c *Machine) leaveSolo(d *Delivery, now time.Time) {
	s := c.solo
	switch d {
	case s.next:
		s.next = nil
	case s.running:
		s.running = nil
	default:
		return
	}
	c.endSolo(now)
}

// aloneHere reports whether a message can run alone now: no handler runs and nothing is
// unsettled. Handlers that hang are not counted, or it would wait for them for ever.
func (c *Machine) aloneHere() bool {
	if c.pool != nil {
		return c.pool.idle()
	}
	return c.running == c.hung && c.settling == 0
}

// withLastError is err with what the history of d says of the last attempt.
func (d *Delivery) withLastError(err error) error {
	if d.History == nil || d.History.Error == "" {
		return err
	}
	return fmt.Errorf("%w; the last error was: %s", err, d.History.Error)
}
