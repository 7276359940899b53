package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/retry"
)

// Stage is where a message stands, and if it waits, for what.
type Stage uint8

// The stages. Package reprise has the same, with what they mean to users.
const (
	StageRunning  Stage = iota // its handler runs
	StageSettling              // its settlement is not yet acknowledged
	StageBackoff               // hidden until its retry is due
	StageDue                   // held until it is due
	StageGroup                 // behind the head of its FIFO group
	StageBreaker               // behind a breaker that is not closed
	StageKey                   // its key is paused
	StagePaused                // the consumer is paused
	StageStopping              // the consumer stops, and starts no handler
	StageAlone                 // until nothing else runs, to run alone
	StageOthers                // while another message runs alone, or waits to
	StagePlace                 // until a handler has ended
	StageRate                  // until the rate permits another start
	StageBatch                 // until its batch is due
	StageGivenUp               // given up, and no dead-letter queue has accepted it
)

// Standing is what a consumer knows of one message. Fields are those of reprise.Standing.
type Standing struct {
	ID, OriginID, GroupID string
	Stage                 Stage
	Attempt, MaxAttempts  int
	Receives              int
	Since, Until          time.Time
	LeaseEnd              time.Time
	Key, Head             string
	Outcome               Outcome
	Reason                retry.Reason
	Problem               string
}

// Standing returns where the message with that id stands at now, or, if there is none, the held
// message that comes from the one with that id, the first received of several. It reports false if c knows neither.
func (c *Machine) Standing(id string, now time.Time) (Standing, bool) {
	d := c.held[id]
	if d == nil {
		if s, known := c.remembered(id, now); known {
			return s, true
		}
		for _, other := range c.held {
			if other.OriginID == id && (d == nil || asReceived(other, d) < 0) {
				d = other
			}
		}
	}
	if d == nil {
		return Standing{}, false
	}
	s := Standing{
		ID: d.ID, OriginID: d.OriginID, GroupID: d.GroupID, Attempt: d.Attempt, MaxAttempts: c.policy.MaxAttempts, Receives: d.receives,
		LeaseEnd: d.lease.End(), Key: d.Key, Problem: c.memory.Recall(d.ID, now).Problem,
	}
	if s.Problem == "" && d.History != nil {
		s.Problem = d.History.Error
	}
	c.stand(&s, d, now)
	return s, true
}

// stand fills in what follows from d's state.
func (c *Machine) stand(s *Standing, d *Delivery, now time.Time) {
	switch {
	case d.state == stateRunning:
		s.Stage, s.Since = StageRunning, d.began
	case d.state.settles():
		s.Stage, s.Outcome, s.Reason, s.Until = StageSettling, d.verdict.Outcome, d.verdict.Reason, d.verdict.Due
		s.Problem = problemOf(d.verdict.Err)
	case d.state == stateScheduled:
		s.Stage, s.Until, s.Reason = StageDue, d.verdict.Due, d.verdict.Reason
		if d.verdict.Err != nil {
			s.Problem = problemOf(d.verdict.Err)
		}
	case d.state == stateShelved && d.shelf.Paused:
		s.Stage = StageKey
	case d.state == stateShelved:
		s.Stage, s.Since = StageBreaker, d.shelf.Breaker.Since()
		if d.shelf.State() == breaker.Open {
			s.Until = d.shelf.Breaker.NextProbe()
		}
		s.Problem = problemOf(d.shelf.cause)
	case d.state == stateAlone && !c.paused:
		s.Stage = StageAlone
	case d.state == stateWaiting:
		s.Stage = StageGroup
		if head := c.groups.Head(&d.member); head != nil && head != &d.member {
			s.Head = head.Cargo.ID
		}
	default:
		s.Stage, s.Until = c.whyNotStarted(now)
	}
}

// whyNotStarted returns why the messages that are ready have not been started, and until when, if
// that is known.
func (c *Machine) whyNotStarted(now time.Time) (Stage, time.Time) {
	first := c.ready.first
	switch {
	case c.closed || c.draining && c.paused:
		return StageStopping, time.Time{}
	case c.paused:
		return StagePaused, time.Time{}
	case !c.solo.taken.IsZero():
		return StageOthers, time.Time{}
	case c.full() || c.startsIn(first, now) <= 0:
		return StagePlace, time.Time{}
	case c.batches != nil && c.lingers(first, now) > 0:
		return StageBatch, first.Received.Add(c.batches.Linger)
	}
	return StageRate, now.Add(c.startsIn(first, now))
}

// remembered returns what is known of a message that c does not hold.
func (c *Machine) remembered(id string, now time.Time) (Standing, bool) {
	known := c.memory.Recall(id, now)
	s := Standing{
		ID: id, OriginID: id, Stage: StageBackoff, Attempt: known.Runs + 1, MaxAttempts: c.policy.MaxAttempts, Receives: known.Receives,
		Until: known.Due, Key: known.Key, Reason: known.Reason, Problem: known.Problem,
	}
	switch {
	case known.Done:
		return s, false
	case known.Spent:
		s.Stage, s.Attempt, s.Until, s.Problem = StageGivenUp, known.Runs, time.Time{}, problemOf(known.Err)
		return s, true
	}
	return s, known.Due.After(now)
}
