package reprise

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// runProbe calls Config.Outage.Probe, and tells the machine the result. The machine ignores
// it if another canary has started meanwhile.
func (c *Consumer) runProbe(g *consumer.Gate, n int, began time.Time) {
	err := errors.New("Config.Outage.Probe called runtime.Goexit")
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
			c.complain("probe", "Config.Outage.Probe panicked, which counts as a failure", "panic", v, "stack", string(debug.Stack()))
		}
		c.enter(func(m *consumer.Machine) { m.ProbeEnded(g, n, began, err) })
	}()
	ctx, cancel := context.WithTimeout(c.workCtx, consumer.ProbeTimeout)
	defer cancel()
	if err = c.cfg.Outage.Probe(ctx, g.Key()); err != nil {
		err = fixedText{err, err.Error()} // Status calls its Error method under c.mu
	}
}

// logOutage logs the beginning and the end of an outage, not its probes.
func (c *Consumer) logOutage(e OutageEvent) {
	switch {
	case e.State == BreakerOpen && e.Previous == BreakerClosed:
		c.log.Warn("dependency unavailable: circuit breaker open, holding messages", "key", e.Key, "held", e.Held, "error", e.Err)
	case e.State == BreakerOpen && e.Previous == BreakerRamping:
		c.log.Warn("dependency unavailable again: circuit breaker open", "key", e.Key, "since", e.Since, "error", e.Err)
	case e.State == BreakerRamping && e.Previous == BreakerClosed:
		c.log.Warn("dependency overloaded after an outage: circuit breaker ramping up again", "key", e.Key, "error", e.Err)
	case e.State == BreakerRamping:
		c.log.Info("dependency answers again: circuit breaker ramping up", "key", e.Key, "since", e.Since)
	case e.State == BreakerClosed:
		c.log.Info("outage over: circuit breaker closed", "key", e.Key, "lasted", e.At.Sub(e.Since).Round(time.Second))
	}
}

// tellOutage tells the log and the observer of e.
func (c *Consumer) tellOutage(e OutageEvent) {
	c.logOutage(e)
	if f := c.cfg.Observer.Outage; f != nil {
		c.tell(func() { f(c.runCtx, e) })
	}
}
