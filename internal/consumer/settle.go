package consumer

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/retry"
)

var (
	errExhausted  = errors.New("its attempts or its age were used up before this receive")
	errLeaseEnded = errors.New("the lease ended before SQS acknowledged the settlement")
)

const (
	minSettleBackoff = 100 * time.Millisecond
	maxSettleBackoff = 5 * time.Second

	// unsettledMany is the number of refusals of one settlement, in a row, that degrades the
	// health.
	unsettledMany = 5
)

// settle begins to carry out d's verdict. Only one request about a message is under way at a
// time: while a heartbeat is under way, the settlement waits for its end. Otherwise SQS
// could carry out the heartbeat last, and replace hours of backoff by one lease.
func (c *Machine) settle(d *Delivery, now time.Time) {
	if c.closed {
		return // the stop budget has ended: the Report names d as unsettled
	}
	if d.lease.Renewing() {
		c.move(d, stateFinished)
		return
	}
	c.reconsider(d, now)
	c.watchGivingUp(d, now)
	switch d.verdict.Outcome {
	case OutcomeDelete:
		c.put(&c.deletes, d, now)
	case OutcomeDeadLetter:
		c.giveUp(d, now)
	default:
		if d.verdict.requeue != carry.Hidden {
			c.requeue(d, now)
			return
		}
		c.put(&c.hides, d, now)
	}
}

// skip settles d without running its handler. Whatever d waits for, it is only deleted if its work is done: begin has not
// looked at one behind the head of its group. One that is released is hidden until it is due: its handler may have asked
// for a wait before it was held in an outage.
func (c *Machine) skip(d *Delivery, v Verdict, now time.Time) {
	known := c.memory.Recall(d.ID, now)
	switch {
	case known.Done && v.comesAgain():
		d.copied = known.Copied
		v = Verdict{Outcome: OutcomeDelete}
	case v.Outcome == OutcomeRelease && known.Due.After(v.Due) && known.Due.After(now) && !c.outlasted(d, known):
		if v.Due = known.Due; known.Asked {
			v.Reason = retry.ReasonRetryAfter
		}
	}
	v = c.route(d, v, now)
	c.unready(d, now)
	c.move(d, stateSettling)
	d.verdict = v
	c.settle(d, now)
}

// settleLater tries d's settlement again after a backoff. While the request was under way,
// the lease could not be renewed: if a heartbeat is due, it is sent first.
func (c *Machine) settleLater(d *Delivery, now time.Time) {
	if clocks.Passed(d.lease.RenewAt(), now) {
		c.planKeeping(now)
	}
	wait := min(maxSettleBackoff, minSettleBackoff<<min(d.refusals-1, 10))
	wait -= spread(wait/2, d.ID)
	c.alarms.After(now.Add(wait), func(now time.Time) {
		if d.state == stateSettling && !c.closed {
			c.settle(d, now)
		}
	})
}
