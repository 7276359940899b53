package reprise

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// waker makes messages that wait out a backoff visible before its end. Part of the core.
type waker struct {
	ids    []string // still to be woken
	active bool     // a request is under way, or the next is planned
}

const (
	// wakeMargin is how far from its end a wait must be to be cut short. A standard
	// queue obeys old handles: a request that lands after the message has become
	// visible by itself could give it to two consumers.
	wakeMargin  = 15 * time.Second
	wakeTimeout = 5 * time.Second // far less than wakeMargin
	wakeAgain   = time.Second     // after a throttled request

	// Messages per second: unless experience or Config.Rate say otherwise; at most.
	wakeRate    = 10
	maxWakeRate = 100
)

// Wake makes messages visible that this process has hidden to wait out a backoff,
// without regard to what is left of it: all of them, or those of the given keys
// (see Config.Outage.Key). It is for an operator who knows that what failed is
// mended. Wake returns how many messages it will wake, at the rate at which the
// consumer can work them off. They keep the count of their attempts. Where a
// breaker is open it makes a probe at once: the end of an outage by itself wakes
// what waits for it, but for waits that a handler has set by [RetryAfter].
//
// Messages of FIFO queues are not woken, since their groups' later messages wait
// with them, nor are those that are due within 15 s, those that are just being
// hidden or copied, those that another process has hidden, or those beyond the
// 50,000 that this one remembers: they come when their time has passed.
func (c *Consumer) Wake(keys ...string) int {
	inRetryLane := 0 // where retries wait, if there is one
	if c.retryLane != nil {
		inRetryLane = c.retryLane.Wake(keys...)
	}
	core := c.enter()
	defer c.leave()
	named := func(key string) bool { return len(keys) == 0 || slices.Contains(keys, key) }
	for _, g := range core.gates.byKey {
		if g.state() == BreakerOpen && named(g.key) {
			g.breaker.ProbeNow()
			core.alarms.Set(&g.look, core.now)
		}
	}
	return inRetryLane + core.wake(func(r *memory.Note) bool {
		g := core.gates.byKey[r.Key]
		return named(r.Key) && (g == nil || g.state() == BreakerClosed || g.state() == BreakerRamping)
	}, core.now)
}

// wake wakes the parked messages that match.
func (c *core) wake(match func(*memory.Note) bool, now time.Time) int {
	if c.draining || c.closed {
		return 0
	}
	before := len(c.waker.ids)
	for r := range c.memory.All() {
		if wakeable(r, now) && !r.Waking && match(r) {
			r.Waking = true
			r.Due = time.Time{} // however soon it comes now, it is not early
			c.waker.ids = append(c.waker.ids, r.ID)
		}
	}
	n := len(c.waker.ids) - before
	if n > 0 && !c.waker.active {
		c.wakeNext(now)
	}
	return n
}

// stopWaking leaves the messages of a key to become visible by themselves: its outage
// is not over after all.
func (c *core) stopWaking(key string) {
	c.waker.ids = slices.DeleteFunc(c.waker.ids, func(id string) bool {
		r := c.memory.Recall(id, c.now)
		if r.Handle == nil || r.Key != key {
			return false
		}
		r.Waking = false
		return true
	})
}

// park remembers what it takes to wake d, which SQS has just hidden.
func (c *core) park(d *delivery, now time.Time) {
	if c.queue.fifo || c.draining || d.verdict.requeue != byVisibility || d.hiddenUntil.Sub(now) < wakeMargin {
		return
	}
	r := c.memory.Note(d.msg.ID, now)
	r.Handle, r.HiddenUntil, r.Waking = d.handle, d.hiddenUntil, false
	r.Key, r.Unavailable = d.key, d.verdict.unavailable
	r.Asked = d.verdict.reason == retry.ReasonRetryAfter
}

// wakeable reports whether r's message is hidden and can be made visible.
func wakeable(r *memory.Note, now time.Time) bool {
	return r.Handle != nil && !passed(r.HiddenUntil.Add(-wakeMargin), now)
}

// wakeNext makes the next ten messages visible, and comes again until none is left to
// be woken or the consumer stops. It pauses in between: what makes messages wait for
// hours is hardly ready to have them all at once.
func (c *core) wakeNext(now time.Time) {
	w := c.nextToWake(now)
	if c.waker.active = w != nil; w != nil {
		w.pause = c.wakePause(len(w.ids))
		c.want(effect{kind: effectWake, waking: w})
	}
}

// waking is a request that makes messages visible.
type waking struct {
	ids     []string
	entries []types.ChangeMessageVisibilityBatchRequestEntry
	pause   time.Duration // until the next
}

// makeVisible makes the request w.
func (c *Consumer) makeVisible(w *waking) {
	results := unanswered(len(w.ids))
	defer func() { // even if the user's code ends this goroutine
		core := c.enter()
		core.woken(w, results[:len(w.ids)])
		c.leave()
	}()
	ctx, cancel := context.WithTimeout(c.settleCtx, wakeTimeout)
	defer cancel()
	results = c.changeVisibility(ctx, OpVisibility, w.entries, withoutRetries)
}

// nextToWake takes up to ten messages from those to be woken; nil if there is none.
func (c *core) nextToWake(now time.Time) *waking {
	if c.draining || c.closed {
		c.waker.ids = nil
	}
	w := new(waking)
	for len(c.waker.ids) > 0 && len(w.ids) < maxBatch {
		id := c.waker.ids[0]
		c.waker.ids = c.waker.ids[1:]
		r := c.memory.Recall(id, now)
		if !wakeable(r, now) {
			continue // it has come by itself, or is about to
		}
		w.entries = append(w.entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: &positions[len(w.ids)], ReceiptHandle: r.Handle})
		w.ids = append(w.ids, id)
	}
	if len(w.ids) == 0 {
		return nil
	}
	return w
}

// woken takes in the results of w. What was refused for being too much is tried again.
// Nothing else is: a request whose reply was lost may have been carried out, and the
// message be with somebody else.
func (c *core) woken(w *waking, results []error) {
	pause := w.pause
	for i, err := range results {
		api, ok := errors.AsType[smithy.APIError](err)
		if ok && api.ErrorFault() == smithy.FaultClient && !lasting(err) {
			pause = max(pause, wakeAgain)
			c.waker.ids = append(c.waker.ids, w.ids[i])
			continue
		}
		if err == nil {
			c.counts.Woken++
		}
		c.memory.Unpark(w.ids[i])
	}
	c.alarms.After(c.now.Add(pause), c.wakeNext)
}

// wakePause is how long the consumer takes to work off n messages.
func (c *core) wakePause(n int) time.Duration {
	rate := float64(wakeRate)
	if c.taskTime.mean > 0 {
		concurrency := c.capacity()
		if g := c.gates.byKey[""]; g != nil && g.state() == BreakerRamping {
			concurrency = min(concurrency, g.breaker.Level())
		}
		rate = float64(concurrency) / c.taskTime.mean.Seconds()
	}
	if c.cfg.Rate > 0 {
		rate = min(rate, c.cfg.Rate)
	}
	seconds := float64(n) / min(rate, maxWakeRate)
	return time.Duration(seconds * (0.5 + c.chance.Float64()) * float64(time.Second))
}
