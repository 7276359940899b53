package reprise

import (
	"errors"
	"time"
)

// stopBroken ends the work of a consumer that a bug has broken, and returns the bug's error. Nothing
// is settled any more: what the machine says of its messages may be wrong. Handlers have as long to
// return as those of a stop whose budget ends.
func (c *Consumer) stopBroken(began time.Time) error {
	stack, failure := c.mu.broke()
	c.log.Error("a bug has broken the consumer: it stops, and its messages come again when their leases end", "error", failure, "stack", string(stack))
	c.cancelAll()
	grace := time.NewTimer(c.cfg.StopBudget - c.softBudget())
	defer grace.Stop()
	for inTime := true; inTime && c.working.Load() > 0; {
		select {
		case <-c.emptied:
		case <-grace.C:
			inTime = false
		}
	}
	c.tasks.Wait()
	c.retireAll()
	report := c.reportBroken(began)
	c.tellStopped(report)
	return failure
}

// reportBroken makes the report of a consumer that a bug has broken.
func (c *Consumer) reportBroken(began time.Time) Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted, held := c.guarded.Remains()
	c.report = Report{Counts: Counts(counted), Calls: c.client.counts(), Unsettled: held, Took: time.Since(began)}
	c.closed = true
	return c.report
}

// brokenStatus is Status after a bug has broken the machine. The caller holds the lock.
func (c *Consumer) brokenStatus() Status {
	counted, held := c.guarded.Remains()
	s := Status{Health: HealthFailing, Problem: c.mu.failure.Error(), Processing: len(held), Counts: Counts(counted), Calls: c.client.counts()}
	if c.closed {
		s.Health = HealthStopped
	}
	return s
}

// errBroken is the error of a call to a consumer that a bug has broken.
var errBroken = errors.New("reprise: a bug has broken the consumer: see the error that Run has returned")
