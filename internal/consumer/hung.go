package consumer

import (
	"fmt"
	"time"
)

// No goroutine can be ended from outside. A handler that ignores the end of its context
// keeps its place: one such message a minute soon takes all places, and then no message is
// run any more. Its place cannot be given to another handler, or more than
// Settings.Concurrency would run. So the health is degraded from the first such handler on,
// and failing when they have all places: only a new process helps then, and a platform that
// watches the health starts one.

const (
	// hungAfter: a handler that runs for this long after the end of its context ignores it.
	// A handler that only cleans up has ended by then.
	hungAfter = time.Minute
	// If all places are taken, and no handler has ended for stillTimes the average time of
	// a handler, and for stillAtLeast, the handlers seem to hang. If none has ended yet,
	// the average is not known: then they seem to hang after stillUnknown.
	stillTimes   = 10
	stillAtLeast = 15 * time.Minute
	stillUnknown = time.Hour
)

// batchRun is one run of a batch handler.
type batchRun struct {
	messages    int
	lost        int       // of messages: their leases were lost in the run
	interrupted time.Time // when the last was, and the batch's context ended; zero: it has not
	hung        bool      // Machine.hanging counts it
}

// interrupt notes that the lease of d, which runs, is lost, and has the handler told. The context of the run has ended
// then, even if d is received again. That of a batch ends when the leases of all its messages are lost.
func (c *Machine) interrupt(d *Delivery) {
	d.lease.Lose()
	c.want(Effect{Kind: Interrupt, Delivery: d})
	if !d.interrupted.IsZero() {
		return
	}
	d.interrupted = c.now
	if b := d.batch; b != nil {
		if b.lost++; b.lost == b.messages {
			b.interrupted = c.now
		}
	}
	c.planKeeping(c.now.Add(hungAfter)) // see hungFrom
}

// hungFrom returns when d's handler begins to count as one that ignores the end of its context; zero if d
// has none, its context has no end yet, or it counts already.
func (c *Machine) hungFrom(d *Delivery) (at time.Time) {
	if d.state != stateRunning || d.hung {
		return at
	}
	interrupted := d.interrupted
	if d.batch != nil {
		interrupted = d.batch.interrupted
	}
	if !interrupted.IsZero() {
		at = interrupted.Add(hungAfter)
	}
	if timeout := c.HandlerTimeout; timeout > 0 {
		if over := d.began.Add(timeout).Add(hungAfter); at.IsZero() || over.Before(at) {
			at = over
		}
	}
	return at
}

// hangs notes that d's handler ignores the end of its context.
func (c *Machine) hangs(d *Delivery, now time.Time) {
	c.countHung(d)
	c.leaveSolo(d, now) // no other message waits for it any longer
	c.complain("hung", "a handler ignores the end of its context and keeps its place", "message", d.Subject(),
		"running", now.Sub(d.began).Round(time.Second), "handlers", c.hanging, "remedy", remedyHung)
}

const remedyHung = "have the handler return when its context ends, and restart the process"

// countHung counts d's handler as one that ignores the end of its context.
func (c *Machine) countHung(d *Delivery) {
	d.hung = true
	c.hung++
	if b := d.batch; b == nil || !b.hung {
		c.hanging++
	}
	if d.batch != nil {
		d.batch.hung = true
	}
}

// handlerMoved notes that d's handler starts or ends.
func (c *Machine) handlerMoved(d *Delivery, now time.Time) {
	c.lastMove = now
	if d.hung {
		d.hung = false
		c.hung--
		if b := d.batch; b == nil || b.hung {
			c.hanging--
		}
		if d.batch != nil {
			d.batch.hung = false
		}
	}
	d.batch, d.interrupted = nil, time.Time{}
}

// hungProblem describes, for the health, that handlers do not end, and reports whether they
// have all places; the problem is empty if they end.
func (c *Machine) hungProblem(now time.Time) (problem string, all bool) {
	// In a pool those of all its consumers share the places.
	full, hung, handlers, running, lastMove := c.handlers() >= c.concurrency, c.hung, c.hanging, c.running, c.lastMove
	if c.pool != nil {
		hung, handlers, running = 0, 0, 0
		for other := range c.pool.Each {
			hung, handlers, running = hung+other.hung, handlers+other.hanging, running+other.running
			if other.lastMove.After(lastMove) {
				lastMove = other.lastMove
			}
		}
		full = full || c.pool.workers() >= c.pool.concurrency
	}
	switch {
	case hung > 0 && hung == running && full:
		return fmt.Sprintf("nothing is worked on: all places are taken, since %s ignored the end of the context: %s", haveHung(handlers), remedyHung), true
	case c.hung > 0:
		return fmt.Sprintf("%s ignored the end of the context, and the places are kept: %s", haveHung(c.hanging), remedyHung), false
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
