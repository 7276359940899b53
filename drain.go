package reprise

import (
	"time"
)

// stopGrace is the end of the stop budget that is kept for handlers to notice
// that they should return, and for the last settlements.
const stopGrace = 3 * time.Second

// pollPatience is how long a stop leaves receives alone in any case: a reply may be on its
// way.
const pollPatience = 100 * time.Millisecond

// drain ends the consumer's work within the stop budget.
//
// The outstanding long polls are left to return by themselves at first: SQS may
// be handing them messages, and a cancelled poll strands those until their lease
// runs out. Where the endpoint says that it takes them back, polls are cancelled as
// soon as no reply can be on its way. What has not started is released, or run where
// experience says that there is time. When only the grace is left, polls and handlers
// are cancelled.
func (c *Consumer) drain() error {
	began := time.Now()
	budget, soft := c.cfg.StopBudget, c.softBudget()
	c.beginStop()

	patience, softTimer, hardTimer := time.NewTimer(min(pollPatience, soft)), time.NewTimer(soft), time.NewTimer(budget)
	defer patience.Stop()
	defer softTimer.Stop()
	defer hardTimer.Stop()
	stranded := false
	for inTime := true; inTime && !c.idle(); {
		select {
		case <-c.emptied:
		case <-patience.C:
			c.leavePolls(soft)
		case <-softTimer.C:
			stranded = c.stopHandlers()
		case <-hardTimer.C:
			inTime = false
		}
	}
	report := c.close(stranded, began)
	leftOut := c.lock().DeadLettersLeftOut()
	c.unlock()
	if leftOut > 0 {
		c.logLeftOut(leftOut)
	}
	c.log.Info("stopped", "report", report.String())
	if f := c.cfg.Observer.Stopped; f != nil {
		c.tell(func() { f(report) })
	}
	if !report.Drained() {
		return ErrDrainTimeout
	}
	return nil
}

// softBudget is how long a stop lets handlers and receives go on.
func (c *Consumer) softBudget() time.Duration {
	return c.cfg.StopBudget - min(stopGrace, c.cfg.StopBudget/4)
}

// beginStop has the consumer take in nothing more, and gives back what has not started.
func (c *Consumer) beginStop() {
	held, polls := c.enter().Stop()
	c.leave()
	c.log.Info("stopping", "held", held, "receives", polls, "budget", c.cfg.StopBudget)
}

// stopHandlers ends the contexts of receives and handlers, and reports whether a receive
// was cancelled that may be bringing messages.
func (c *Consumer) stopHandlers() (stranded bool) {
	m := c.enter()
	stranded = m.Receives() > 0 && !c.returnsCancelled.Load()
	m.StopHandlers()
	c.leave()
	c.stopPolls()
	c.stopWork(ErrStopping)
	return stranded
}

// leavePolls cancels the receives that are outstanding when a stop begins, or says that
// they are waited for, for so long at most.
func (c *Consumer) leavePolls(most time.Duration) {
	if c.returnsCancelled.Load() {
		c.stopPolls()
		return
	}
	polls := c.lock().Receives()
	c.unlock()
	if polls > 0 {
		c.log.Info("stopping waits for the outstanding long poll: SQS may be handing it messages, which a cancelled one would leave hidden",
			"receives", polls, "longest", min(c.cfg.LongPoll, most), "lease", c.cfg.Lease)
	}
}

// idle reports whether nothing is held and nothing is on its way.
func (c *Consumer) idle() bool {
	m := c.lock()
	defer c.unlock()
	return m.Empty()
}

// close ends what is left, waits for every goroutine of ours, and returns the
// report. Handlers that have not returned cannot be ended, only named.
func (c *Consumer) close(stranded bool, began time.Time) Report {
	c.enter().Close()
	c.leave()
	c.stopPolls()
	c.stopWork(ErrStopping)
	c.stopCalls()
	c.tasks.Wait()
	c.tellSettled()

	c.enter()
	c.callers.retire()
	c.workers.retire()
	c.leave()
	c.callers.parked.Wait()
	c.workers.parked.Wait()

	m := c.enter()
	defer c.leave()
	if c.pool != nil {
		c.pool.closed(c)
	}
	left := m.AfterDeletesLeft()
	report := Report{Counts: Counts(m.Status(m.Now()).Counts), Calls: c.client.counts(), Stranded: stranded, AfterDeletes: left, Took: time.Since(began)}
	report.Abandoned, report.Unsettled = m.Left()
	c.report = report
	return report
}
