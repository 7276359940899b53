package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// cause is why a message is requeued, or that it is not.
type cause uint8

const (
	byVisibility       cause = iota // it is hidden, not requeued
	becauseAsked                    // Settings.Via says so
	becauseAlone                    // it must run alone, or had to
	becauseLastReceive              // the next receive would move it to the dead-letter queue
	becauseReleased                 // its receive was no attempt, and must not be counted as one
	becauseRetention                // it would expire while hidden
	becauseInFlight                 // too many messages of the queue are hidden
	becauseTooLong                  // SQS cannot hide it for so long, and other consumers must know the due time
	becauseUnread                   // it might expire while hidden: the queue's retention is not known
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
	if v.requeue != byVisibility && c.copyable(d, now) {
		return v
	}
	// Hidden only until it can still be copied, so that it cannot expire.
	if latest := c.copiedBy(d); v.requeue == byVisibility && c.takesCopies() && !latest.IsZero() && v.Due.After(latest) && c.copyable(d, now) {
		v.carriedBy = latest
		return v
	}
	v.requeue = byVisibility
	return c.withoutCopy(d, v, now)
}

// outdated reports whether d, which would be hidden, has been received again since its verdict, and
// that was the last receive that the queue permits; or whether the time has passed until which it
// should have been hidden, because SQS has refused that.
func (c *Machine) outdated(d *Delivery, now time.Time) bool {
	v, limit := &d.verdict, c.facts.Plan.MaxReceives
	if !v.comesAgain() || v.requeue != byVisibility {
		return false
	}
	return limit > 0 && d.receives >= limit && d.receives != d.Receives || !v.carriedBy.IsZero() && !v.carriedBy.After(now)
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
func (c *Machine) via(d *Delivery, v Verdict, now time.Time) cause {
	limit := c.facts.Plan.MaxReceives
	parked := v.Outcome == OutcomePark
	switch {
	case !c.takesCopies():
		return byVisibility
	case v.alone, d.marked() && !parked:
		return becauseAlone
	case limit > 0 && d.receives >= limit:
		return becauseLastReceive
	case v.Outcome == OutcomeRetry && (c.Via == plan.ViaRequeue || c.hasRetryLane()):
		return becauseAsked
	case v.Outcome == OutcomeRelease && (d.receives > 1 || d.History != nil || v.unavailable || v.Reason == retry.ReasonUnavailable):
		// The first release costs one receive, which counts as one attempt at most.
		// Further ones would add up until the message seems exhausted; an outage makes
		// many.
		return becauseReleased
	}
	if c.budget.Spills(v.Due.Sub(now), now) {
		return becauseInFlight
	}
	if c.beyondUnread(v.Due, now) {
		return becauseUnread
	}
	seconds, short := retry.Visibility(now.Add(-d.lease.Age(now)), now, v.Due)
	visible := now.Add(time.Duration(seconds) * time.Second)
	switch latest := c.copiedBy(d); {
	case !latest.IsZero() && visible.After(latest):
		if d.knowsDue(v.Due) && latest.Sub(now) > c.longestCopy()/10 && v.Due.Sub(now) > c.longestCopy() {
			return byVisibility // a copy could not wait for so long either: hide this one first, for as long as SQS permits
		}
		return becauseRetention
	case parked && !short && c.unrunWouldCount(d, now):
		return becauseReleased // a longer wait is hidden first: the last hide of it matters
	case short && v.Due.Sub(visible) > retry.AllowedShortfall(v.Due.Sub(now)) && !d.knowsDue(v.Due):
		return becauseTooLong
	}
	return byVisibility
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
	return c.draining || now.Sub(c.local(h.Arrived)) > retry.MaxVisibility-time.Hour
}

// copiedBy returns until when d may be hidden if a copy will replace it: a consumer must then
// have the time to receive and copy it. Zero where SQS did not say when d was sent.
func (c *Machine) copiedBy(d *Delivery) time.Time {
	sent := d.enqueued()
	if sent.IsZero() {
		return sent
	}
	return c.local(sent).Add(c.longestCopy())
}

// longestCopy returns how long a copy can wait until the next one must be sent.
func (c *Machine) longestCopy() time.Duration { return plan.LongestCopy(c.facts.retention()) }

// knowsDue reports whether d's history carries the due time, for every consumer to read.
func (d *Delivery) knowsDue(due time.Time) bool {
	return d.History != nil && !d.History.Due.Before(due)
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

// delayFor returns the delay in seconds of the copy that v sends: until it is due, if SQS
// permits so long a delay. A copy that must wait longer is delayed by a second, so that a
// consumer receives it and hides it: only hidden messages can be woken. Some copies
// get the longest delay instead: those whose wait is just over twelve hours, so that hiding
// them once covers the rest, and those sent during a stop, since this consumer might receive
// them itself; and all copies while the queue's retention is not known, because no message may
// be hidden for long then. The delay is at least a second: the SDK leaves out a zero, and then SQS uses
// the queue's own delay. Short delays are rounded down: the consumer that receives the copy
// holds it for the rest of its wait.
func (c *Machine) delayFor(v Verdict, now time.Time) int32 {
	wait := max(v.Due.Sub(now), time.Second)
	longest := min(plan.MaxDelay, c.longestCopy()) // or the queue would drop the copy before a consumer receives it
	if c.facts.unread {
		longest = min(longest, unreadWait)
	}
	hideInstead := (wait > longest || v.unavailable) && v.requeue != becauseUnread && v.requeue != becauseInFlight && c.facts.Plan.MaxReceives != 1
	justMisses := wait > retry.MaxVisibility-time.Minute && wait < retry.MaxVisibility+plan.MaxDelay
	if hideInstead && !justMisses && !c.draining {
		return 1
	}
	if wait < exactDelay {
		return int32(wait / time.Second)
	}
	return int32((min(wait, longest) + time.Second - 1) / time.Second)
}

// exactDelay: below this wait, rounding up to SQS's whole seconds would distort the jitter.
const exactDelay = time.Minute
