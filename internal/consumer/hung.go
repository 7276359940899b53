package consumer

import (
	"fmt"
	"time"
)

// Nothing can end a goroutine from outside. A handler that ignores the end of its
// context keeps its place for as long as it likes: one such message a minute takes all
// places soon, and then nothing is worked off any more. Its place is not given to
// another, since more handlers than Settings.Concurrency would then run. So the health
// says so, from the first such handler on, and is failing when they have all places: a
// new process is then the only remedy, and a platform that watches the health starts one.

const (
	// hungAfter is how long after the end of its context a handler is said to ignore it.
	// One that cleans up is done by then.
	hungAfter = time.Minute
	// When all places are taken and no handler has ended for stillTimes as long as one
	// takes on average, and for stillAtLeast, they are said to hang. If none has ended
	// yet, nobody knows how long they take: then after stillUnknown.
	stillTimes   = 10
	stillAtLeast = 15 * time.Minute
	stillUnknown = time.Hour
)

// hungFrom is when the handler of d, which runs, is taken for one that ignores the end
// of its context; zero if its context goes on.
func (c *Machine) hungFrom(d *Delivery) (at time.Time) {
	if d.lease.Lost() {
		at = d.lease.End().Add(hungAfter) // or the loss was earlier
	}
	if timeout := c.HandlerTimeout; timeout > 0 {
		if over := d.began.Add(timeout + hungAfter); at.IsZero() || over.Before(at) {
			at = over
		}
	}
	return at
}

// watchHandler is called by the keeper of leases for each message in a handler. It
// returns when to look again, zero if there is no need to.
func (c *Machine) watchHandler(d *Delivery, now time.Time) time.Time {
	at := c.hungFrom(d)
	if d.hung || at.IsZero() || at.After(now) {
		if d.hung {
			at = time.Time{}
		}
		return at
	}
	d.hung = true
	c.hung++
	c.leaveSolo(d, now) // nobody waits for it
	c.complain("hung", "a handler ignores the end of its context, and keeps its place", "message", d.Subject(),
		"running", now.Sub(d.began).Round(time.Second), "handlers", c.hung, "remedy", remedyHung)
	return time.Time{}
}

const remedyHung = "have the handler return when its context ends, and restart the process"

// handlerMoved notes that a handler of d starts or ends.
func (c *Machine) handlerMoved(d *Delivery, now time.Time) {
	c.lastMove = now
	if d.hung {
		d.hung = false
		c.hung--
	}
}

// hungProblem returns the problem that handlers do not end, and whether they have all places; "" if
// they do.
func (c *Machine) hungProblem(now time.Time) (problem string, all bool) {
	// In a pool those of all its consumers share the places.
	full, hung, running, lastMove := c.handlers() >= c.concurrency, c.hung, c.running, c.lastMove
	if c.pool != nil {
		hung, running = 0, 0
		for other := range c.pool.Each {
			hung, running = hung+other.hung, running+other.running
			if other.lastMove.After(lastMove) {
				lastMove = other.lastMove
			}
		}
		full = full || c.pool.workers() >= c.pool.concurrency
	}
	switch {
	case hung > 0 && hung == running && full:
		return fmt.Sprintf("nothing is worked on: all places are taken, since %s ignored the end of the context: %s", haveHung(hung), remedyHung), true
	case c.hung > 0:
		return fmt.Sprintf("%s ignored the end of the context, and the places are kept: %s", haveHung(c.hung), remedyHung), false
	case !full || c.running == 0:
		return "", false
	}
	patience := stillUnknown
	if c.taskTime.mean > 0 {
		patience = max(stillAtLeast, stillTimes*c.taskTime.mean)
	}
	if still := now.Sub(lastMove); still > patience {
		return fmt.Sprintf("no handler has ended for %v, and all places are taken: if they hang, set Config.HandlerTimeout and restart the process; if they take so long, raise the concurrency", still.Round(time.Minute)), false
	}
	return "", false
}

func haveHung(n int) string {
	if n == 1 {
		return "1 handler has"
	}
	return fmt.Sprintf("%d handlers have", n)
}
