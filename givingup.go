package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/retry"
)

// GivingUp reports that many different messages are given up, and hardly one succeeds: most
// likely the handler or one of its dependencies is misconfigured, and nothing is wrong with
// the messages. See [Observer].GivingUp and [Status].GivingUp.
type GivingUp struct {
	// Over reports whether it has ended: messages succeed again, or none has been given up
	// for ten minutes. In a Status it is false.
	Over bool
	// Since is when the first of these messages was given up. At is when the consumer
	// noticed the beginning or the end, or when the Status was taken.
	Since, At time.Time
	// GivenUp and Succeeded count the messages of the last hour that were given up and
	// that succeeded, the last 50 at most.
	GivenUp, Succeeded int
	// Total counts the messages given up since Since.
	Total int
	// PerMinute is how many messages have been given up per minute lately.
	PerMinute float64
	// Reason is the most frequent reason, Problem the text of the latest error.
	Reason  retry.Reason
	Problem string
}

// String is one sentence for an operator.
func (g GivingUp) String() string { return consumer.GivingUp(g).String() }

// logLeftOut logs how many dead letters were not logged one by one.
func (c *Consumer) logLeftOut(n int) {
	c.log.Warn("more messages dead-lettered, not logged one by one", "count", n, "within", consumer.DeadLetterInterval)
}

// tellGivingUp tells the log and the observer of e.
func (c *Consumer) tellGivingUp(e GivingUp) {
	if e.Over {
		c.log.Info("messages are no longer given up in large numbers", "given_up", e.Total, "since", e.Since, "lasted", e.At.Sub(e.Since).Round(time.Second))
	} else {
		c.log.Warn("many messages are given up and hardly one succeeds: most likely the handler or one of its dependencies is misconfigured",
			"given_up", e.GivenUp, "succeeded", e.Succeeded, "per_minute", e.PerMinute, "reason", e.Reason.String(), "error", e.Problem)
	}
	if f := c.cfg.Observer.GivingUp; f != nil {
		c.tell(func() { f(c.runCtx, e) })
	}
}
