package reprise

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/retry"
)

var (
	errUnanswered = errors.New("the reply did not mention this entry")
	errExhausted  = errors.New("its attempts or its age were used up before this receive")
	errLeaseEnded = errors.New("the lease ended before SQS acknowledged the settlement")
)

const (
	minSettleBackoff = 100 * time.Millisecond
	maxSettleBackoff = 5 * time.Second

	// unsettledMany refusals of one settlement in a row show in the health.
	unsettledMany = 5

	// settleTimeout ends a settlement whose connection has died silently.
	settleTimeout = 30 * time.Second
)

// settle sends d's verdict on its way. A message has one conversation with SQS at a
// time: while a heartbeat is under way the settlement waits for its end, or the
// heartbeat could land after it and turn hours of backoff into the length of a lease.
func (c *core) settle(d *delivery, now time.Time) {
	if c.closed {
		return // the stop budget has ended: the report names it
	}
	if d.leaseState.renewing() {
		c.move(d, stateFinished)
		return
	}
	c.reconsider(d, now)
	c.watchGivingUp(d, now)
	switch d.verdict.outcome {
	case OutcomeDelete:
		c.put(&c.deletes, d, now)
	case OutcomeDeadLetter:
		c.giveUp(d, now)
	default:
		if d.verdict.requeue != byVisibility {
			c.requeue(d, now)
			return
		}
		c.put(&c.hides, d, now)
	}
}

// sendDeletes deletes up to ten messages.
func (c *Consumer) sendDeletes(batch []*delivery) [maxBatch]error {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
	c.lock()
	for i, d := range batch {
		d.named = d.handle
		entries[i].Id = &positions[i]
		entries[i].ReceiptHandle = d.handle
	}
	c.unlock()

	ctx := c.settleLimit.context(c.settleCtx)
	var out *sqs.DeleteMessageBatchOutput
	err := c.client.call(ctx, OpDelete, len(batch), func() (int, error) {
		var err error
		out, err = c.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &c.queue.url, Entries: entries})
		if err != nil {
			return 0, err
		}
		return len(out.Failed), nil
	})
	if err != nil {
		out = &sqs.DeleteMessageBatchOutput{}
	}
	return sortReply(len(batch), len(out.Successful), func(i int) *string { return out.Successful[i].Id }, out.Failed, err)
}

// sendHides changes the visibility of up to ten messages. The seconds are
// computed now, not when the handler ended: the wait in between is part of the
// backoff.
func (c *Consumer) sendHides(batch []*delivery) [maxBatch]error {
	core := c.lock()
	entries := core.hidesOf(batch, core.now)
	c.unlock()
	return c.changeVisibility(c.settleLimit.context(c.settleCtx), OpVisibility, entries)
}

// hidesOf are the entries that hide batch.
func (c *core) hidesOf(batch []*delivery, now time.Time) []types.ChangeMessageVisibilityBatchRequestEntry {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
	for i, d := range batch {
		d.named = d.handle
		entries[i].Id = &positions[i]
		entries[i].ReceiptHandle = d.handle
		entries[i].VisibilityTimeout = c.hideFor(d, now)
		d.hiddenUntil = now.Add(time.Duration(entries[i].VisibilityTimeout) * time.Second)
	}
	return entries
}

// dropExpired takes out of batch the messages whose lease has ended: a visibility
// change would now disturb whoever holds them.
func (c *core) dropExpired(batch []*delivery, now time.Time) []*delivery {
	held := batch[:0]
	for _, d := range batch {
		if passed(d.expires, now) {
			c.move(d, stateSettling)
			c.lose(d, errLeaseEnded)
			continue
		}
		held = append(held, d)
	}
	return held
}

