package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Subject is a message that a report is about, as it was at that moment: the shell's own
// part of the delivery, and what changes from attempt to attempt.
type Subject struct {
	Cargo   any
	Attempt int
	Trail   string
}

// Report is an event for the log or an observer. Reports are told in order, outside of any
// section. A Report is a [Complaint], [Found], [Outage], [GivingUp], [Expiring],
// [DeadLettered], [Crasher] or [LeftOut].
type Report interface{ report() }

// Complaint is a line for the log: an error, a warning of what failed and is tried again, or the
// information that a problem is over. Arguments may be a Subject.
type Complaint struct {
	Severity plan.Severity
	Text     string
	Args     []any
}

// Found is a conflict between the settings and the queue.
type Found struct{ Finding plan.Finding }

// Outage is a change of a breaker's state. Fields are those of reprise.OutageEvent.
type Outage struct {
	Key             string
	State, Previous breaker.State
	At, Since       time.Time
	NextProbe       time.Time
	Held            int
	Err             error
}

// GivingUp reports that nearly all messages are given up, or that this is over. Fields are
// those of reprise.GivingUp.
type GivingUp struct {
	Over               bool
	Since, At          time.Time
	GivenUp, Succeeded int
	Total              int
	PerMinute          float64
	Reason             retry.Reason
	Problem            string
}

// String is one sentence for an operator.
func (g GivingUp) String() string {
	text := fmt.Sprintf("messages are given up and hardly one succeeds: %d of the last %d, %.3g a minute, %d since %s, mostly for the reason %v",
		g.GivenUp, g.GivenUp+g.Succeeded, g.PerMinute, g.Total, g.Since.UTC().Format(time.RFC3339), g.Reason)
	if g.Problem != "" {
		text += ": " + g.Problem
	}
	return text
}

// Expiring is a message that its queue will drop before it can be tried again.
type Expiring struct {
	Subject Subject
	At      time.Time
	Outcome Outcome
}

// DeadLettered is a message that went to the dead-letter queue To.
type DeadLettered struct {
	Subject Subject
	Reason  retry.Reason
	Err     error
	To      string
}

// Crasher is a message that is given up because it crashes its worker.
type Crasher struct{ Subject Subject }

// LeftOut is how many dead letters of the last [DeadLetterInterval] have no DeadLettered.
type LeftOut int

func (Complaint) report()    {}
func (Found) report()        {}
func (Outage) report()       {}
func (GivingUp) report()     {}
func (Expiring) report()     {}
func (DeadLettered) report() {}
func (Crasher) report()      {}
func (LeftOut) report()      {}

// tell adds r to the reports.
func (c *Machine) tell(r Report) {
	c.reports = append(c.reports, r)
	if !c.reporting && !c.closed {
		c.reporting = true
		c.want(Effect{Kind: TellReports})
	}
}

// NextReport takes the next report, for the shell to tell after the section; nil if there is
// none.
func (c *Machine) NextReport() Report {
	if len(c.reports) == 0 {
		c.reports, c.reporting = nil, false
		return nil
	}
	r := c.reports[0]
	c.reports = c.reports[1:]
	return r
}

// ReportsLeft asks for another goroutine to tell the remaining reports: the user's code has
// ended the goroutine that told them.
func (c *Machine) ReportsLeft() { c.want(Effect{Kind: TellReports}) }

// Settled is the end of a message's stay. Fields are those of reprise.Settled.
type Settled struct {
	Subject  Subject
	Outcome  Outcome
	Requeued bool
	Reason   retry.Reason
	Due      time.Time
	Requests int
	Err      error
}

// TakeSettled returns the messages settled since the last call, if Settings.TellSettled is
// set.
func (c *Machine) TakeSettled() []Settled {
	settled := c.unreported
	c.unreported = nil
	return settled
}

// ComplaintEvery is how often one kind of complaint is logged: a queue of two million
// failing messages must not become two million lines.
const ComplaintEvery = 30 * time.Second

// complain reports a problem, each kind at most once per [ComplaintEvery].
func (c *Machine) complain(kind, text string, args ...any) {
	if c.MayComplain(kind) {
		c.tell(Complaint{plan.Error, text, args})
	}
}

// warn is complain for a failure that may pass by itself, and is tried again.
func (c *Machine) warn(kind, text string, args ...any) {
	if c.MayComplain(kind) {
		c.tell(Complaint{plan.Warning, text, args})
	}
}

// MayComplain reports whether a complaint of this kind is due, and counts it as made.
func (c *Machine) MayComplain(kind string) bool {
	if last, ok := c.said[kind]; ok && c.now.Sub(last) < ComplaintEvery {
		return false
	}
	c.said[kind] = c.now
	return true
}

// find reports a finding that comes up while consuming, unless one of the same code was
// reported before.
func (c *Machine) find(f plan.Finding) { c.findOnce(f.Code, f) }

// findOnce reports a finding, unless one under the same name was reported before.
func (c *Machine) findOnce(name string, f plan.Finding) {
	key := "finding " + name
	if _, said := c.said[key]; said {
		return
	}
	c.said[key] = c.now
	c.tell(Found{f})
}
