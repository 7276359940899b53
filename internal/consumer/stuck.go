package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/internal/plural"
)

// SQS may refuse a request again and again because of the content of one message, which its
// producer decides. Such a message must not harm others: its copy is sent in a request of
// its own, it does not keep the consumer from receiving, and after a while its copy is sent
// without story and trace header, or the message is hidden.

const (
	// apartFrom is the number of refusals after which a copy is sent in a request of its own:
	// SQS may have refused the whole batch because of one copy.
	apartFrom = 3

	// A copy that is refused for no known reason is given up after stuckFor if SQS has
	// accepted others meanwhile, so that the message must be the cause, and after
	// stuckForAlone if it has not, so that the queue may be the cause.
	stuckFor      = time.Minute
	stuckForAlone = 5 * time.Minute

	// keptBriefly is how long a message that is given up is hidden when its
	// dead-letter queue refuses it for no known reason. Then it is tried again.
	keptBriefly = 15 * time.Minute

	// maxStuck is how many messages whose settlements SQS refuses, while it answers others,
	// do not count against the room for new messages. Each of them takes memory, and if
	// there are more, a few bad messages cannot be the cause.
	maxStuck = 2 * settleAllowance
)

// refusals are those of one message by one outbox, in a row.
type refusals struct {
	by    *Outbox
	many  int
	since time.Time
	taken int64 // Outbox.taken at the first refusal
	stuck bool  // Machine.stuck counts it
}

// noteRefusal counts that SQS has not carried out o's entry for d.
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

// unstick notes that SQS no longer refuses d's settlement.
func (c *Machine) unstick(d *Delivery) {
	if d.refused.stuck {
		d.refused.stuck = false
		c.stuck--
	}
}

// refusedLong reports whether d's copy has been refused, in requests of its own, for so long
// that it is given up.
func (d *Delivery) refusedLong(now time.Time) bool {
	enough := stuckForAlone
	if d.othersTaken() {
		enough = stuckFor
	}
	return d.refused.many > apartFrom && clocks.Elapsed(d.refused.since, now) >= enough
}

// othersTaken reports whether SQS has accepted entries of the same outbox for other messages
// since it first refused d's.
func (d *Delivery) othersTaken() bool { return d.refused.by.taken > d.refused.taken }

// stuckProblem describes, for the health, the messages whose settlements SQS refuses while it
// answers others; empty if there are none.
func (c *Machine) stuckProblem() string {
	if c.stuck == 0 {
		return ""
	}
	return fmt.Sprintf("%s finished, but SQS refuses their settlement again and again, and answers others: %v", plural.Of(c.stuck, "message"), c.stuckError)
}

// unsendable describes the messages that are given up and that the dead-letter queue does
// not accept, although it exists, and may accept others.
type unsendable struct {
	until time.Time // when the last of them becomes visible
	err   error
}

// problem describes them for the health; empty if there are none.
func (u *unsendable) problem(now time.Time) string {
	if u.err == nil || now.After(u.until) {
		return ""
	}
	return fmt.Sprintf("messages are given up that the dead-letter queue does not accept; they are hidden, the last until %s, and then tried again: %v", u.until.UTC().Format(time.RFC3339), u.err)
}
