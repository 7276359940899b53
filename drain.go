package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// stopGrace is the last part of the stop budget: for handlers to return when their contexts
// have ended, and for the last settlements.
const stopGrace = 3 * time.Second

// pollPatience is the least time that a stop waits before it cancels a receive: its reply may be
// on its way.
const pollPatience = 100 * time.Millisecond

// drain ends the consumer's work within the stop budget.
//
// At first the outstanding long polls may return by themselves: SQS may be sending messages
// on them, and a cancelled poll leaves those hidden until their lease ends. If the endpoint
// makes them visible again, polls are cancelled after pollPatience. Messages that have not
// started are released, or run if the average handler leaves time for them. When only
// stopGrace is left, polls and handlers are cancelled.
func (c *Consumer) drain() error {
	began := time.Now()
	budget, soft := c.cfg.StopBudget, c.softBudget()
	if !c.beginStop() {
		return c.stopBroken(began)
	}

	patience, softTimer, hardTimer := time.NewTimer(min(pollPatience, soft)), time.NewTimer(soft), time.NewTimer(budget)
	defer patience.Stop()
	defer softTimer.Stop()
	defer hardTimer.Stop()
	stranded := false
	for inTime := true; inTime && !c.idle(); {
		select {
		case <-c.emptied:
		case <-c.mu.broken:
			return c.stopBroken(began)
		case <-patience.C:
			c.cancelOrAwaitPolls(soft)
		case <-softTimer.C:
			stranded = c.stopHandlers()
		case <-hardTimer.C:
			inTime = false
		}
	}
	report, closed := c.close(stranded, began)
	if !closed {
		return c.stopBroken(began)
	}
	leftOut := 0
	c.look(func(m *consumer.Machine) { leftOut = m.DeadLettersLeftOut() })
	if leftOut > 0 {
		c.logLeftOut(leftOut)
	}
	c.tellStopped(report)
	if !report.Drained() {
		return ErrDrainTimeout
	}
	return nil
}

// tellStopped tells the log and the observer of the end.
func (c *Consumer) tellStopped(report Report) {
	c.log.Info("stopped", "report", report.String())
	if f := c.cfg.Observer.Stopped; f != nil {
		c.tell(func() { f(report) })
	}
}

// softBudget returns how long handlers and receives may continue after a stop has begun.
func (c *Consumer) softBudget() time.Duration {
	return c.cfg.StopBudget - min(stopGrace, c.cfg.StopBudget/4)
}

// beginStop ends receiving, and gives back the messages that have not started. Like the functions
// below it, it reports false if a bug has broken the machine.
func (c *Consumer) beginStop() bool {
	held, polls := 0, 0
	if !c.enter(func(m *consumer.Machine) { held, polls = m.Stop() }) {
		return false
	}
	c.log.Info("stopping", "held", held, "receives", polls, "budget", c.cfg.StopBudget)
	return true
}

// stopHandlers ends the contexts of receives and handlers. It reports whether it cancelled a
// receive whose messages may stay hidden.
func (c *Consumer) stopHandlers() (stranded bool) {
	c.enter(func(m *consumer.Machine) {
		stranded = m.Receives() > 0 && !c.returnsCancelled.Load()
		m.StopHandlers()
	})
	c.stopPolls()
	c.stopWork(ErrStopping)
	return stranded
}

// cancelOrAwaitPolls cancels the outstanding receives if the endpoint makes their messages visible
// again; otherwise it logs that the stop waits for them, up to limit.
func (c *Consumer) cancelOrAwaitPolls(limit time.Duration) {
	if c.returnsCancelled.Load() {
		c.stopPolls()
		return
	}
	polls := 0
	c.look(func(m *consumer.Machine) { polls = m.Receives() })
	if polls > 0 {
		c.log.Info("stopping: waiting for the outstanding long poll, because SQS leaves the messages of a cancelled one hidden for the lease",
			"receives", polls, "longest", min(c.cfg.LongPoll, limit), "lease", c.cfg.Lease)
	}
}

// idle reports whether no message is held and no receive is under way.
func (c *Consumer) idle() (empty bool) {
	c.look(func(m *consumer.Machine) { empty = m.Empty() })
	return empty
}

// close cancels what is left, waits for every goroutine of ours, and returns the report.
// Handlers that have not returned cannot be ended; the report names their messages.
func (c *Consumer) close(stranded bool, began time.Time) (report Report, closed bool) {
	c.enter(func(m *consumer.Machine) { m.Close() })
	c.cancelAll()
	c.tasks.Wait()
	c.tellSettled()
	c.retireAll()
	closed = c.enter(func(m *consumer.Machine) {
		if c.pool != nil {
			c.pool.closed(c)
		}
		left := m.AfterDeletesLeft()
		report = Report{Counts: Counts(m.Status(m.Now()).Counts), Calls: c.client.counts(), Stranded: stranded, AfterDeletes: left, Took: time.Since(began)}
		report.Abandoned, report.Unsettled = m.Left()
		c.report, c.closed = report, true
	})
	return report, closed
}

// cancelAll ends the contexts of receives, handlers and requests.
func (c *Consumer) cancelAll() {
	c.stopPolls()
	c.stopWork(ErrStopping)
	c.stopCalls()
}

// retireAll ends the goroutines that are not in a handler.
func (c *Consumer) retireAll() {
	c.mu.Lock()
	c.callers.retire()
	c.workers.retire()
	c.mu.Unlock()
	c.callers.idlers.Wait()
	c.workers.idlers.Wait()
}

// closed takes c, which is closed, out of p if none of its handlers is left. The caller holds
// the lock.
func (p *Pool) closed(c *Consumer) {
	if p.machine.Leave(c.guarded) {
		delete(p.shells, c.guarded)
	}
}
