package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/internal/plural"
)

// A request may be refused again and again for what is in one message, which its
// producer decides. Such a message must not take others
// along: it is sent in a request of its own, it does not keep the consumer from
// receiving, and after a while it goes without what can be left out, or is hidden.

const (
	// apartFrom refusals of a copy, it is sent in a request of its own: perhaps
	// another of its batch is refused, or it is, and the others with it.
	apartFrom = 3

	// A copy that is refused for no known reason is no longer waited for after
	// stuckFor if others were taken meanwhile, so that it is the message, and after
	// stuckForAlone if none was, so that it may be the queue.
	stuckFor      = time.Minute
	stuckForAlone = 5 * time.Minute

	// keptBriefly is how long a message that is given up is hidden when its
	// dead-letter queue refuses it for no known reason. Then it is tried again.
	keptBriefly = 15 * time.Minute

	// maxStuck is how many messages whose settlements are refused, while SQS answers
	// others, take no room from the messages still to be received: each is held in
	// memory, and more than that are no accident of a few messages.
	maxStuck = 2 * settleAllowance
)

// refusals are those of one message by one outbox, in a row.
type refusals struct {
	by    *Outbox
	many  int
	since time.Time
	taken int64 // by the outbox, when it refused this first
	stuck bool  // counted in Machine.stuck
}

// noteRefusal takes in that SQS has not carried out what o asked for d.
func (c *Machine) noteRefusal(o *Outbox, d *Delivery, f *Failure, now time.Time) {
	d.refusals++
	if d.refused.by != o {
		c.unstick(d)
		d.refused = refusals{by: o, since: now, taken: o.taken}
	}
	r := &d.refused
	r.many++
	if r.many >= unsettledMany || f.is(Lasting) {
		c.health.degrade(fmt.Sprintf("settling fails: %v", f.Err))
	}
	if r.many >= unsettledMany && !r.stuck && c.answered.After(r.since) {
		r.stuck = true
		c.stuck++
	}
	if r.stuck {
		c.stuckError = f.Err
	}
}

// unstick notes that d is not refused any more.
func (c *Machine) unstick(d *Delivery) {
	if d.refused.stuck {
		d.refused.stuck = false
		c.stuck--
	}
}

// refusedLong reports whether d's copy has been refused for so long, in requests of
// its own, that it is no longer waited for.
func (d *Delivery) refusedLong(now time.Time) bool {
	enough := stuckForAlone
	if d.othersTaken() {
		enough = stuckFor
	}
	return d.refused.many > apartFrom && clocks.Elapsed(d.refused.since, now) >= enough
}

// othersTaken reports whether SQS has carried out for others, since it refused d
// first, what it refuses for d.
func (d *Delivery) othersTaken() bool { return d.refused.by.taken > d.refused.taken }

// stuckProblem is what health says of messages that are refused while SQS answers
// others; empty if there are none.
func (c *Machine) stuckProblem() string {
	if c.stuck == 0 {
		return ""
	}
	return fmt.Sprintf("%s finished, but SQS refuses again and again to settle them, and answers others: %v", plural.Of(c.stuck, "message"), c.stuckError)
}

// unsendable is what is known of messages that are given up and that the
// dead-letter queue does not take, though it takes others or is there at least.
type unsendable struct {
	until time.Time // when the last of them becomes visible
	err   error
}

// problem is what health says of them; empty if there are none.
func (u *unsendable) problem(now time.Time) string {
	if u.err == nil || now.After(u.until) {
		return ""
	}
	return fmt.Sprintf("messages are given up that the dead-letter queue does not take; they are hidden, the last until %s, and then tried again: %v", u.until.UTC().Format(time.RFC3339), u.err)
}
