package consumer

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// A message whose work kills the process also ends the runs of the messages beside it, and
// no process is left that could report it. It is found by its receives: there are more than
// can have been attempts. Such a suspect is sent again with a mark in its history, and the
// consumer that receives the mark runs the message alone. An innocent message loses the mark
// when its run ends, whatever the result. A message that is received with the mark for the
// third time has killed two processes with nothing beside it, and is dead-lettered.
//
// Both signs can be wrong: a receive whose reply is lost looks like the death of a process,
// and the mark can be forged. So the more receives come to nothing here, the more are needed
// for a sign: see losses. And a message that must run alone keeps others from starting
// for at most a minute while it waits, and for at most a minute while it runs; then others
// start beside it. Afterwards the others may start for nine times as long as they had to
// wait, whichever message is next: such messages together take at most a tenth of the time.
//
// A message that kills later than that minute also ends the runs that were started beside
// it. Its own receives still reveal it: it is dead-lettered after two deaths. Each death
// costs each of the others a receive; a message that has lost three becomes a suspect, runs
// alone, and loses the mark when that run ends. Two marked messages never run side by side.
// A marked message that cannot run within a minute is not kept here but sent again, so that
// its receives begin at 1: no death counts for two messages.

const (
	// unexplainedMany is the number of receives without an outcome that makes a message a suspect.
	unexplainedMany = 3
	// deadlyMany is the number of receives without an outcome after which a marked message is
	// dead-lettered: in each of them a process died that ran it alone.
	deadlyMany = 2
	// suspectsMany is how many suspects at most are run alone within suspectsFor.
	suspectsMany = 50
	suspectsFor  = 15 * time.Minute
	// soloPatience is how long others do not start while a message that must run alone
	// waits for the end of those that run.
	soloPatience = time.Minute
	// aloneAtMost is how long others do not start while a message runs alone. Most
	// messages that kill a process do so within seconds: their work panics in a goroutine
	// of its own, or takes memory until the system ends the process. A longer time would
	// protect others from a few more, but let one forged mark stop all others for as long.
	aloneAtMost = time.Minute
	// soloRest is for how many times the time that others had to wait they may start
	// afterwards.
	soloRest = 9
	// queueAlone is how long a message is given back for while another must run alone: the
	// first time, and at most. The wait is up to twice as long.
	queueAlone       = time.Minute
	queueAloneAtMost = time.Hour
	// leaseOfOthers is the lease that another process is taken to have at least, unless ours is
	// shorter: the default.
	leaseOfOthers = time.Minute
)

var (
	errSuspect = errors.New("it was received again and again without an outcome, as if it crashed its worker")
	errCrashes = errors.New("it crashes the worker: it was run alone, more than once, and there was no outcome")
)

// soloTurn says which messages may start: all of them, or one that must run alone.
type soloTurn struct {
	next    *Delivery // waits to run alone
	owner   *Machine  // of next
	running *Delivery // was started alone; after aloneAtMost, others run beside it
	taken   time.Time // since when no other message may start; zero: others may
	rest    time.Time // until then others may start

	suspects      int
	suspectsSince time.Time
}

// deaths returns how many of d's receives before this one may each have killed a process:
// those that were neither this process's own, nor part of a long wait, nor among the given
// number of attempts. After each death d stayed hidden until its lease ended, so that there were
// no more than leases fit into the time. It returns 0 if there are so few of them that the replies to
// these receives may just have been lost.
func (c *Machine) deaths(d *Delivery, attempts int, now time.Time) int {
	arrived := d.FirstReceived
	if d.History != nil {
		arrived = d.History.Arrived
	}
	// A longer wait than 12 hours takes one receive for each 12 hours.
	inLongWaits := d.hops(c.ahead) + int(now.Sub(c.local(arrived))/(retry.MaxVisibility-time.Hour))
	known := c.memory.Recall(d.ID, now)
	ours := max(known.Receives, known.Seen)
	leases := int(now.Sub(c.local(arrived)) / min(c.Lease, leaseOfOthers))
	unexplained := min(d.receives-1-max(attempts+inLongWaits, ours), leases)
	if coincidental(c.losses.share(d), unexplained, d.receives-1-ours) {
		return 0
	}
	return unexplained
}

// suspicious reports whether d was received too often to be explained, even by all the
// attempts that fit into the time. On FIFO queues it is never: messages are received dozens
// of times there without a run, behind the head of their group.
func (c *Machine) suspicious(d *Delivery, now time.Time) bool {
	return !c.Queue.FIFO && d.receives > unexplainedMany && c.deaths(d, d.Attempt-1-d.made(), now) >= unexplainedMany
}

// deadly returns how many receives without an outcome prove that d, which is marked, kills. A process
// that was there before d wants one more: d has not killed it, and others may run it by settings
// that do not remove the mark, or be stopped before they could.
func (c *Machine) deadly(d *Delivery) int {
	if c.started.Before(c.local(d.History.Arrived)) {
		return deadlyMany + 1
	}
	return deadlyMany
}

// countSuspect counts one more suspect, and reports whether there are few enough to run them
// alone. Only a few messages are received together with one that kills. If there are many
// suspects, another program releases messages by the thousand: their receives cannot be
// explained either.
func (s *soloTurn) countSuspect(now time.Time) bool {
	if now.Sub(s.suspectsSince) > suspectsFor {
		s.suspects, s.suspectsSince = 0, now
	}
	s.suspects++
	return s.suspects <= suspectsMany
}

// claimSolo keeps others from starting, once they have had their time, so that the message
// that waits to run alone, soloTurn.next, can start. It does nothing while c is paused: the message could
// not start, and other consumers of the pool would wait for nothing.
func (c *Machine) claimSolo(now time.Time) {
	s := c.solo
	d := s.next
	if c.closed || c.paused || !s.taken.IsZero() {
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
		switch { // a handler takes long: others may start, and d tries again later
		case !s.taken.Equal(now): // a pause has let others start already
		case d.marked():
			c.giveBackForNow(d, then)
		default: // there is no copy: giving it back would use up a receive
			c.endSolo(then)
			c.claimSolo(then)
		}
	})
}

// runAlone is called when the message that waited to run alone starts. Others may start
// again when it has ended, at the latest after aloneAtMost.
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

// leaveSolo is called when d no longer waits or runs: if it did so alone, others may start
// again.
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

// aloneHere reports whether a message can run alone now: no handler runs, and no message is
// unsettled. Handlers that hang do not count, nor messages whose settlement SQS refuses again and
// again: the message would wait for them for ever.
func (c *Machine) aloneHere() bool {
	if c.pool != nil {
		return c.pool.idle()
	}
	return c.running == c.hung && c.settling == c.stuck
}
