package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// A retry in a retry lane, and one that is requeued, waits as a copy that the queue delays. A consumer that receives
// it before it is due hides it again, unless it was told to retry it: so it is told first, and then the server makes
// the copy visible. If another process receives it, that hides it until it is due, and nothing is lost.

// retryDelayed tells the consumer that it is to retry a copy that its queue delays, so that the server can make it
// visible. It returns an error for a copy that stays hidden.
func (a *API) retryDelayed(c *Running, queue string, m *Message) error {
	due := m.Copy.Due.UTC().Format(time.RFC3339)
	switch {
	case m.State != string(sqsserver.Delayed):
		return problem(http.StatusConflict, "refused", "the message is a copy that is due at %s, and another process has received it and hides it until then: "+
			"have that process retry it, by reprise wake %s --id %s --admin ITS-ADDRESS, or wait", due, queue, m.ID)
	case !c.RetryOnReceive(m.ID):
		return problem(http.StatusConflict, "refused", "the message is a copy that is due at %s, and its consumer would hide it again until then: its circuit breaker is open, it stops, "+
			"or too many others are to be retried already", due)
	}
	return nil
}

// queuesOf returns the names of the queues of the process's own server that have a consumer's messages.
func (a *API) queuesOf(c *Running) (names []string) {
	if a.cfg.Server == nil {
		return nil
	}
	names = append(names, operate.NameOf(c.URL))
	if c.RetryLaneURL != "" {
		names = append(names, operate.NameOf(c.RetryLaneURL))
	}
	return names
}

// retryCopies retries those of a consumer's copies that the process's own server delays and whose ids are wanted. It
// returns the ids of those that will be retried, and how many are left. One that somebody receives meanwhile is
// neither: its receiver may run it, so it must not become visible to others.
func (a *API) retryCopies(ctx context.Context, c *Running, wanted func(id string) bool) (retried []string, left int, err error) {
	for _, queue := range a.queuesOf(c) {
		some, _ := a.cfg.Server.EndDelays(ctx, queue, func(info *sqsserver.MessageInfo) bool {
			switch {
			case !mayBeDelayedCopy(info) || !wanted(info.ID):
				return false
			case !c.RetryOnReceive(info.ID): // before its history is read: of a million most are refused
				left++
				return false
			}
			return a.waits(queue, info) // else it is due, so nothing changes by what the consumer was told
		})
		retried = append(retried, some...)
		if ctx.Err() != nil {
			// The server notices that only between messages: it has no error if the request ended at the last.
			return retried, left, fmt.Errorf("the request ended after %s: %w", plural.Of(len(retried), "copy"), context.Cause(ctx))
		}
		// An error that is left says that the queue was deleted, or that the server stops, which others report.
	}
	return retried, left, nil
}

// mayBeDelayedCopy reports whether a queue delays a message that has a history: waits says more, and takes longer.
func mayBeDelayedCopy(info *sqsserver.MessageInfo) bool {
	return info.State == sqsserver.Delayed && slices.ContainsFunc(info.Attributes, func(a sqsserver.MessageAttribute) bool {
		return a.Name == reprise.HistoryAttribute
	})
}

// waits reports whether a message is a copy that is not yet due.
func (a *API) waits(queue string, info *sqsserver.MessageInfo) bool {
	m := messageOf(queue, info)
	return m.WaitsAsCopy(a.cfg.Server.Now())
}

// LeftText says how many copies wake has left, and why; empty: none.
func (d *Done) LeftText() string {
	if d.CopiesLeft == 0 {
		return ""
	}
	return plural.Of(d.CopiesLeft, "copy") + " left to be retried when due: the circuit breaker is open, the consumer stops, or 10,000 others are to be retried first"
}
