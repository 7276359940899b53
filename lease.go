package reprise

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	// maxRenewal is the longest renewal. Renewals grow with the age of a handler,
	// so that many slow handlers cost few calls, and this bounds how long their
	// messages stay hidden when the process dies.
	maxRenewal = 10 * time.Minute

	// renewAtOnce is how many heartbeat requests may be under way together.
	renewAtOnce = 8

	heartbeatTimeout = 5 * time.Second
)

// keepLeases renews the lease of every message in our hands, from its receipt
// until SQS has acknowledged its settlement, and gives up those whose lease has
// ended. It is called by the alarm that it sets.
func (c *core) keepLeases(now time.Time) {
	if c.closed {
		return
	}
	due, next := c.leasesDue(now)
	for len(due) > 0 { // the renewed are due at another time
		c.renew(due, now)
		due, next = c.leasesDue(now)
	}
	if !next.IsZero() {
		c.alarms.Set(&c.keeping, next)
	}
}

// planKeeping makes sure that leases are looked at by at.
func (c *core) planKeeping(at time.Time) { c.alarms.Sooner(&c.keeping, at) }

// leasesDue returns the messages to renew now, those that would be due within a tenth
// of a lease included, so that heartbeats share requests; and when to look again, zero
// if nothing is held. Messages whose lease has ended are given up. One whose
// heartbeat has failed is not renewed before renewFrom, even where others are: or all
// would be tried again as often as the one whose lease ends first.
func (c *core) leasesDue(now time.Time) (due []*delivery, next time.Time) {
	horizon := now.Add(c.cfg.Lease / 10)
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	var ended []*delivery
	urgent := false
	for _, d := range c.held {
		if d.state == stateRunning {
			if at := c.watchHandler(d, now); !at.IsZero() {
				sooner(at)
			}
		}
		switch {
		case c.heldTooLong(d, now):
			sooner(now.Add(c.cfg.Lease / 10))
		case passed(d.expires, now) && !(d.busy() && d.state.settles()):
			if !d.leaseState.lost() {
				ended = append(ended, d)
			}
		case d.leaseState.lost():
			// Its handler has been told; there is no lease to keep.
		case d.busy():
			sooner(now.Add(c.cfg.Lease / 10)) // look again when the call is over
			if !d.state.settles() {
				sooner(d.expires) // it must not be started from then on; if it runs, its handler is told
			}
		case d.leaseState == leaseHidden:
			sooner(d.expires) // for longer than a lease, and not to be shortened
		case !passed(d.renewFrom, now):
			sooner(d.renewFrom)
		case passed(d.renewAt, horizon):
			due = append(due, d)
			urgent = urgent || passed(d.renewAt, now)
		default:
			sooner(d.renewAt)
		}
	}
	slices.SortFunc(ended, asReceived)
	for _, d := range ended {
		c.lose(d, errLeaseEnded)
	}
	if len(ended) > 0 {
		return nil, now // with the head of a FIFO group its siblings are given back first
	}
	if !urgent { // nothing has to go out yet: wait for the first that must
		for _, d := range due {
			sooner(d.renewAt)
		}
		return nil, next
	}
	for _, d := range due {
		d.leaseState = leaseRenewing
	}
	slices.SortFunc(due, func(a, b *delivery) int { // the most urgent go out first
		return cmp.Or(a.renewAt.Compare(b.renewAt), cmp.Compare(a.msg.ID, b.msg.ID))
	})
	return due, next
}

// renew has heartbeats sent for messages that leasesDue has marked. They share requests
// only with each other, since no other message may be renewed yet.
func (c *core) renew(due []*delivery, now time.Time) {
	for _, d := range due {
		c.heartbeats.Add(now, calls.Entry[*delivery]{Cargo: d})
	}
	c.heartbeats.Flush()
}

