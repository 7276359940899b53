package reprise

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
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
	m := c.enter()
	defer c.leave()
	return inRetryLane + m.Wake(keys...)
}

// Probe has the open breakers of the given keys, of all if there are none, test at once whether
// what failed is back, and returns how many will. Unlike [Consumer.Wake] it wakes no messages by
// itself: if the test succeeds, the end of the outage does.
func (c *Consumer) Probe(keys ...string) int {
	inRetryLane := 0
	if c.retryLane != nil {
		inRetryLane = c.retryLane.Probe(keys...)
	}
	m := c.enter()
	defer c.leave()
	return inRetryLane + m.Probe(keys...)
}

// wakeTimeout ends a request that wakes messages: far less than the time for which they
// are still hidden.
const wakeTimeout = 5 * time.Second

// makeVisible makes the request w.
func (c *Consumer) makeVisible(w *consumer.Waking) {
	replied := unanswered(len(w.Handles))
	defer func() { // even if the user's code ends this goroutine
		c.enter().Woken(w, &replied)
		c.leave()
	}()
	asked := make([]consumer.Entry, len(w.Handles))
	for i, handle := range w.Handles {
		asked[i].Handle = handle
	}
	ctx, cancel := context.WithTimeout(c.settleCtx, wakeTimeout)
	defer cancel()
	replied = c.changeVisibility(ctx, OpVisibility, asked, withoutRetries)
}
