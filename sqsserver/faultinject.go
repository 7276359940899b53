package sqsserver

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

const injectedMessage = "This failure was injected."

// injectRequestFault applies the faults that are set to a request. The error refuses the
// request before it has an effect; the replyFault applies to its reply.
func (s *Server) injectRequestFault(ctx context.Context, queue, action string) (replyFault, error) {
	if !s.faults.active.Load() || ctx.Value(exempt{}) != nil {
		return replyFault{}, nil
	}
	switch struck := s.faults.request(queue, action); struck.kind {
	case FaultThrottle:
		return replyFault{}, errRequestThrottled()
	case FaultServerError:
		return replyFault{}, errInternalFailure(injectedMessage)
	case FaultOverLimit:
		return replyFault{}, errOverLimit()
	case FaultDropConnection:
		return replyFault{}, ErrReplyLost
	default:
		return replyFault{struck}, nil
	}
}

// replyFault is the fault that applies to the reply of a request, or the zero value.
type replyFault struct{ fault injectedFault }

// delayOrLose delays the reply, or returns ErrReplyLost if it is to be lost. The error is
// ErrReplyLost, the context's, or nil.
func (a replyFault) delayOrLose(ctx context.Context) error {
	switch a.fault.kind {
	case FaultLoseReply:
		return ErrReplyLost
	case FaultSlowReply:
		timer := time.NewTimer(a.fault.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// count returns a number of messages for a reply: a wrong one if the fault asks for it.
func (a replyFault) count(name string, n int) string {
	if a.fault.kind == FaultWrongCounts {
		random := rand.New(rand.NewPCG(a.fault.random, uint64(len(name)))) // the names differ in length
		n = random.IntN(2*n + 10)
	}
	return strconv.Itoa(n)
}

// injectReceiveFaults makes some of the messages that have just been received visible at
// once, or sooner than the reply says.
func (s *Server) injectReceiveFaults(q *queue, deliveries []engine.Delivery) {
	if !s.faults.active.Load() {
		return
	}
	for i := range deliveries {
		switch struck := s.faults.entry(q.name, actionReceiveMessage); struck.kind {
		case FaultDuplicate:
			s.exposeDeliveries(q, deliveries[i:i+1])
		case FaultEarlyRedelivery:
			s.shortenVisibility(q, &deliveries[i], struck.delay)
		}
	}
}

// shortenVisibility makes a message visible again at most limit from now.
func (s *Server) shortenVisibility(q *queue, d *engine.Delivery, limit time.Duration) {
	_ = s.underLock(q, func(now time.Time) { // an error means that the queue has been deleted
		if d.VisibleAt.Sub(now) > limit {
			_ = s.engine.ChangeVisibility(now, q.engine, d.Receipt, limit) // an error means that the message was settled meanwhile
		}
	})
}
