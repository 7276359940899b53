package reprise

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/retry"
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
	core := c.lock()
	leftOut := core.deadLetterLog.next()
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
	core := c.enter()
	core.draining = true
	core.softEnd, core.hardEnd = core.now.Add(c.softBudget()), core.now.Add(c.cfg.StopBudget)
	core.health.set(HealthStopping, "")
	for _, o := range core.outboxes() {
		o.calls.Hurry(core.hardEnd)
	}
	held, polls := len(core.held), len(core.pollers)
	core.releaseUnstarted(core.now)
	c.leave()
	c.log.Info("stopping", "held", held, "receives", polls, "budget", c.cfg.StopBudget)
}

// stopHandlers ends the contexts of receives and handlers, and reports whether a receive
// was cancelled that may be bringing messages.
func (c *Consumer) stopHandlers() (stranded bool) {
	core := c.enter()
	stranded = len(core.pollers) > 0 && !c.returnsCancelled.Load()
	core.releaseUnstarted(core.now)
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
	core := c.lock()
	polls := len(core.pollers)
	c.unlock()
	if polls > 0 {
		c.log.Info("stopping waits for the outstanding long poll: SQS may be handing it messages, which a cancelled one would leave hidden",
			"receives", polls, "longest", min(c.cfg.LongPoll, most), "lease", c.cfg.Lease)
	}
}

// idle reports whether nothing is held and nothing is on its way.
func (c *Consumer) idle() bool {
	core := c.lock()
	defer c.unlock()
	return core.empty()
}

// empty says that nothing is held and nothing is on its way.
func (c *core) empty() bool {
	return len(c.held) == 0 && len(c.pollers) == 0 && c.workers == 0 && c.after.left() == 0
}

// releaseUnstarted gives back what no handler has started on, unless there is time to
// run it.
func (c *core) releaseUnstarted(now time.Time) {
	inTime := c.timeAllows(now)
	var unstarted []*delivery
	for _, d := range c.held {
		if d.state.waits() {
			unstarted = append(unstarted, d)
		}
	}
	slices.SortFunc(unstarted, asReceived)
	for _, d := range unstarted {
		switch {
		case !d.state.waits(): // given back with another
		case d.state == stateScheduled:
			c.skip(d, d.verdict, now) // not before its time
		case !inTime || d.state == stateShelved:
			c.giveBackWaiting(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonRelease}, now)
		}
	}
	for _, o := range c.outboxes() {
		o.calls.Flush()
	}
}

// timeAllows says whether handlers that would start now can be expected to end before
// handlers are cancelled. To release a message burns one of its receives; to start and
// then cancel it burns that and the work.
func (c *core) timeAllows(now time.Time) bool {
	if c.taskTime.mean == 0 || c.dials.paused {
		return false // no handler has ended yet: nothing is known; or none may start
	}
	turns := 1 + (c.waiting+c.running)/c.capacity()
	expected := c.taskTime.mean * time.Duration(turns)
	if c.pool != nil {
		expected = c.taskTime.mean + c.pool.ahead()
	}
	return now.Add(2 * expected).Before(c.softEnd)
}

// close ends what is left, waits for every goroutine of ours, and returns the
// report. Handlers that have not returned cannot be ended, only named.
func (c *Consumer) close(stranded bool, began time.Time) Report {
	core := c.enter()
	core.closed = true
	c.leave()
	c.stopPolls()
	c.stopWork(ErrStopping)
	c.stopCalls()
	c.tasks.Wait()
	c.tellSettled()

	c.enter()
	c.crew.retire()
	c.handling.retire()
	c.leave()
	c.crew.parked.Wait()
	c.handling.parked.Wait()

	c.enter()
	defer c.leave()
	if c.pool != nil {
		c.pool.closed(core)
	}
	report := Report{Counts: core.counts, Calls: c.client.counts(), Stranded: stranded, AfterDeletes: core.after.left(), Took: time.Since(began)}
	for id, d := range core.held {
		if d.state == stateRunning {
			report.Abandoned = append(report.Abandoned, id)
		} else {
			report.Unsettled = append(report.Unsettled, id)
		}
	}
	slices.Sort(report.Abandoned)
	slices.Sort(report.Unsettled)
	core.report = report
	core.health.set(HealthStopped, "")
	return report
}
