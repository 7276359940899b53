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
	budget := c.cfg.StopBudget
	soft := budget - min(stopGrace, budget/4)

	c.enter()
	c.draining = true
	c.softEnd, c.hardEnd = began.Add(soft), began.Add(budget)
	c.health.set(HealthStopping, "")
	held, polls := len(c.held), c.pollers
	c.releaseUnstarted(began)
	c.leave()
	close(c.stopping)
	c.log.Info("stopping", "held", held, "receives", polls, "budget", budget)

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
			c.enter()
			stranded = c.pollers > 0 && !c.returnsCancelled.Load()
			c.releaseUnstarted(time.Now())
			c.leave()
			c.stopPolls()
			c.stopWork(ErrStopping)
		case <-hardTimer.C:
			inTime = false
		}
	}
	report := c.close(stranded, began)
	c.mu.Lock()
	leftOut := c.deadLetterLog.next()
	c.mu.Unlock()
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

// leavePolls cancels the receives that are outstanding when a stop begins, or says that
// they are waited for, for so long at most.
func (c *Consumer) leavePolls(most time.Duration) {
	if c.returnsCancelled.Load() {
		c.stopPolls()
		return
	}
	c.mu.Lock()
	polls := c.pollers
	c.mu.Unlock()
	if polls > 0 {
		c.log.Info("stopping waits for the outstanding long poll: SQS may be handing it messages, which a cancelled one would leave hidden",
			"receives", polls, "longest", min(c.cfg.LongPoll, most), "lease", c.cfg.Lease)
	}
}

// idle is empty for a caller that does not hold c.mu.
func (c *Consumer) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.empty()
}

// empty says that nothing is held and nothing is on its way. The caller holds c.mu.
func (c *Consumer) empty() bool {
	return len(c.held) == 0 && c.pollers == 0 && c.workers == 0 && c.after.left() == 0
}

// releaseUnstarted gives back what no handler has started on, unless there is
// time to run it. The caller holds c.mu.
func (c *Consumer) releaseUnstarted(now time.Time) {
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
		c.flush(o)
	}
}

// timeAllows says whether handlers that would start now can be expected to end
// before handlers are cancelled. To release a message burns one of its receives;
// to start and then cancel it burns that and the work. The caller holds c.mu.
func (c *Consumer) timeAllows(now time.Time) bool {
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
	c.enter()
	c.closed = true
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
		c.pool.closed(c)
	}
	if c.quietTimer != nil {
		c.quietTimer.Stop()
	}
	for _, o := range c.outboxes() {
		if o.timer != nil {
			o.timer.Stop()
		}
	}
	if c.dials.startTimer != nil {
		c.dials.startTimer.Stop()
	}
	report := Report{Counts: c.counts, Calls: c.client.counts(), Stranded: stranded, AfterDeletes: c.after.left(), Took: time.Since(began)}
	for id, d := range c.held {
		if d.state == stateRunning {
			report.Abandoned = append(report.Abandoned, id)
		} else {
			report.Unsettled = append(report.Unsettled, id)
		}
	}
	slices.Sort(report.Abandoned)
	slices.Sort(report.Unsettled)
	c.report = report
	c.health.set(HealthStopped, "")
	return report
}
