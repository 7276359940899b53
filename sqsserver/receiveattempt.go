package sqsserver

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// attemptWindow is how long a receive of a FIFO queue can be tried again.
const attemptWindow = 5 * time.Minute

// attempts are the receives of a FIFO queue that named an attempt in the last five
// minutes. The zero value has none.
type attempts struct {
	byID  map[string]*attempt
	order []*attempt // oldest first
}

type attempt struct {
	id     string
	at     time.Time
	leases []engine.Lease // as the receive, or its last repetition, left them
}

// receiveAttempt receives for an attempt with the id, if there is one. If the attempt repeats an earlier one whose
// messages are still held unchanged, it returns them again, under the same receipt handles.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-receiverequestattemptid-request-parameter.html
func (s *Server) receiveAttempt(ctx context.Context, q *queue, w *waiter, limit time.Duration, id string) ([]engine.Delivery, error) {
	if id == "" {
		return s.receive(ctx, q, w, limit)
	}
	again := false
	err := s.underLock(q, func(now time.Time) {
		if earlier := q.attempts.recall(now, id); earlier != nil {
			w.deliveries, again = s.engine.Replay(now, q.engine, earlier.leases, w.visibility, w.deliveries)
			if again {
				earlier.note(w.deliveries)
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case again:
		return w.deliveries, nil
	}

	deliveries, err := s.receive(ctx, q, w, limit)
	if err != nil || len(deliveries) == 0 {
		return nil, err
	}
	err = s.underLock(q, func(now time.Time) { q.attempts.add(now, id).note(deliveries) })
	return deliveries, err
}

// recall returns the attempt with the id, or nil, and forgets those that are too
// old.
func (a *attempts) recall(now time.Time, id string) *attempt {
	for len(a.order) > 0 && now.Sub(a.order[0].at) >= attemptWindow {
		if oldest := a.order[0]; a.byID[oldest.id] == oldest {
			delete(a.byID, oldest.id)
		}
		a.order[0] = nil
		a.order = a.order[1:]
	}
	return a.byID[id]
}

func (a *attempts) add(now time.Time, id string) *attempt {
	if a.byID == nil {
		a.byID = make(map[string]*attempt)
	}
	fresh := &attempt{id: id, at: now}
	a.byID[id] = fresh
	a.order = append(a.order, fresh)
	return fresh
}

// note stores the leases that the attempt holds. A repetition of it cannot return messages that
// were received without a lease.
func (a *attempt) note(deliveries []engine.Delivery) {
	a.leases = a.leases[:0]
	for i := range deliveries {
		a.leases = append(a.leases, engine.Lease{Receipt: deliveries[i].Receipt, Until: deliveries[i].VisibleAt})
	}
}
