package admin

import (
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

// retryCopy retries the copy with that id, if the process's own server delays it, and reports whether it does.
func (a *API) retryCopy(c *Running, id string) bool {
	for _, queue := range a.queuesOf(c) {
		if info, err := a.cfg.Server.Message(queue, id); err == nil && mayBeDelayedCopy(&info) && a.waits(queue, &info) {
			return c.RetryOnReceive(id) && a.cfg.Server.Release(queue, id) == nil
		}
	}
	return false
}

// retryCopies retries all copies of a consumer that the process's own server delays. It returns how many will be
// retried, and how many are left.
func (a *API) retryCopies(c *Running) (retried, left int) {
	for _, queue := range a.queuesOf(c) {
		for after := uint64(0); ; {
			infos, err := a.cfg.Server.Messages(queue, sqsserver.Page{After: after, Limit: pageSize, WithoutBodies: true})
			if err != nil { // the queue was deleted, or the server stops
				break
			}
			for i := range infos {
				info := &infos[i]
				after = info.Number
				switch {
				case !mayBeDelayedCopy(info):
				case !c.RetryOnReceive(info.ID): // before its history is read: of a million most are refused
					left++
				case !a.waits(queue, info): // it is due, so nothing changes by what the consumer was told
				case a.cfg.Server.Release(queue, info.ID) == nil:
					retried++
				default:
					left++
				}
			}
			if len(infos) < pageSize {
				break
			}
		}
	}
	return retried, left
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
