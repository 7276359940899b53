package consumer

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/internal/lease"
)

// poller makes one receive after the other, each for as many messages as there is room
// for. The first lives as long as the consumer. While the queue has more than the pollers
// bring in there are others, each until its receive is not full.
type Poller struct {
	state    pollerState
	extra    bool         // not the first
	failures int          // of its receives, in a row
	hurry    bool         // a worker has waited for a message for roomLinger
	alarm    alarms.Alarm // ends roomLinger, or its pause
}

type pollerState uint8

const (
	pollerWaiting   pollerState = iota // until there is room
	pollerReceiving                    // a receive is under way
	pollerPausing                      // since the last receive failed, or was of no use
)

const (
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

// pollOn has each poller that waits for room receive, if there is room. During a drain
// pollers end instead; when nothing is held either, the drain goes on.
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

// ask has p receive n messages, whose places are reserved.
func (c *Machine) ask(p *Poller, n int) {
	c.alarms.Stop(&p.alarm)
	p.state, p.hurry = pollerReceiving, false
	c.want(Effect{Kind: Receive, Poller: p, N: n})
}

// reserve takes up to ten places for a receive if that is worthwhile: half of all
// places are free, or ten, or somebody is in a hurry. Otherwise it reports whether a
// worker is idle for want of a message.
func (c *Machine) reserve(hurry bool) (n int, idle bool) {
	free, worthwhile, idle := c.room()
	if free < worthwhile && (!hurry || !idle) {
		return 0, idle
	}
	n = min(MaxBatch, free)
	c.reserved += n
	return n, false
}

// room is how many messages could be taken in now, how many make a receive worth its
// call, and whether a worker is idle for want of one. What is held for an outage or a
// pause, or blocked by its FIFO group, takes no room: a few groups with a backlog would
// take all of it, and few workers.
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

// Took takes in the messages of p's receive, which was asked for and answered at the given
// times, in place of the n places reserved for it.
func (c *Machine) Took(p *Poller, n int, batch []*Delivery, asked, answered time.Time) {
	now := c.now
	c.health.received(now)
	if len(batch) > 0 {
		c.budget.Received()
	}
	c.counts.Received += int64(len(batch))
	c.reserved -= n
	granted := answered.Add(-c.late(asked, answered))
	for _, d := range batch {
		d.receives = d.Receives
		d.lease = lease.Received(asked, granted, c.Lease, spread(c.Lease/10, d.ID))
		c.admit(d, now)
		if d.state.waits() && !d.duplicate && d.lease.Over(now) {
			c.lose(d, errLeaseEnded) // this process was stopped for a while: another may have it by now
		}
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

// late is for how long at least the reply to a receive has waited to be read: until its
// time limit the SDK may have repeated the request. The rest passed while the process, or
// the machine, was stopped.
func (c *Machine) late(asked, answered time.Time) time.Duration {
	return max(0, clocks.Elapsed(asked, answered)-c.PollTimeout)
}

// answeredAtOnce is how long to wait after an empty receive that was asked for at
// asked: whoever answers a long poll without waiting, as some servers and proxies
// do, would be asked thousands of times a second.
func (c *Machine) answeredAtOnce(asked time.Time) time.Duration {
	if c.now.Sub(asked) < min(emptyPause, c.LongPoll/2) {
		return emptyPause
	}
	return 0
}

// maybeAddPoller adds a poller if there is room for another receive: the queue has more
// than the pollers of now bring in.
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
	switch {
	case p.extra:
		c.endPoller(p)
		return
	case c.draining:
		return // it was cancelled, mostly
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
		problem = fmt.Sprintf("receiving fails and will not mend by itself: %v", f.Err)
	}
	c.health.failing(problem)
	c.noteDenied("receive", &f)
	c.complain("receive", problem, "failures", p.failures)
	c.pause(p, wait)
}

// pause keeps p from receiving for about as long as wait; half fixed, half random:
// consumers that failed together come back apart.
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
