package reprise

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
	// deadlyMany receives without an outcome are as many deaths of whoever ran a
	// marked message, with nothing beside it.
	deadlyMany = 2
	// suspectsMany suspects are dealt with in suspectsFor.
	suspectsMany = 50
	suspectsFor  = 15 * time.Minute
	// floorPatience is how long others are not started for the sake of a message
	// that waits until those running have ended.
	floorPatience = time.Minute
	// aloneAtMost is how long others are not started while a message runs alone. What
	// kills a process mostly does so within seconds: it panics in a goroutine of its
	// own, or takes memory until the system ends it. A longer time would find a few
	// more without harm to others, and let one forged mark stop everybody for as long.
	aloneAtMost = time.Minute
	// floorRest is how many times as long the others have afterwards.
	floorRest = 9
	// queueAlone is for how long a message is given back that finds another waiting.
	queueAlone = time.Minute
)

var (
	errSuspect = errors.New("it was received again and again without an outcome, as if it crashed whoever runs it")
	errCrashes = errors.New("it crashes the worker: twice it was run alone, and twice there was no outcome")
)

// floor is the right to start handlers: everybody's, or that of one message which
// runs alone. Part of the core.
type floor struct {
	next    *delivery // waits to run alone
	owner   *core     // of that
	running *delivery // was started alone; after aloneAtMost, others run beside it
	taken   time.Time // since when no other is started; zero: others are
	rest    time.Time // others have the floor until then

	suspects      int
	suspectsSince time.Time
}

// marked says that d is to run alone.
func (d *delivery) marked() bool { return d.history != nil && d.history.Alone > 0 }

// unexplained is how many of d's receives before this one were neither this
// process's own, which lives, nor the hops of a long wait, nor, of those that can be
// taken for it, attempts.
func (c *core) unexplained(d *delivery, attempts int, now time.Time) int {
	arrived := d.msg.FirstReceived
	if d.history != nil {
		arrived = d.history.arrived
	}
	// A wait beyond 12 hours takes a receive for each.
	parked := c.hops(d) + int(now.Sub(c.clock.local(arrived))/(retry.MaxVisibility-time.Hour))
	known := c.memory.Recall(d.msg.ID, now)
	return d.receives - 1 - max(attempts+parked, known.Receives, known.Seen)
}

// suspicious says that d was received too often to be explained, even by all the
// attempts that fit into the time. FIFO siblings are received without running, by the
// dozen, and there is no telling.
func (c *core) suspicious(d *delivery, now time.Time) bool {
	return !c.queue.fifo && d.receives > unexplainedMany && c.unexplained(d, d.msg.Attempt-1-d.made(), now) >= unexplainedMany
}

// confine deals with d if it is, or seems to be, one that kills. It returns false if d
// may run like any other.
func (c *core) confine(d *delivery, now time.Time) bool {
	if d.marked() {
		if c.unexplained(d, 0, now) >= deadlyMany {
			m := d.msg
			c.inOrder(func(*Consumer) { c.log.Error("a message crashes the worker, and is dead-lettered", "message", m) })
			c.skip(d, verdict{outcome: OutcomeDeadLetter, reason: retry.ReasonCrash, err: errCrashes}, now)
			return true
		}
		c.isolate(d, now)
		return true
	}
	if !c.suspicious(d, now) || !c.floor.maySuspect(now) {
		return false
	}
	c.complainLater("suspect", "a message seems to crash the worker; it is run alone", "message", d.msg)
	v := verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, alone: true, err: errSuspect}
	if c.via(d, v, now) == byVisibility || !c.copyable(d, now) {
		c.isolate(d, now) // without a record of it: the queue's own limit is what is left
		return true
	}
	c.skip(d, v, now)
	return true
}

// maySuspect counts one more suspect. Those that were received together with one
// that kills are not many; where others release messages by the thousand, their
// receives cannot be explained either.
func (f *floor) maySuspect(now time.Time) bool {
	if now.Sub(f.suspectsSince) > suspectsFor {
		f.suspects, f.suspectsSince = 0, now
	}
	f.suspects++
	return f.suspects <= suspectsMany
}