// hideFor is the visibility timeout that makes d due when its verdict says, as
// far as SQS's 12 hours reach: when they do not, the message is parked, hidden
// again when it comes early.
func (c *core) hideFor(d *delivery, now time.Time) int32 {
	due := d.verdict.due
	if due.IsZero() {
		return 0 // released at once, which only a drain asks for
	}
	requested := now.Add(-elapsed(d.requested, now))
	seconds, short := retry.Visibility(requested, now, due)
	if short && d.verdict.requeue == byVisibility {
		visible := now.Add(time.Duration(seconds) * time.Second)
		missing := due.Sub(visible)
		if missing <= retry.AllowedShortfall(due.Sub(now)) {
			// Close enough: the wait is cut short rather than parked for so little.
			d.verdict.due = visible
			c.memory.Note(d.msg.ID, now).Due = visible
		}
	}
	return seconds
}

// changeVisibility sends a batch of visibility changes and sorts the reply.
func (c *Consumer) changeVisibility(ctx context.Context, op Operation, entries []types.ChangeMessageVisibilityBatchRequestEntry, opts ...func(*sqs.Options)) [maxBatch]error {
	var out *sqs.ChangeMessageVisibilityBatchOutput
	err := c.client.call(ctx, op, len(entries), func() (int, error) {
		var err error
		out, err = c.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &c.queue.url, Entries: entries}, opts...)
		if err != nil {
			return 0, err
		}
		return len(out.Failed), nil
	})
	if err != nil {
		out = &sqs.ChangeMessageVisibilityBatchOutput{}
	}
	return sortReply(len(entries), len(out.Successful), func(i int) *string { return out.Successful[i].Id }, out.Failed, err)
}

// acknowledge takes in the results of a batch that outbox o has sent: what SQS
// confirmed is no longer ours, what it refused is sent again later.
func (c *Consumer) acknowledge(o *outbox, batch []*delivery, results *[maxBatch]error) {
	core := c.enter()
	now := core.now
	if slices.Contains(results[:len(batch)], nil) {
		core.answered = now
	}
	for i, d := range batch {
		core.move(d, stateSettling)
		err := results[i]
		switch {
		case err == nil && d.superseded() && (o == &core.deletes || o == &core.hides):
			core.settle(d, now) // what was confirmed may have been said of the older handle
		case err == nil:
			o.taken++
			core.confirm(o, d, now)
		default:
			core.refused(o, d, err, now)
		}
	}
	c.leave()
	c.tellSettled()
}

// confirm is called when SQS has carried out what o asked for d.
func (c *core) confirm(o *outbox, d *delivery, now time.Time) {
	switch {
	case o == &c.copies, o == &c.requeues:
		// There is another: now, and only now, delete the original. Should it come
		// again it is only deleted.
		d.copied = true
		note := c.memory.Note(d.msg.ID, now)
		note.Done, note.Copied, note.Due = true, true, time.Time{}
		if d.leaseState == leaseHidden { // for as long as the copy waits: not beside it
			d.leaseState = leaseKept
			d.renewAt = d.expires.Add(-c.cfg.Lease / 2)
			c.planKeeping(d.renewAt)
		}
		c.put(&c.deletes, d, now)
		return
	case o == &c.hides && d.verdict.requeue != byVisibility:
		d.leaseState = leaseHidden
		d.grant(now, d.hiddenUntil.Sub(now))
		c.requeue(d, now)
		return
	}
	c.health.settled(now)
	if d.verdict.outcome != OutcomeKeep {
		c.health.mended()
	}
	switch d.verdict.outcome {
	case OutcomeDelete:
		c.counts.Deleted++
		switch {
		case d.leaseState.lost() || passed(d.expires, now):
			// SQS need not have obeyed: others may have had the message meanwhile.
			c.memory.Note(d.msg.ID, now).Done = true
		case d.ran: // otherwise the note that it is done stays: see below
			c.memory.Forget(d.msg.ID)
		}
		if !d.copied { // or its work is yet to be done
			c.deleted(d)
		}
	case OutcomeDeadLetter:
		c.counts.DeadLettered++
		c.logDeadLetter(d, now)
		// The note that it is done stays: a receive under way may bring it again.
	case OutcomeRetry:
		c.counts.Retried++
		c.park(d, now)
	case OutcomeRelease:
		c.counts.Released++
		c.park(d, now)
	case OutcomePark:
		c.counts.Parked++
		c.park(d, now)
	case OutcomeKeep:
		c.counts.Kept++
	}
	c.announceExpiry(d, now)
	if d.verdict.comesAgain() {
		c.watchInFlight(now)
	}
	if d.verdict.requeue != byVisibility {
		c.counts.Requeued++
	}
	if d.verdict.requeue == becauseInFlight {
		c.budget.Spilled()
	}
	c.release(d, now)
}

