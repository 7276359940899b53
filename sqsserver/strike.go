package sqsserver

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

const injected = "This failure was injected."

// refuse lets faults strike a request: with an error before it has an effect, or
// by what becomes of its reply.
func (s *Server) refuse(ctx context.Context, queue, action string) (aftermath, error) {
	if !s.faults.active.Load() || ctx.Value(exempt{}) != nil {
		return aftermath{}, nil
	}
	switch struck := s.faults.request(queue, action); struck.kind {
	case FaultThrottle:
		return aftermath{}, errRequestThrottled()
	case FaultServerError:
		return aftermath{}, errInternalFailure(injected)
	case FaultOverLimit:
		return aftermath{}, errOverLimit()
	case FaultDropConnection:
		return aftermath{}, ErrReplyLost
	default:
		return aftermath{struck}, nil
	}
}

// aftermath is what a fault does to a request that has been carried out.
type aftermath struct{ struck strike }

// end gives the error of a request that has been carried out, or nil.
func (a aftermath) end(ctx context.Context) error {
	switch a.struck.kind {
	case FaultLoseReply:
		return ErrReplyLost
	case FaultSlowReply:
		timer := time.NewTimer(a.struck.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// count reports a number of messages.
func (a aftermath) count(name string, n int) string {
	if a.struck.kind == FaultWrongCounts {
		random := rand.New(rand.NewPCG(a.struck.dice, uint64(len(name)))) // no two of the names are equally long
		n = random.IntN(2*n + 10)
	}
	return strconv.Itoa(n)
}

// disturb exposes some of the messages that have just been received, or makes them
// visible sooner than the receive was promised.
func (s *Server) disturb(q *queue, deliveries []engine.Delivery) {
	if !s.faults.active.Load() {
		return
	}
	for i := range deliveries {
		switch struck := s.faults.entry(q.name, actionReceiveMessage); struck.kind {
		case FaultDuplicate:
			s.giveBack(q, deliveries[i:i+1])
		case FaultEarlyRedelivery:
			s.cutShort(q, &deliveries[i], struck.delay)
		}
	}
}

// cutShort hides a message for no longer than limit from now.
func (s *Server) cutShort(q *queue, d *engine.Delivery, limit time.Duration) {
	_ = s.within(q, func(now time.Time) { // or the queue has gone, and the message with it
		if d.VisibleAt.Sub(now) > limit {
			_ = s.engine.ChangeVisibility(now, q.engine, d.Receipt, limit) // who has settled it meanwhile needs no fault
		}
	})
}
