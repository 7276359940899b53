package reprise

import (
	"fmt"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

const (
	minRate = 0.001
	maxRate = 1e6
)

// SetConcurrency changes how many handlers may run at once; at first that is
// Config.Concurrency. Running handlers are not interrupted, so a lower number takes effect as
// they end. In a pool, the consumer takes at most n of the pool's places, without its retry
// lane; without a pool, the consumer and its retry lane share n. It may be called at any time
// from any goroutine, also before Run and after Run has returned: for example by code that
// watches the handlers' dependency. See [Observer].Attempt. It fails if n is less than 1 or
// more than 100,000, for batches divided by BatchConfig.Size.
func (c *Consumer) SetConcurrency(n int) error {
	if most := maxConcurrent / c.batchSize(); n < 1 || n > most {
		return fmt.Errorf("reprise: a concurrency of %d is out of range: set 1 to %d handlers, or call Pause", n, most)
	}
	if c.pool != nil && c.pool.private {
		return c.pool.SetConcurrency(n)
	}
	return c.operate(func(m *consumer.Machine) { m.SetConcurrency(n) })
}

// SetRate changes how many handlers may start per second, at first Config.Rate: from 0.001 to
// 1,000,000, or 0 for no limit. The retry lane has the same rate, counted by itself. It may be
// called at any time from any goroutine.
func (c *Consumer) SetRate(perSecond float64) error {
	if !validRate(perSecond) {
		return fmt.Errorf("reprise: a rate of %v is out of range: set %v to %v handlers per second, or 0 for no limit", perSecond, minRate, maxRate)
	}
	if c.retryLane != nil {
		if err := c.retryLane.setRate(perSecond); err != nil {
			return err
		}
	}
	return c.setRate(perSecond)
}

func (c *Consumer) setRate(perSecond float64) error {
	return c.operate(func(m *consumer.Machine) { m.SetRate(perSecond) })
}

// Pause stops the consumer from starting handlers and from receiving, until
// [Consumer.Resume]. Running handlers are not interrupted. Messages that were received, or
// that a receive under way still brings, are held: their leases are renewed for up to the
// twelve hours that SQS permits, and they use up no further receives. The retry lane is
// paused too. It may be called at any time from any goroutine; if it is called before Run,
// Run begins paused.
func (c *Consumer) Pause() { c.setPaused(true) }

// Resume ends a [Consumer.Pause].
func (c *Consumer) Resume() { c.setPaused(false) }

func (c *Consumer) setPaused(paused bool) {
	if c.retryLane != nil {
		c.retryLane.setPaused(paused)
	}
	c.enter(func(m *consumer.Machine) { m.SetPaused(paused) })
}

// PauseKey stops the consumer from starting handlers for the messages of one key, as
// Config.Outage.Key returns it, until [Consumer.ResumeKey]; other messages go on. Messages of
// paused keys are held: at most as many as Concurrency plus Prefetch, and half of that for
// one key. Further ones are hidden, for a longer time each time, which uses up receives. In
// the retry lane the key is paused too. It may be called at any time from any goroutine. It
// fails if there is no Config.Outage.Key.
func (c *Consumer) PauseKey(key string) error { return c.setKeyPaused(key, true) }

// ResumeKey ends a [Consumer.PauseKey]. Messages that were hidden meanwhile become visible
// when their time has passed; [Consumer.Wake] makes them visible earlier.
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
	return c.operate(func(m *consumer.Machine) { m.SetKeyPaused(key, paused) })
}

// operate has the machine do what an operator asks for.
func (c *Consumer) operate(f func(*consumer.Machine)) error {
	if !c.enter(f) {
		return errBroken
	}
	return nil
}