// giveWay gives d back while another has the floor.
func (c *core) giveWay(d *delivery, now time.Time) {
	due := now.Add(queueAlone + spread(queueAlone, d.msg.ID))
	c.skip(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease, due: due, err: errSuspect}, now)
}

// isolate has d, which waits, run alone. If another does or will, d is given back for a
// while; so is a marked one if the others have the workers for longer, since each crash
// that it waits through here would count against it.
func (c *core) isolate(d *delivery, now time.Time) {
	f := c.floor
	if f.next != nil || f.running != nil || d.marked() && f.rest.Sub(now) > queueAlone {
		c.giveWay(d, now)
		return
	}
	c.move(d, stateAlone)
	f.next, f.owner = d, c
	c.takeFloor(now)
}

// takeFloor stops the starting of others once they have had their time, so that the
// message that waits to run alone can. While c is paused it could not: the others of
// its pool are not to wait for that.
func (c *core) takeFloor(now time.Time) {
	f := c.floor
	d := f.next
	if d == nil || c.closed || c.dials.paused || !f.taken.IsZero() {
		return
	}
	later := func(wait time.Duration, do func(now time.Time)) {
		c.alarms.After(now.Add(wait), func(now time.Time) {
			if f.next == d {
				do(now)
			}
		})
	}
	if wait := f.rest.Sub(now); wait > 0 {
		later(wait, c.takeFloor)
		return
	}
	f.taken = now
	later(floorPatience, func(then time.Time) {
		switch { // some handler takes long: the others go on, and d tries again
		case !f.taken.Equal(now): // they do, since a pause
		case d.marked():
			c.giveWay(d, then)
		default: // without a copy, to give it back would use up a receive
			c.yieldFloor(then)
			c.takeFloor(then)
		}
	})
}

// runAlone is called when the message that waited to run alone is started: others are
// started again when it has ended, or aloneAtMost from now.
func (c *core) runAlone(now time.Time) {
	f := c.floor
	d := f.next
	f.next, f.running = nil, d
	c.alarms.After(now.Add(aloneAtMost), func(now time.Time) {
		if f.running == d {
			c.yieldFloor(now)
		}
	})
}

// yieldFloor lets others start again.
func (c *core) yieldFloor(now time.Time) {
	f := c.floor
	if f.taken.IsZero() {
		return
	}
	f.rest = now.Add(floorRest * now.Sub(f.taken))
	f.taken = time.Time{}
}

// leaveFloor is called when d no longer waits, or no longer runs.
func (c *core) leaveFloor(d *delivery, now time.Time) {
	f := c.floor
	switch d {
	case f.next:
		f.next = nil
	case f.running:
		f.running = nil
	default:
		return
	}
	c.yieldFloor(now)
}

// startable is the message to start next; nil if none may start.
func (c *core) startable() *delivery {
	d := c.nextUp(c.now)
	if d == nil || c.pool != nil && !c.pool.grants(c) {
		return nil
	}
	return d
}

// nextUp is the message that c would start next, as far as c is concerned: in a pool
// others may go first.
func (c *core) nextUp(now time.Time) *delivery {
	if d := c.nextInLine(); d != nil && c.startsIn(d, now) <= 0 {
		return d
	}
	return nil
}

// nextInLine is nextUp without regard to whether it is yet time.
func (c *core) nextInLine() *delivery {
	f := c.floor
	switch {
	case c.closed || c.dials.paused || c.full():
		return nil
	case f.taken.IsZero():
		return c.ready.first
	case f.owner == c && f.running == nil && c.aloneHere():
		return f.next
	}
	return nil
}

// aloneHere reports whether a message can run alone now: no handler runs and nothing is
// unsettled. Handlers that hang are not counted, or it would wait for them for ever.
func (c *core) aloneHere() bool {
	if c.pool != nil {
		return c.pool.idle()
	}
	return c.running == c.hung && c.settling == 0
}

// withLastError is err with what the history of d says of the last attempt.
func (d *delivery) withLastError(err error) error {
	if d.history == nil || d.history.Error == "" {
		return err
	}
	return fmt.Errorf("%w; the last error was: %s", err, d.history.Error)
}
