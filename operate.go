package reprise

import (
	"fmt"
)

const (
	minRate = 0.001
	maxRate = 1e6
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
	c.enter().SetConcurrency(n)
	c.leave()
	return nil
}

// SetRate changes how many handlers may start per second, at first Config.Rate: from 0.001 to
// 1,000,000, or 0 for no limit. The retry lane has the same rate, counted by itself. It may be
// called at any time from any goroutine.
func (c *Consumer) SetRate(perSecond float64) error {
	if !validRate(perSecond) {
		return fmt.Errorf("reprise: a rate of %v is out of range: set %v to %v handlers per second, or 0 for no limit", perSecond, minRate, maxRate)
	}
	if c.retryLane != nil {
		c.retryLane.setRate(perSecond)
	}
	c.setRate(perSecond)
	return nil
}

func (c *Consumer) setRate(perSecond float64) {
	c.enter().SetRate(perSecond)
	c.leave()
}

// validRate reports whether a rate can be set; NaN cannot.
func validRate(perSecond float64) bool {
	return perSecond == 0 || perSecond >= minRate && perSecond <= maxRate
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
	c.enter().SetPaused(paused)
	c.leave()
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
	if c.cfg.Outage.Key == nil {
		return fmt.Errorf("reprise: key %q cannot be paused or resumed, since messages have none: set Config.Outage.Key, or pause the whole consumer", key)
	}
	if c.retryLane != nil {
		if err := c.retryLane.setKeyPaused(key, paused); err != nil {
			return err
		}
	}
	c.enter().SetKeyPaused(key, paused)
	c.leave()
	return nil
}