// refused decides what to do about a settlement that SQS did not carry out.
func (c *core) refused(o *outbox, d *delivery, err error, now time.Time) {
	if c.closed {
		return // cut by the end of the stop budget: the report names it
	}
	said, entry := errors.AsType[*refusal](err)
	c.noteRefusal(o, d, err, now)
	switch o {
	case &c.copies:
		c.copyRefused(d, err, entry && said.ours, now)
		return
	case &c.requeues:
		c.requeueRefused(d, err, entry && said.ours, now)
		return
	}
	if d.verdict.outcome == OutcomeDelete || d.copied {
		// Should it come again, it is deleted without being run.
		c.memory.Note(d.msg.ID, now).Done = true
	}
	back := d.superseded() && passed(d.hiddenUntil, now) // to us: the newer lease stands
	if o == &c.hides && !entry && ambiguous(err) && d.hiddenUntil.Before(d.expires) && !back {
		// It may be hidden until then, and somebody else's from then on. Of the slack half
		// is enough: only a request has to travel.
		d.expires = d.hiddenUntil.Add(-leaseSlack(c.cfg.Lease) / 2)
	}
	if d.superseded() && entry && said.ours {
		c.settle(d, now) // the older handle was refused, the newer one is good
		return
	}
	if entry && said.ours || passed(d.expires, now) {
		// The handle is no longer good, or not certain to be: on a standard queue
		// SQS would obey it and disturb whoever holds the message now.
		c.lose(d, err)
		return
	}
	if o == &c.deletes {
		c.noteDenied("delete", err)
	} else {
		c.noteDenied("retry", err)
	}
	if d.refusals > 1 || !entry {
		c.complainLater("settle", "settling failed; trying again while the lease lasts", "action", o.name, "error", err)
	}
	c.settleLater(d, now)
}

// settleLater tries d's settlement again after a backoff. While it was under way the
// lease could not be renewed: if that is due, it is done in between.
func (c *core) settleLater(d *delivery, now time.Time) {
	if passed(d.renewAt, now) {
		c.planKeeping(now)
	}
	wait := min(maxSettleBackoff, minSettleBackoff<<min(d.refusals-1, 10))
	wait -= spread(wait/2, d.msg.ID)
	c.alarms.After(now.Add(wait), func(now time.Time) {
		if d.state == stateSettling && !c.closed {
			c.settle(d, now)
		}
	})
}

// lose gives up a message that another consumer may hold by now.
func (c *core) lose(d *delivery, err error) {
	if d.state == stateRunning {
		if !d.leaseState.lost() {
			d.loseLease()
			d.run.ctx.end(ErrLeaseLost)
		}
		return // until its handler returns
	}
	now := c.now
	if d.state.settles() && (d.verdict.outcome == OutcomeDelete || d.copied) {
		// Should it come again, it is deleted without being run.
		c.memory.Note(d.msg.ID, now).Done = true
	}
	d.verdict = verdict{outcome: OutcomeLost, err: err}
	c.release(d, now)
}

// release lets go of d: it is settled, or lost.
func (c *core) release(d *delivery, now time.Time) {
	if d.verdict.outcome == OutcomeLost {
		c.counts.Lost++
		c.rememberLost(d, now)
	}
	if d.state.waits() {
		c.unready(d, now)
	}
	c.move(d, stateGone)
	delete(c.held, d.msg.ID)
	c.weighOut(d)
	if c.cfg.Observer.Settled != nil {
		c.untold = append(c.untold, Settled{Message: d.msg, Outcome: d.verdict.outcome, Requeued: d.verdict.requeue != byVisibility, Reason: d.verdict.reason, Due: d.verdict.due, Requests: d.requests, Err: d.lostTo()})
	}
	if c.queue.fifo {
		c.follow.gone = append(c.follow.gone, d)
	}
}
