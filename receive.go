package reprise

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/reprise-sqs/reprise/internal/replies"
)

const (
	maxBatch = 10 // entries in any batch request of SQS

	// pollGrace is how much longer than its long poll a receive may take: its connection
	// has died silently then.
	pollGrace = 20 * time.Second

	// roomLinger is how long an idle worker waits for more room before the
	// consumer asks for less than a worthwhile number of messages.
	roomLinger = 100 * time.Millisecond

	// settleAllowance is how many finished but unacknowledged messages may exist
	// beside those waiting and running before receiving pauses: SQS cannot be
	// given work faster than it acknowledges it.
	settleAllowance = 100

	minPollBackoff     = 200 * time.Millisecond
	maxPollBackoff     = 20 * time.Second
	lastingPollBackoff = 30 * time.Second // for what somebody has to mend

	emptyPause = time.Second // see answeredAtOnce
)

var allAttributes = []string{"All"}

// The system attributes that decide about a message, or that a copy of it must
// carry on.
var systemAttributes = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameApproximateReceiveCount,
	types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
	types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameMessageGroupId,
	types.MessageSystemAttributeNameMessageDeduplicationId,
	types.MessageSystemAttributeNameSequenceNumber,
	types.MessageSystemAttributeNameAWSTraceHeader,
}

// pollUntilStopped is the first poller: it lives as long as the consumer.
func (c *Consumer) pollUntilStopped() {
	core := c.lock()
	core.pollers++
	c.mu.Unlock()
	defer c.pollerEnded()
	c.poll(c.awaitRoom(), false)
}

// poll receives n messages, whose places are reserved, and goes on while there is
// room. An extra poller ends with the first receive that is not full.
func (c *Consumer) poll(n int, extra bool) {
	var failures int
	for ; n > 0; n = c.awaitRoom() {
		asked := time.Now()
		got, err := c.receive(n)
		if err != nil {
			failures++
			if extra || !c.pauseAfter(err, failures) {
				return
			}
			continue
		}
		failures = 0
		switch {
		case got == n:
			c.maybeAddPoller()
		case extra, got == 0 && !c.pause(max(c.broughtNothing(nil), c.answeredAtOnce(asked))):
			return
		}
	}
}

// answeredAtOnce is how long to wait after an empty receive that was asked for at
// asked: whoever answers a long poll without waiting, as some servers and proxies
// do, would be asked thousands of times a second.
func (c *settings) answeredAtOnce(asked time.Time) time.Duration {
	if time.Since(asked) < min(emptyPause, c.cfg.LongPoll/2) {
		return emptyPause
	}
	return 0
}

// awaitRoom waits until a receive is worthwhile, and reserves places for it.
// It returns 0 when the consumer is stopping.
func (c *Consumer) awaitRoom() int {
	var urgent *time.Timer // fires when an idle worker has waited long enough
	defer func() {
		if urgent != nil {
			urgent.Stop()
		}
	}()
	hurry := false
	for {
		core := c.lock()
		n, idle := core.reserve(hurry)
		stopping := core.draining
		c.mu.Unlock()
		switch {
		case stopping:
			c.giveBack(n)
			return 0
		case n > 0:
			return n
		}
		var fired <-chan time.Time
		if idle {
			if urgent == nil {
				urgent = time.NewTimer(roomLinger)
			}
			fired = urgent.C
		}
		select {
		case <-c.freed:
		case <-fired:
			hurry = true
		case <-c.stopping:
		}
	}
}

// reserve takes up to ten places for a receive if that is worthwhile: half of all
// places are free, or ten, or somebody is in a hurry. Otherwise it says whether a
// worker is idle for want of a message.
func (c *core) reserve(hurry bool) (n int, idle bool) {
	free, worthwhile, idle := c.room()
	if free < worthwhile && (!hurry || !idle) {
		return 0, idle
	}
	n = min(maxBatch, free)
	c.reserved += n
	return n, false
}

// room is how many messages could be taken in now, how many make a receive worth its
// call, and whether a worker is idle for want of one. What is held for an outage or a
// pause, or blocked by its FIFO group, takes no room: a few groups with a backlog would
// take all of it, and few workers.
func (c *core) room() (free, worthwhile int, idle bool) {
	if c.dials.paused {
		return 0, 1, false
	}
	if shut, canary := c.shut(); shut {
		return canary, 1, false
	}
	all, ahead := c.places()
	if c.settling-min(c.stuck, maxStuck)+c.after.left() >= settleAllowance+all {
		return 0, 1, false
	}
	left, open := all-c.running, c.capacity()-c.running
	if c.pool != nil {
		left, open = c.pool.places(c)
		ahead = min(ahead, left)
	}
	waiting := c.waiting - c.gates.shelved - c.groups.Counts().Blocked + c.reserved
	free, worthwhile = c.withinBytes(min(left, ahead)-waiting, min(maxBatch, max(1, ahead/2)))
	idle = free > 0 && waiting < open && (c.cfg.Rate == 0 || waiting == 0)
	return free, worthwhile, idle
}

// giveBack frees n reserved places.
func (c *Consumer) giveBack(n int) {
	if n == 0 {
		return
	}
	core := c.enter()
	core.reserved -= n
	c.leave()
}

