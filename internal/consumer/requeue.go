package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	historySize = len(history.Attribute) + len("String") + history.MaxSize

	codeRequeueRefused = "requeue-refused"
	codeUncopyable     = "message-not-copyable"
)

// route completes a verdict that gives d back: by visibility or by requeue. If no copy can
// be sent, and the queue would not deliver d again, d is given up instead.
func (c *Machine) route(d *Delivery, v Verdict, now time.Time) Verdict {
	if !v.comesAgain() {
		return v
	}
	v.carriedBy, v.untilRead = time.Time{}, false
	if d.marked() && !d.tried && d.state.waits() && v.Outcome == OutcomeRelease && v.Reason != retry.ReasonUnavailable {
		// Given back without a run: the next consumer runs it alone. Not in an outage: it
		// would be requeued again and again, and each receive would count against it.
		v.alone = true
	}
	v.requeue = c.via(d, v, now)
	if v.requeue != carry.Hidden && c.copyable(d, now) {
		return v
	}
	// Hidden only until it can still be copied, so that it cannot expire.
	if latest := c.facts.queue().CopyBy(c.kept(d)); v.requeue == carry.Hidden && c.takesCopies() && !latest.IsZero() && v.Due.After(latest) && c.copyable(d, now) {
		v.carriedBy = latest
		return v
	}
	v.requeue = carry.Hidden
	return c.withoutCopy(d, v, now)
}

// outdated reports whether d, which would be hidden, has been received again since its verdict, and
// that was the last receive that the queue permits; or whether the time has passed until which it
// should have been hidden, because SQS has refused that.
func (c *Machine) outdated(d *Delivery, now time.Time) bool {
	v := &d.verdict
	if !v.comesAgain() || v.requeue != carry.Hidden {
		return false
	}
	return c.facts.queue().LastReceive(d.receives) && d.receives != d.Receives || !v.carriedBy.IsZero() && !v.carriedBy.After(now)
}

// reconsider completes the verdict on d once more if it is outdated.
func (c *Machine) reconsider(d *Delivery, now time.Time) {
	if !c.outdated(d, now) {
		return
	}
	d.verdict = c.route(d, d.verdict, now)
	if d.verdict.Outcome == OutcomeDeadLetter {
		c.spend(d, now)
	}
}

// spend notes that d is given up.
func (c *Machine) spend(d *Delivery, now time.Time) {
	known := c.memory.Note(d.ID, now)
	known.Spent, known.Reason, known.Err = true, d.verdict.Reason, d.verdict.Err
}

// via decides whether a copy should replace d, and why.
func (c *Machine) via(d *Delivery, v Verdict, now time.Time) carry.Why {
	if !c.takesCopies() {
		return carry.Hidden
	}
	return c.facts.queue().Copies(c.waitOf(d, v, now))
}

// waitOf returns the wait of d that begins with v.
func (c *Machine) waitOf(d *Delivery, v Verdict, now time.Time) carry.Wait {
	parked := v.Outcome == OutcomePark
	return carry.Wait{
		Now:       now,
		Due:       v.Due,
		Requested: now.Add(-d.lease.Age(now)),
		Kept:      c.kept(d),
		Receives:  d.receives,
		Known:     d.History != nil && !d.History.Due.Before(v.Due),
		Alone:     v.alone || d.marked() && !parked,
		Asked:     v.Outcome == OutcomeRetry && (c.Via == plan.ViaRequeue || c.hasRetryLane()),
		// The first release costs one receive, which counts as one attempt at most. Further ones would
		// add up until the message seems exhausted; an outage makes many.
		Uncounted: v.Outcome == OutcomeRelease && (d.receives > 1 || d.History != nil || v.unavailable || v.Reason == retry.ReasonUnavailable),
		Miscounts: parked && c.unrunWouldCount(d, now),
		Crowded:   c.budget.Spills(v.Due.Sub(now), now),
		Outage:    v.unavailable,
		Stopping:  c.draining,
	}
}

// kept returns since when d's queue keeps it, on our clock; zero if SQS did not say when d was sent.
func (c *Machine) kept(d *Delivery) time.Time {
	sent := d.enqueued()
	if sent.IsZero() {
		return sent
	}
	return c.local(sent)
}

// unrunWouldCount reports whether d is a copy that is not due yet, and of whose receives, none of
// which was an attempt, one or more would count as some: hops allows for one. A copy that comes back
// before SQS's longest hide has passed does so by a fault of SQS, and would be copied again and again; but
// not at a stop.
func (c *Machine) unrunWouldCount(d *Delivery, now time.Time) bool {
	h := d.History
	if h == nil || !h.Due.After(now) || d.receives <= d.hops(c.ahead) || c.memory.Recall(d.ID, now).Runs > d.made() {
		return false
	}
	return c.draining || carry.HiddenForLong(c.local(h.Arrived), now)
}

// copyable reports whether a copy of d can be sent, as far as that is known before the
// request, and complains if not.
func (c *Machine) copyable(d *Delivery, now time.Time) bool {
	limit := sqslimit.Bytes
	if c.facts.Largest > 0 {
		limit = min(limit, c.facts.Largest)
	}
	var problem, remedy string
	switch size := d.Size + historySize; {
	case d.uncopyable, now.Before(c.facts.noCopiesUntil):
		return false // the reason was logged before
	case d.Attributes >= sqslimit.Attributes:
		problem = fmt.Sprintf("it has %d message attributes, and the history needs one of the 10 that SQS permits", d.Attributes)
		remedy = "send it with 9 attributes at most"
	case size > limit:
		problem = fmt.Sprintf("with its history it may take %d bytes, and the queue permits %d", size, limit)
		remedy = "raise the queue's MaximumMessageSize, or keep large payloads elsewhere"
	default:
		return true
	}
	c.cannotCopy(d, problem, remedy)
	return false
}

// cannotCopy notes that d cannot be copied, and logs why.
func (c *Machine) cannotCopy(d *Delivery, problem, remedy string) {
	d.uncopyable = true
	c.complain("uncopyable", "a message cannot be requeued; it is hidden instead, or given up at its last permitted receive",
		"message", d.Subject(), "problem", problem, "remedy", remedy)
	c.find(plan.Finding{
		Severity: plan.Warning,
		Code:     codeUncopyable,
		Problem:  fmt.Sprintf("message %s, and perhaps others, cannot be requeued: %s.", d.ID, problem),
		Remedy:   remedy + ".",
	})
}

// requeue takes the next step: hide the original until it is due, as far as SQS permits, so
// that it does not come back earlier if the process crashes; then send the copy; and when
// SQS has confirmed the copy, delete the original.
func (c *Machine) requeue(d *Delivery, now time.Time) {
	switch {
	case d.copied:
		c.put(&c.deletes, d, now)
	case !d.lease.Hidden() && c.backBy(d, now).After(d.lease.End()):
		c.put(&c.hides, d, now)
	default:
		c.put(&c.requeues, d, now)
	}
}
