package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	minRelease = time.Second
	maxRelease = 5 * time.Minute
)

// releases returns how often in a row d was released, as far as that is known.
func (c *Machine) releases(d *Delivery, now time.Time) int {
	n := c.memory.Recall(d.ID, now).Releases
	if d.History != nil {
		n = max(n, d.History.Releases)
	}
	return n
}

// leastRelease returns the shortest wait after a handler's Release of d. Each receive counts
// against the queue's maxReceiveCount, so the wait grows with each release in a row.
func (c *Machine) leastRelease(d *Delivery) time.Duration {
	releases := c.releases(d, c.now)
	return min(maxRelease, minRelease<<min(releases, 20))
}

// remember notes a failed attempt or a release, for the next receive of the message.
func (c *Machine) remember(d *Delivery, now time.Time) {
	known := c.memory.Note(d.ID, now)
	known.Receives = d.receives
	known.Trail = d.Trail
	switch d.verdict.Outcome {
	case OutcomeRelease:
		known.Runs = max(known.Runs, d.Attempt-1)
		if c.draining {
			return
		}
		known.Releases = c.releases(d, now) + 1
		known.Due = d.verdict.Due
	case OutcomeRetry:
		known.Runs = max(known.Runs, d.Attempt)
		known.Releases = 0
		known.Due = d.verdict.Due
		known.Reason, known.Problem = d.verdict.Reason, problemOf(d.verdict.Err)
		known.Unavailable = d.verdict.unavailable
		known.Asked = d.verdict.Reason == retry.ReasonRetryAfter
	case OutcomeDeadLetter:
		known.Runs = max(known.Runs, d.attempts())
		known.Spent, known.Reason, known.Err = true, d.verdict.Reason, d.verdict.Err
	}
}

// outlasted reports whether d is a copy that was sent to wait for a dependency that has answered
// since. Its wait is over, like those of the messages that were hidden then and have been woken; but
// not the wait that a later attempt here has set.
func (c *Machine) outlasted(d *Delivery, known *memory.Note) bool {
	if known.Receives > 0 && (known.Asked || !known.Unavailable) {
		return false
	}
	g := c.gates.byKey[d.Key]
	return g != nil && d.History != nil && d.History.Unavailable && time.UnixMilli(d.History.SentAt).Before(c.server(g.woken))
}

// parked returns the verdict on d, which is not yet due. It keeps the remembered due time.
func (d *Delivery) parked(known *memory.Note) Verdict {
	v := Verdict{Outcome: OutcomePark, Reason: retry.ReasonPolicy, Due: known.Due, unavailable: known.Unavailable}
	if known.Asked {
		v.Reason = retry.ReasonRetryAfter
	}
	if d.History != nil {
		v.unavailable = v.unavailable || d.History.Unavailable
	}
	return v
}

// withLastError returns err, of d which is given up without a run, with the error of d's last attempt. If there is
// no err, it is that error.
func (c *Machine) withLastError(d *Delivery, err error) error {
	last := c.lastError(d)
	switch {
	case last == "":
		return err
	case err == nil:
		return fmt.Errorf("the last error was: %s", last)
	}
	return fmt.Errorf("%w; the last error was: %s", err, last)
}

// lastError returns the beginning of the error of d's last attempt: the one that this process remembers, which was
// made after those of d's history. It is empty if none is known.
func (c *Machine) lastError(d *Delivery) string {
	if problem := c.memory.Recall(d.ID, c.now).Problem; problem != "" || d.History == nil {
		return problem
	}
	return d.History.Error
}

// unrun notes that d, which is given back, was not run: its receive was no attempt.
func (c *Machine) unrun(d *Delivery, now time.Time) {
	c.memory.Note(d.ID, now).Unrun(d.Attempt, d.receives)
}

// rememberLost notes a message that was lost, so that its next receive can be explained: no
// process has crashed and, if the message waited here, it was not run.
func (c *Machine) rememberLost(d *Delivery, now time.Time) {
	known := c.memory.Note(d.ID, now)
	known.Seen = d.receives
	known.Trail = d.Trail
	if d.state.waits() {
		known.Runs, known.Receives = max(known.Runs, d.Attempt-1), d.receives
	}
}

// maxProblem bounds the text of the error that is remembered of a failed attempt.
const maxProblem = 200

// problemOf returns the beginning of err's text.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return Shorten(err.Error(), maxProblem)
}