// notify puts a token into a channel of capacity one, unless one is there.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// maybeAddPoller starts one more poller if there is room for another receive:
// the queue has more than the pollers of now bring in.
func (c *Consumer) maybeAddPoller() {
	core := c.enter()
	defer c.leave()
	free, _, _ := core.room()
	if all, _ := core.places(); core.draining || free < maxBatch || core.pollers*maxBatch >= all {
		return
	}
	core.pollers++
	core.reserved += maxBatch
	core.start("extra poller", func() {
		defer c.pollerEnded()
		c.poll(maxBatch, true)
	})
}

// pollerEnded takes a poller off the count.
func (c *Consumer) pollerEnded() {
	core := c.enter()
	core.pollers--
	c.leave()
}

// receive asks for n messages, whose places are reserved, and takes them in.
func (c *Consumer) receive(n int) (got int, err error) {
	taken := false
	defer func() {
		if !taken { // even if the user's code has ended this goroutine
			c.giveBack(n)
		}
	}()
	ctx := c.pollLimit.context(c.pollCtx)
	requested := time.Now()
	var out *sqs.ReceiveMessageOutput
	var cut error // by a stop, at no cost to anybody: no failure of the request
	err = c.client.call(ctx, OpReceive, n, func() (int, error) {
		var err error
		out, err = c.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:                    &c.queue.url,
			MaxNumberOfMessages:         int32(n),
			WaitTimeSeconds:             int32(c.cfg.LongPoll / time.Second),
			VisibilityTimeout:           int32(c.cfg.Lease / time.Second),
			MessageAttributeNames:       allAttributes,
			MessageSystemAttributeNames: systemAttributes,
		}, replies.Read)
		if err == nil && out == nil {
			err = errors.New("the SQS client returned neither a reply nor an error")
		}
		if err != nil && c.pollCtx.Err() != nil && c.returnsCancelled.Load() {
			cut = err
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return len(out.Messages), nil
	})
	if err = cmp.Or(err, cut); err != nil {
		return 0, err
	}
	c.clock.observe(out.ResultMetadata)
	c.observeEndpoint(out.ResultMetadata)
	now := time.Now()
	batch := c.unpack(out.Messages, requested, now)
	taken = true
	c.take(batch, n, now)
	return len(batch), nil
}

// observeEndpoint learns from a reply whether a receive may be cancelled.
func (c *Consumer) observeEndpoint(reply middleware.Metadata) {
	if returns := replies.ReturnsCancelled(reply); returns != c.returnsCancelled.Load() {
		c.returnsCancelled.Store(returns)
	}
}

// unpack makes deliveries of the messages of a receive that began at requested.
func (c *Consumer) unpack(messages []types.Message, requested, now time.Time) []delivery {
	batch := make([]delivery, len(messages)) // one allocation for all ten
	for i := range batch {
		d := &batch[i]
		d.fill(&messages[i], now)
		c.recallHistory(d)
		d.requested = requested
		d.grant(now, c.cfg.Lease)
	}
	c.countFits(batch, now)
	c.nameKeys(batch)
	return batch
}

// take admits the messages of a receive, in place of the n places reserved for it.
func (c *Consumer) take(batch []delivery, n int, now time.Time) {
	core := c.enter()
	core.health.received(now)
	if len(batch) > 0 {
		core.budget.Received()
	}
	core.counts.Received += int64(len(batch))
	core.reserved -= n
	for i := range batch {
		core.admit(&batch[i], now)
	}
	if len(batch) > 0 {
		core.planKeeping(batch[0].renewAt)
	}
	c.leave()

	if f := c.cfg.Observer.Received; f != nil {
		for i := range batch {
			d := &batch[i]
			c.tell(func() { f(c.runCtx, Received{Message: &d.received, Duplicate: d.duplicate}) })
		}
	}
}

// countFits fills in how many attempts each message can have had. On FIFO queues
// failing neighbours burn receives too, by the dozen, so that there only runs seen
// here count. The backoff may be the user's code: c.mu is not held.
func (c *Consumer) countFits(batch []delivery, now time.Time) {
	core := c.lock()
	policy := core.policy
	c.mu.Unlock()
	for i := range batch {
		if d := &batch[i]; d.receives > 1 && !c.queue.fifo {
			d.fit = policy.Attempts(d.seed(), d.made(), d.receives-c.hops(d), now.Sub(c.countsFrom(d)))
		}
	}
}

// pauseAfter reports a failed receive and waits before the next. It returns
// false when the consumer is stopping.
func (c *Consumer) pauseAfter(err error, failures int) bool {
	if c.pollCtx.Err() != nil {
		return false
	}
	wait := min(maxPollBackoff, minPollBackoff<<min(failures-1, 10))
	problem := fmt.Sprintf("receiving fails: %v", err)
	if pause := c.broughtNothing(err); pause > 0 {
		return c.pause(pause)
	}
	if lasting(err) {
		wait = lastingPollBackoff
		problem = fmt.Sprintf("receiving fails and will not mend by itself: %v", err)
	}
	core := c.lock()
	core.health.failing(problem)
	core.noteDenied("receive", err)
	c.mu.Unlock()
	c.complain("receive", problem, "failures", failures)

	return c.pause(wait)
}

// pause waits for about as long as wait; half fixed, half random: consumers that
// failed together come back apart. It returns false when the consumer is stopping.
func (c *Consumer) pause(wait time.Duration) bool {
	if wait == 0 {
		return true
	}
	core := c.lock()
	wait = wait/2 + time.Duration(core.chance.Int64N(int64(wait/2)))
	c.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stopping:
		return false
	}
}
