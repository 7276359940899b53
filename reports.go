package reprise

import (
	"log/slog"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
)

// reportInOrder tells the log and observers the machine's reports, in order.
func (c *Consumer) reportInOrder() {
	exited := true // unless we return, the user's code has ended this goroutine
	defer func() {
		if exited {
			c.look(func(m *consumer.Machine) { m.ReportsLeft() })
		}
	}()
	for r := c.nextReport(); r != nil; r = c.nextReport() {
		c.tellReport(r)
	}
	exited = false
}

func (c *Consumer) nextReport() (r consumer.Report) {
	c.look(func(m *consumer.Machine) { r = m.NextReport() })
	return r
}

func (c *Consumer) tellReport(r consumer.Report) {
	switch r := r.(type) {
	case consumer.Complaint:
		level := slog.LevelError
		switch r.Severity {
		case plan.Warning:
			level = slog.LevelWarn
		case plan.Info:
			level = slog.LevelInfo
		}
		c.log.Log(c.runCtx, level, r.Text, shownArgs(r.Args)...)
	case consumer.Found:
		c.found(r.Finding)
	case consumer.Outage:
		c.tellOutage(OutageEvent{
			Key: r.Key, State: BreakerState(r.State), Previous: BreakerState(r.Previous),
			At: r.At, Since: r.Since, NextProbe: r.NextProbe, Held: r.Held, Err: r.Err,
		})
	case consumer.GivingUp:
		c.tellGivingUp(GivingUp(r))
	case consumer.Expiring:
		if f := c.cfg.Observer.Expiring; f != nil {
			c.tell(func() { f(c.runCtx, Expiring{Message: message(r.Subject), At: r.At, Outcome: Outcome(r.Outcome)}) })
		}
	case consumer.DeadLettered:
		c.log.Warn("message dead-lettered", "message", message(r.Subject), "reason", r.Reason.String(), "error", r.Err, "to", r.To)
	case consumer.Crasher:
		c.log.Error("a message crashes the worker, and is dead-lettered", "message", message(r.Subject))
	case consumer.LeftOut:
		c.logLeftOut(int(r))
	}
}

// shownArgs returns the arguments of a complaint as they are logged.
func shownArgs(args []any) []any {
	for i, a := range args {
		if s, ok := a.(consumer.Subject); ok {
			args[i] = message(s)
		}
	}
	return args
}

// tellSettled tells the observer of the messages that were settled since the last call.
func (c *Consumer) tellSettled() {
	f := c.cfg.Observer.Settled
	if f == nil {
		return
	}
	var settled []consumer.Settled
	c.look(func(m *consumer.Machine) { settled = m.TakeSettled() })
	for _, s := range settled {
		e := Settled{
			Message: message(s.Subject), Outcome: Outcome(s.Outcome), Requeued: s.Requeued,
			Reason: s.Reason, Due: s.Due, Requests: s.Requests, Err: s.Err,
		}
		c.tell(func() { f(c.runCtx, e) })
	}
}

// statusOf converts a machine's Status.
func statusOf(s consumer.Status, calls Calls) Status {
	status := Status{
		Health: Health(s.Health), Problem: s.Problem,
		Running: s.Running, Waiting: s.Waiting, Settling: s.Settling, Processing: s.Processing,
		InBackoff: s.InBackoff, BackoffProblem: s.BackoffProblem, InFlight: InFlight(s.InFlight), Pollers: s.Pollers,
		Concurrency: s.Concurrency, Rate: s.Rate, Paused: s.Paused, GivingUp: (*GivingUp)(s.GivingUp),
		LastReceive: s.LastReceive, LastSettle: s.LastSettle, Counts: Counts(s.Counts), Calls: calls,
	}
	for _, b := range s.Breakers {
		status.Breakers = append(status.Breakers, BreakerStatus{
			Key: b.Key, State: BreakerState(b.State), Since: b.Since, NextProbe: b.NextProbe,
			Held: b.Held, Level: b.Level, Paused: b.Paused, Problem: b.Problem,
		})
	}
	return status
}
