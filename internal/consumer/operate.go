package consumer

import (
	"math"
	"time"
)

const (
	// rateBurst is how far handlers may start ahead of their spacing: beyond a
	// hundred a second a timer for each would cost more than it brings.
	rateBurst = 10 * time.Millisecond

	// rateAhead is how long, at Settings.Rate, a message may have to wait for its
	// turn: no more are received than start within that time.
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

// SetPaused keeps handlers from starting and messages from being received, or no longer.
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

// SetKeyPaused keeps messages of one key from their handlers, or no longer.
func (c *Machine) SetKeyPaused(key string, paused bool) {
	g := c.gates.byKey[key]
	if g == nil {
		if !paused {
			return
		}
		g = c.addGate(key)
	}
	g.paused = paused
	c.gateTurned(g, c.now)
}

// SetRetryLaneOf notes that c's queue is the retry lane of other.
func (c *Machine) SetRetryLaneOf(other *Machine) { c.retryLaneOf = other }

// PoolShare is c's share of its pool.
func (c *Machine) PoolShare() Share { return Share{c.turns.Priority, c.turns.Weight} }

// Handlers is how many handlers run.
func (c *Machine) Handlers() int { return c.handlers() }

// full reports whether as many handlers run as c permits. The limit of its pool does not
// count: messages wait for other consumers then.
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

// places is how many messages may be leased at once: those that run and those
// that wait. A rate limits those that wait further.
func (c *Machine) places() (all, waiting int) {
	all = c.capacity() + c.Prefetch
	if c.Rate == 0 {
		return all, all
	}
	ahead := math.Ceil(c.Rate * rateAhead.Seconds())
	return all, int(min(float64(all), max(ahead, float64(c.batchSize()))))
}
