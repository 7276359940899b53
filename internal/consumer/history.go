package consumer

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// codeHistoryIgnored is the code of the finding that a message's history is ignored.
const codeHistoryIgnored = "history-ignored"

// IgnoredHistory reports that d's history is ignored: because of err or, if err is nil,
// because it is not signed as it must be, which untrusted explains.
func (c *Machine) IgnoredHistory(d *Delivery, err, untrusted error) {
	c.counts.Untrusted++
	remedy := "none, if it was redriven or sent again; otherwise find out who sends the attribute " + history.Attribute + "."
	if err == nil {
		err = untrusted
		remedy = "give all consumers of the queue the same Config.SigningKeys; if they have them, find out who sends the attribute " + history.Attribute + "."
		c.complain("untrusted", "messages carry a history that no signing key has signed: it is ignored, and their attempts count from 1",
			"message", d.Subject(), "problem", untrusted, "remedy", remedy)
	}
	c.find(plan.Finding{
		Severity: plan.Info,
		Code:     codeHistoryIgnored,
		Problem:  fmt.Sprintf("message %s carries a history that is ignored: %v. Its attempts count from 1.", d.ID, err),
		Remedy:   remedy,
	})
}

// historyFor returns the history for a copy of d that is sent now.
func (c *Machine) historyFor(d *Delivery, now time.Time) string {
	v := d.verdict
	h := history.History{
		Queue:       c.CopyTo.Name,
		Origin:      d.OriginID,
		Attempt:     d.Attempt - 1,
		Releases:    c.releases(d, now),
		Trail:       d.Trail,
		Unavailable: v.unavailable && v.Reason != retry.ReasonRetryAfter && !c.memory.Recall(d.ID, now).Asked, // a wait that a handler asked for lasts
	}
	if before := d.History; before != nil {
		h.Generation = before.Generation
	}
	if v.Outcome == OutcomeRetry {
		h.Attempt, h.Releases = d.Attempt, 0
	}
	var due time.Time
	if v.Due.After(now) {
		due = c.server(v.Due)
	}
	h.Date(c.server(now), d.Sent, d.FirstReceived, due)
	if h.Error = c.lastError(d); v.Err != nil && (d.ran || h.Error == "") { // without a run, v.Err says only why it had to wait
		h.Error = v.Err.Error()
	}
	h.Error = Shorten(ForSQS.Replace(h.Error), history.MaxError)
	if v.alone || d.marked() && !d.ran && !d.tried { // no run of it has ended here
		h.Alone, h.Losses = 1, int(math.Round(history.MaxLosses*c.losses.share(d)))
	}
	return h.String()
}

// Adopt takes in the history that d carries, which the shell has checked. It precedes
// [Machine.Took].
func (d *Delivery) Adopt(h history.History, ahead time.Duration) {
	p := &Past{History: h, Enqueued: d.Sent, Arrived: d.FirstReceived}
	if h.NotBefore > 0 {
		p.Due = local(time.UnixMilli(h.NotBefore), ahead)
	}
	d.History = p
	d.OriginID, d.Trail = h.Origin, h.Trail
	d.Sent, d.FirstReceived = time.UnixMilli(h.Sent), time.UnixMilli(h.First)
}

// Decide asks the policy p what follows d's attempt, which failed with err. Like
// [Delivery.CountPossibleAttempts] it is no input of a machine.
func (d *Delivery) Decide(p retry.Policy, err error, ended time.Time, ahead time.Duration) retry.Decision {
	return p.Decide(retry.Failure{
		N:     d.Attempt,
		Seed:  d.Seed(),
		Sent:  local(d.Sent, ahead),
		First: local(d.FirstReceived, ahead),
		Ended: ended,
		Err:   err,
	})
}

// Seed returns the seed of the jitter of d and its copies. See history.Seed.
func (d *Delivery) Seed() string {
	if d.History == nil {
		return d.OriginID
	}
	return d.History.Seed()
}

// marked reports whether d must run alone: its history carries the mark.
func (d *Delivery) marked() bool { return d.History != nil && d.History.Alone > 0 }

// carriedLosses returns which share of receives came to nothing where d was marked; 0 if it is not.
func (d *Delivery) carriedLosses() float64 {
	if !d.marked() {
		return 0
	}
	return float64(d.History.Losses) / history.MaxLosses
}

// made returns how many runs of the handler d's history counts.
func (d *Delivery) made() int {
	if d.History == nil {
		return 0
	}
	return d.History.Attempt
}

// enqueued returns when d itself was sent, by SQS's clock: its retention counts from then.
// The first message of its lineage may be older.
func (d *Delivery) enqueued() time.Time {
	if d.History == nil {
		return d.Sent
	}
	return d.History.Enqueued
}

// hops returns how many of d's receives were certainly no attempts: a copy that arrives
// long before it is due is parked. One that arrives at most shortHold before is held until
// then and run, so that its first receive is an attempt. ahead is how far SQS's clock is
// ahead of ours.
func (d *Delivery) hops(ahead time.Duration) int {
	if h := d.History; h != nil && h.Due.Sub(local(h.Arrived, ahead)) > shortHold {
		return 1
	}
	return 0
}

// countsFrom returns the time, on our clock, from which d's own receives can have been
// attempts: its first receive or, for a copy that was parked, its due time.
func (d *Delivery) countsFrom(ahead time.Duration) time.Time {
	if d.History == nil {
		return local(d.FirstReceived, ahead)
	}
	from := local(d.History.Arrived, ahead)
	if d.History.Due.After(from) {
		return d.History.Due
	}
	return from
}

// CountPossibleAttempts fills in how many attempts d can have had by the policy p. It is
// no input of a machine, because the backoff may be the user's code.
func (d *Delivery) CountPossibleAttempts(p retry.Policy, ahead time.Duration, now time.Time) {
	if h := d.History; h != nil && h.Due.Sub(now) > shortHold {
		d.PossibleAttempts = h.Attempt + 1 // so far it has only been hidden again
		return
	}
	d.PossibleAttempts = p.Attempts(d.Seed(), d.made(), d.Receives-d.hops(ahead), now.Sub(d.countsFrom(ahead)))
}

// ForSQS removes the two characters that JSON permits and SQS refuses.
var ForSQS = strings.NewReplacer("\uFFFE", "", "\uFFFF", "")

// Shorten cuts s to at most n bytes, between characters.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
