package consumer

import (
	"math"
	"time"
)

const (
	// rateBurst is how far handlers may start ahead of their even spacing: at more than a
	// hundred a second, a timer for each start would cost too much.
	rateBurst = 10 * time.Millisecond

	// rateAhead limits how long a message waits for its start because of Settings.Rate: no
	// more messages are received than can start within that time.
	rateAhead = 10 * time.Second
)

// SetConcurrency changes how many handlers may run at once.
func (c *Machine) SetConcurrency(n int) {
	c.concurrency = n
	c.wholePool = false
}

// SetRate changes how many handlers may start a second; 0: no limit. The next start keeps the new
// distance from the last one, however far off the old rate had put it.
func (c *Machine) SetRate(rate float64) {
	switch old := c.Rate; {
	case rate == 0:
		c.nextAt = time.Time{}
	case old != 0:
		c.nextAt = c.nextAt.Add(rateSpacing(rate) - rateSpacing(old))
	}
	c.Rate = rate
}

// SetPaused pauses the consumer, so that no handler starts and no message is received, or
// ends the pause.
func (c *Machine) SetPaused(paused bool) {
	c.paused = paused
	if s := c.solo; s.next != nil && s.owner == c {
		if paused {
			c.endSolo(c.now)
		} else {
			c.claimSolo(c.now)
		}
	}
}

// SetKeyPaused pauses one key, so that no handler starts for its messages, or ends the
// pause.
func (c *Machine) SetKeyPaused(key string, paused bool) {
	g := c.gates.byKey[key]
	if g == nil {
		if !paused {
			return
		}
		g = c.addGate(key)
	}
	g.Paused = paused
	c.gateTurned(g, c.now)
}

// SetRetryLaneOf notes that c's queue is the retry lane of other.
func (c *Machine) SetRetryLaneOf(other *Machine) { c.retryLaneOf = other }

// PoolShare returns c's share of its pool.
func (c *Machine) PoolShare() Share { return Share{c.turns.Priority, c.turns.Weight} }

// Handlers returns how many handlers run.
func (c *Machine) Handlers() int { return c.handlers() }

// full reports whether as many handlers run as c's own concurrency permits. If its pool is
// the limit, its messages wait for other consumers' handlers instead.
func (c *Machine) full() bool {
	if c.pool != nil && c.concurrency >= c.pool.concurrency {
		return false
	}
	return c.handlers() >= c.concurrency
}

// countStart counts a handler's start against the rate.
func (c *Machine) countStart(now time.Time) {
	if c.Rate == 0 {
		return
	}
	if c.nextAt.Before(now) {
		c.nextAt = now
	}
	c.nextAt = c.nextAt.Add(rateSpacing(c.Rate))
}

func rateSpacing(rate float64) time.Duration {
	return time.Duration(float64(time.Second) / rate)
}

// places returns how many messages may be held at once (all), and how many of them may wait
// (waiting): fewer if there is a rate.
func (c *Machine) places() (all, waiting int) {
	all = c.capacity() + c.Prefetch
	if c.Rate == 0 {
		return all, all
	}
	ahead := math.Ceil(c.Rate * rateAhead.Seconds())
	return all, int(min(float64(all), max(ahead, float64(c.batchSize()))))
}
