package consumer

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/internal/lease"
	"github.com/reprise-sqs/reprise/internal/shortkey"
	"github.com/reprise-sqs/reprise/plan"
)

// Poller makes one receive after the other, each for as many messages as there is room for.
// The first poller exists as long as the consumer receives. Others are added while receives
// come back full; each ends when its receive is not full.
type Poller struct {
	state    pollerState
	extra    bool         // not the first
	failures int          // of its receives, in a row
	hurry    bool         // a worker has been idle for roomLinger
	alarm    alarms.Alarm // rings at the end of roomLinger, or of the pause
}

type pollerState uint8

const (
	pollerWaiting   pollerState = iota // until there is room
	pollerReceiving                    // a receive is under way
	pollerPausing                      // because the last receive failed or was of no use
)

const (
	// roomLinger is how long a worker is idle before the consumer asks for fewer messages
	// than make a receive worth its call.
	roomLinger = 100 * time.Millisecond

	// settleAllowance: receiving pauses while more than this number of messages, plus the
	// number that may be held, are finished and their settlements not acknowledged. So
	// messages are not received faster than SQS acknowledges them.
	settleAllowance = 100

	minPollBackoff     = 200 * time.Millisecond
	maxPollBackoff     = 20 * time.Second
	lastingPollBackoff = 30 * time.Second // if an operator has to act

	// manyFailures: so many failed receives in a row, which take more than a minute, are an error.
	// Fewer are a warning: SQS fails now and then.
	manyFailures = 10

	emptyPause = time.Second // see answeredAtOnce
)

// poll begins to receive.
func (c *Machine) poll() { c.addPoller(false) }

func (c *Machine) addPoller(extra bool) *Poller {
	p := &Poller{extra: extra}
	p.alarm.Do = func(time.Time) {
		if p.hurry = p.state == pollerWaiting; !p.hurry {
			p.state = pollerWaiting
		}
	}
	c.pollers = append(c.pollers, p)
	return p
}

// pollOn lets each poller that waits for room receive, if there is room. During a drain
// pollers end instead; when no message is held either, the drain continues.
func (c *Machine) pollOn(now time.Time) {
	if c.draining {
		c.pollers = slices.DeleteFunc(c.pollers, func(p *Poller) bool { return p.state != pollerReceiving })
		if c.Empty() {
			c.want(Effect{Kind: Emptied})
		}
		return
	}
	for _, p := range c.pollers {
		if p.state != pollerWaiting {
			continue
		}
		n, idle := c.reserve(p.hurry)
		switch {
		case n > 0:
			c.ask(p, n)
		case idle && !p.hurry:
			c.alarms.Sooner(&p.alarm, now.Add(roomLinger))
		}
	}
}

// ask starts p's receive of n messages, whose places are reserved.
func (c *Machine) ask(p *Poller, n int) {
	c.alarms.Stop(&p.alarm)
	p.state, p.hurry = pollerReceiving, false
	c.want(Effect{Kind: Receive, Poller: p, N: n})
}

// reserve reserves up to ten places for a receive if that is worthwhile: if half of all
// places are free, or ten, or if hurry is set and a worker is idle. Otherwise it returns 0,
// and reports whether a worker is idle because there is no message.
func (c *Machine) reserve(hurry bool) (n int, idle bool) {
	free, worthwhile, idle := c.room()
	if free < worthwhile && (!hurry || !idle) {
		return 0, idle
	}
	n = min(MaxBatch, free)
	c.reserved += n
	return n, false
}