// heartbeat renews the leases of up to ten messages in one request.
func (c *Consumer) heartbeat(batch []*delivery) {
	defer c.heartbeatEnded()
	core := c.enter()
	requested := core.now
	batch, entries := core.renewalsOf(batch, requested)
	c.leave()
	if len(batch) == 0 {
		c.tellSettled()
		return
	}

	// No retries by the SDK, which would go on after the lease: the next look at
	// the leases is soon enough, and knows better.
	ctx, cancel := context.WithTimeout(c.settleCtx, min(heartbeatTimeout, c.cfg.Lease/5))
	defer cancel()
	results := unanswered(len(batch))
	defer func() { c.beaten(batch, entries, &results, requested) }() // as in deliver
	results = c.changeVisibility(ctx, OpHeartbeat, entries, withoutRetries)
}

// heartbeatEnded makes way for the next heartbeat.
func (c *Consumer) heartbeatEnded() {
	core := c.enter()
	defer c.leave()
	core.heartbeats.Ended()
}

// renewalsOf are the entries that renew the leases of batch, and what is left of that: those
// whose lease has ended meanwhile are left out.
func (c *core) renewalsOf(batch []*delivery, now time.Time) ([]*delivery, []types.ChangeMessageVisibilityBatchRequestEntry) {
	batch = slices.DeleteFunc(batch, func(d *delivery) bool { return c.pastRenewal(d, now) })
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
	for i, d := range batch {
		d.named = d.handle
		entries[i].Id = &positions[i]
		entries[i].ReceiptHandle = d.handle
		entries[i].VisibilityTimeout = c.renewal(d, now)
	}
	return batch, entries
}

// beaten takes in the results of a heartbeat that was sent at requested.
func (c *Consumer) beaten(batch []*delivery, entries []types.ChangeMessageVisibilityBatchRequestEntry, results *[maxBatch]error, requested time.Time) {
	core := c.enter()
	now := core.now
	for i, d := range batch {
		d.renewalEnded()
		if d.state == stateGone {
			continue
		}
		length := time.Duration(entries[i].VisibilityTimeout) * time.Second
		core.renewed(d, results[i], requested, now, length)
		if d.state == stateFinished {
			core.move(d, stateSettling)
			core.settle(d, now)
		}
	}
	c.leave()
	c.tellSettled()
}

// pastRenewal says that d's lease has ended while it waited for its heartbeat: a
// visibility change would now disturb whoever holds the message.
func (c *core) pastRenewal(d *delivery, now time.Time) bool {
	if !passed(d.expires, now) && d.state != stateGone {
		return false
	}
	d.renewalEnded()
	switch {
	case d.state == stateGone:
	case d.state == stateFinished:
		c.move(d, stateSettling)
		c.settle(d, now) // a delete is still worth sending; anything else is given up
	case !d.leaseState.lost():
		c.lose(d, errLeaseEnded)
	}
	return true
}

// withoutRetries turns off the SDK's own retries for one call.
func withoutRetries(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }

// renewal is the length of d's next lease in seconds: as long as it has been
// held, at least Config.Lease, at most ten minutes, and never beyond the twelve
// hours that SQS allows since the receive.
func (c *settings) renewal(d *delivery, now time.Time) int32 {
	held := elapsed(d.requested, now)
	length := max(c.cfg.Lease, min(held, maxRenewal)).Truncate(time.Second)
	seconds, _ := retry.Visibility(now.Add(-held), now, now.Add(length))
	return seconds
}

// renewed takes in the result of d's heartbeat.
func (c *core) renewed(d *delivery, err error, requested, now time.Time, length time.Duration) {
	said, refused := errors.AsType[*refusal](err)
	switch {
	case d.superseded(): // received again meanwhile: the newer lease stands
	case err == nil:
		c.answered = now
		d.grant(requested, length)
		if length < c.cfg.Lease {
			d.renewAt = d.expires // the twelve hours end there: nothing is left to renew
		}
	case refused && said.ours:
		// SQS knows nothing of this lease any more.
		c.lose(d, err)
	default:
		// Try again soon, well before the end if there is time.
		left := d.expires.Sub(now)
		pause := min(left, max(left/4, 100*time.Millisecond))
		d.renewAt = now.Add(pause)
		d.renewFrom = now.Add(min(pause, max(pause*3/4, 100*time.Millisecond)))
		c.noteDenied("retry", err)
		c.complainLater("heartbeat", "renewing leases failed; trying again while they last", "error", err)
	}
}
