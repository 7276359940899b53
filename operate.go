package reprise

import (
	"fmt"
	"math"
	"time"
)

// dials is what can be turned while the consumer runs. Part of the core.
type dials struct {
	concurrency int
	paused      bool
	nextStart   time.Time // Config.Rate: when the next handler is due to start
}

const (
	minRate = 0.001
	maxRate = 1e6

	// rateBurst is how far handlers may start ahead of their spacing: beyond a
	// hundred a second a timer for each would cost more than it brings.
	rateBurst = 10 * time.Millisecond

	// rateAhead is how long, at Config.Rate, a message may have to wait for its
	// turn: no more are received than start within that time.
	rateAhead = 10 * time.Second
)

// SetConcurrency changes how many handlers may run at once, at first
// Config.Concurrency. Handlers that run are left to end, so that the number falls
// as they do. In a pool it is the most of the pool's places that the consumer takes,
// its retry lane aside; without a pool the two share so many. It may be called at any
// time from any goroutine, before Run and after it has returned too, and so be driven
// by whatever watches the handlers' dependency: see [Observer].Attempt.
func (c *Consumer) SetConcurrency(n int) error {
	if most := maxConcurrent / c.batchSize(); n < 1 || n > most {
		return fmt.Errorf("reprise: a concurrency of %d is out of range: set 1 to %d handlers, or call Pause", n, most)
	}
	if c.pool != nil && c.pool.private {
		return c.pool.SetConcurrency(n)
	}
	core := c.enter()
	defer c.leave()
	core.dials.concurrency = n
	core.share.whole = false
	return nil
}

// Pause keeps the consumer from starting handlers and from receiving, until
// [Consumer.Resume]. Running handlers end. What has been received, and what a
// receive under way still brings, is held: its leases are renewed, up to the
// twelve hours that SQS allows, and no receive of it is used up. Its retry lane is
// paused with it. It may be called at any time from any goroutine; before Run it lets
// Run begin paused.
func (c *Consumer) Pause() { c.setPaused(true) }

// Resume ends a [Consumer.Pause].
func (c *Consumer) Resume() { c.setPaused(false) }

func (c *Consumer) setPaused(paused bool) {
	if c.retryLane != nil {
		c.retryLane.setPaused(paused)
	}
	core := c.enter()
	defer c.leave()
	core.dials.paused = paused
	if f := core.floor; f.next != nil && f.owner == core {
		if paused {
			core.yieldFloor(core.now)
		} else {
			core.takeFloor(core.now)
		}
	}
}

// PauseKey keeps messages of one key, as Config.Outage.Key tells it, from their
// handlers until [Consumer.ResumeKey]; all others go on. As many as the consumer
// can have waiting are held, no more than half of them of one key; what comes
// beyond that is hidden for growing times, which does use up receives. In the retry
// lane the key is paused too. It may be called at any time from any goroutine. It
// fails if there is no Config.Outage.Key.
func (c *Consumer) PauseKey(key string) error { return c.setKeyPaused(key, true) }

// ResumeKey ends a [Consumer.PauseKey]. What was hidden meanwhile comes back when
// its time has passed: [Consumer.Wake] hastens it.
func (c *Consumer) ResumeKey(key string) error { return c.setKeyPaused(key, false) }

func (c *Consumer) setKeyPaused(key string, paused bool) error {
	if !c.keyed() {
		return fmt.Errorf("reprise: key %q cannot be paused or resumed, since messages have none: set Config.Outage.Key, or pause the whole consumer", key)
	}
	if c.retryLane != nil {
		if err := c.retryLane.setKeyPaused(key, paused); err != nil {
			return err
		}
	}
	core := c.enter()
	defer c.leave()
	g := core.gates.byKey[key]
	if g == nil {
		if !paused {
			return nil
		}
		g = core.addGate(key)
	}
	g.paused = paused
	core.gateTurned(g, core.now)
	return nil
}

// full says that as many handlers run as may. What the pool limits is not c's own
// limit: its messages wait for others then.
func (c *core) full() bool {
	if c.pool != nil && c.dials.concurrency >= c.pool.concurrency {
		return false
	}
	return c.handlers() >= c.dials.concurrency
}

// countStart counts a handler's start against the rate.
func (c *core) countStart(now time.Time) {
	if c.cfg.Rate == 0 {
		return
	}
	if c.dials.nextStart.Before(now) {
		c.dials.nextStart = now
	}
	c.dials.nextStart = c.dials.nextStart.Add(rateSpacing(c.cfg.Rate))
}

func rateSpacing(rate float64) time.Duration {
	return time.Duration(float64(time.Second) / rate)
}

// places is how many messages may be leased at once: those that run and those
// that wait. A rate limits those that wait further.
func (c *core) places() (all, waiting int) {
	all = c.capacity() + c.cfg.Prefetch
	if c.cfg.Rate == 0 {
		return all, all
	}
	ahead := math.Ceil(c.cfg.Rate * rateAhead.Seconds())
	return all, int(min(float64(all), max(ahead, float64(c.batchSize()))))
}