// room returns how many more messages could be held now (free), how many make a receive
// worth its call (worthwhile), and whether a worker is idle because there is no message.
// Messages that are held for an outage or a pause, or blocked by their FIFO group, do not
// count: a few groups with a backlog would take all of the room, and few workers.
func (c *Machine) room() (free, worthwhile int, idle bool) {
	if c.paused {
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
	free, worthwhile = c.withinBytes(min(left, ahead)-waiting, min(MaxBatch, max(1, ahead/2)))
	idle = free > 0 && waiting < open && (c.Rate == 0 || waiting == 0)
	return free, worthwhile, idle
}

// Took takes in the messages of p's receive, which was requested and answered at the given
// times; its reply had waited for late to be read, as far as its date shows. They use the n places that were reserved for it.
func (c *Machine) Took(p *Poller, n int, batch []*Delivery, asked, answered time.Time, late time.Duration) {
	now := c.now
	c.health.received(now)
	c.losses.replies.count(false)
	if !c.receiveFails.IsZero() {
		c.tell(Complaint{plan.Info, "receiving works again", []any{"since", c.receiveFails, "failures", p.failures}})
		c.receiveFails = time.Time{}
	}
	if len(batch) > 0 {
		c.budget.Received()
	}
	c.counts.Received += int64(len(batch))
	c.reserved -= n
	granted := answered.Add(-max(late, c.late(asked, answered)))
	doubtful := clocks.Elapsed(asked, answered) > c.LongPoll+c.Lease/10
	for _, d := range batch {
		d.receives = d.Receives
		d.Key = shortkey.Of(d.Key) // it may have a megabyte, and outlives its message
		d.lease = lease.Received(asked, granted, c.Lease, spread(c.Lease/10, d.ID))
		d.doubtful = doubtful
		c.admit(d, now)
	}
	if len(batch) > 0 {
		c.planKeeping(batch[0].lease.RenewAt())
	}

	p.state, p.failures = pollerWaiting, 0
	switch {
	case len(batch) == n:
		c.maybeAddPoller()
	case p.extra:
		c.endPoller(p)
	case len(batch) == 0:
		c.pause(p, max(c.broughtNothing(Failure{}), c.answeredAtOnce(asked)))
	}
}

// late returns the least time for which the reply to a receive has waited to be read. Until
// PollTimeout the SDK may have repeated the request; the time beyond it passed while the
// process, or the machine, was suspended.
func (c *Machine) late(asked, answered time.Time) time.Duration {
	return max(0, clocks.Elapsed(asked, answered)-c.PollTimeout)
}

// answeredAtOnce returns how long to wait after an empty receive that was requested at
// asked. Some servers and proxies answer a long poll without waiting: without a pause they
// would be asked thousands of times a second.
func (c *Machine) answeredAtOnce(asked time.Time) time.Duration {
	if c.now.Sub(asked) < min(emptyPause, c.LongPoll/2) {
		return emptyPause
	}
	return 0
}

// maybeAddPoller adds a poller if there is room for another receive: a receive was full, so
// the queue has more messages than the present pollers bring in.
func (c *Machine) maybeAddPoller() {
	free, _, _ := c.room()
	if all, _ := c.places(); c.draining || free < MaxBatch || len(c.pollers)*MaxBatch >= all {
		return
	}
	c.reserved += MaxBatch
	c.ask(c.addPoller(true), MaxBatch)
}

// ReceiveFailed takes in that p's receive of n messages has failed: it is reported, and p
// waits before its next.
func (c *Machine) ReceiveFailed(p *Poller, n int, f Failure) {
	c.reserved -= n
	p.state = pollerWaiting
	if !f.is(Rejected) && !c.draining {
		c.losses.replies.count(true)
	}
	switch {
	case p.extra:
		c.endPoller(p)
		return
	case c.draining:
		return // most likely the stop has cancelled it
	}
	p.failures++
	wait := min(maxPollBackoff, minPollBackoff<<min(p.failures-1, 10))
	problem := fmt.Sprintf("receiving fails: %v", f.Err)
	if pause := c.broughtNothing(f); pause > 0 {
		c.pause(p, pause)
		return
	}
	if f.is(Lasting) {
		wait = lastingPollBackoff
		problem = fmt.Sprintf("receiving fails, probably until an operator fixes the cause: %v", f.Err)
	}
	c.health.failing(problem)
	c.noteDenied("receive", &f)
	if c.MayComplain("receive") {
		severity := plan.Warning
		if f.is(Lasting) || p.failures >= manyFailures {
			severity = plan.Error
		}
		c.tell(Complaint{severity, problem, []any{"failures", p.failures}})
		if c.receiveFails.IsZero() {
			c.receiveFails = c.now
		}
	}
	c.pause(p, wait)
}

// pause keeps p from receiving for about as long as wait: half of it fixed, half random, so
// that consumers that failed together do not receive together again.
func (c *Machine) pause(p *Poller, wait time.Duration) {
	if wait == 0 {
		return
	}
	p.state = pollerPausing
	c.alarms.Set(&p.alarm, c.now.Add(wait/2+time.Duration(c.chance.Int64N(int64(wait/2)))))
}

// endPoller ends p, which is not the first.
func (c *Machine) endPoller(p *Poller) {
	c.pollers = slices.DeleteFunc(c.pollers, func(other *Poller) bool { return other == p })
}
