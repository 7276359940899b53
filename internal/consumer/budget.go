package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/budget"
	"github.com/reprise-sqs/reprise/plan"
)

const (
	budgetDenied = time.Hour // between two attempts, if reading is not permitted
	// budgetWatch: the queue's count is read when this process holds, or has in backoff,
	// this part of the quota or more: one part in a hundred.
	budgetWatch = 100

	// fullPause is how long receiving pauses at a full quota.
	fullPause = 20 * time.Second
)

// watchInFlight asks for a new reading of the queue's count if it could matter: this process
// has a notable part of the quota, the last reading was near the quota, or SQS refused a
// receive because of it. It is called when messages were hidden, and when a receive brought
// none.
func (c *Machine) watchInFlight(now time.Time) {
	b := &c.budget
	if c.InFlightQuota < 0 || c.draining || !b.Look(now) {
		return
	}
	notable := c.InFlightQuota / budgetWatch
	if !b.High(now) && !b.Refused(now) {
		if len(c.held)+c.memory.Len() <= notable {
			return
		}
		if inBackoff, _ := c.memory.InBackoff(now); len(c.held)+inBackoff <= notable { // which reads every note, so it is not done for each message
			b.LookAgain(now.Add(budget.Every / 6))
			return
		}
	}
	b.LookAgain(now.Add(budget.Every))
	c.want(Effect{Kind: Count})
}

// Counted takes in how many of the queue's messages are in flight (hidden) and wait
// (visible), as SQS counts them.
func (c *Machine) Counted(hidden, visible int) {
	now := c.now
	if c.InFlightQuota < 0 {
		return
	}
	b := &c.budget
	b.Read(budget.Reading{Hidden: hidden, Visible: visible, Quota: c.InFlightQuota, At: now})
	if !b.High(now) {
		return
	}
	f := plan.Finding{
		Severity: plan.Warning,
		Code:     plan.CodeInFlight,
		Problem:  fmt.Sprintf("%d messages of the queue are in flight, of the %d that SQS permits; ", hidden, c.InFlightQuota),
		Remedy:   "shorten the backoff, or ask AWS for a higher quota and set Config.InFlightQuota.",
	}
	switch {
	case c.Queue.FIFO:
		f.Problem += "on a FIFO queue no copies can relieve it, so that groups are not held, and of a failed group only the head is hidden."
	case c.Via == plan.ViaVisibility:
		f.Problem += "Config.Via does not permit copies, which would relieve it."
		f.Remedy = "set Config.Via to ViaAuto; or " + f.Remedy
	default:
		f.Problem += "retries are sent as delayed copies, which are not in flight, the longest waits first."
	}
	c.find(f)
}

// CountDenied takes in that SQS denies the permission to read the counts.
func (c *Machine) CountDenied(err error) {
	c.budget.LookAgain(c.now.Add(budgetDenied))
	c.find(plan.Finding{
		Severity: plan.Warning,
		Code:     plan.CodeInFlight,
		Problem:  "the number of messages in flight cannot be read, so retries are hidden, not copied, even when SQS's quota is nearly used up: " + err.Error(),
		Remedy:   "permit sqs:GetQueueAttributes on the queue.",
	})
}

// broughtNothing is called when a receive was empty or failed. It returns how long to wait
// before the next one: zero, unless the quota is used up, and the next would bring nothing
// either.
func (c *Machine) broughtNothing(f Failure) time.Duration {
	now := c.now
	if f.Err != nil {
		if !f.is(OverLimit) || c.InFlightQuota < 0 {
			return 0
		}
		c.budget.Refuse(now)
	}
	c.watchInFlight(now)
	if !c.budget.Full(now) {
		return 0
	}
	c.complain("in-flight", c.inFlightProblem(now))
	return fullPause
}

// inFlight returns what Status shows of the queue's messages in flight.
func (c *Machine) inFlight(now time.Time) InFlight {
	last := c.budget.Last()
	return InFlight{Queue: last.Hidden, Visible: last.Visible, AsOf: last.At, Quota: max(0, c.InFlightQuota), Full: c.budget.Full(now)}
}

// inFlightProblem describes, for the health, that the quota is used up; empty if it is not.
func (c *Machine) inFlightProblem(now time.Time) string {
	b := &c.budget
	if !b.Full(now) {
		return ""
	}
	last := b.Last()
	count := "as many messages of the queue are in flight as SQS permits"
	if !last.At.IsZero() {
		count = fmt.Sprintf("%d messages of the queue were in flight at %s, of the %d that SQS permits, and %d wait", last.Hidden, last.At.UTC().Format(time.RFC3339), last.Quota, last.Visible)
	}
	inBackoff, _ := c.memory.InBackoff(now)
	return fmt.Sprintf("%s: receives bring no more messages. Of those in flight this process has %d in backoff and holds %d. Shorten the backoff, wake the messages in backoff if their cause is fixed, permit sqs:SendMessage so that retries can be copies, or ask AWS for a higher quota and set Config.InFlightQuota", count, inBackoff, len(c.held))
}
