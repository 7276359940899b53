package sqsserver

import (
	"cmp"
	"context"
	"time"
)

// lookup begins an action on a queue: it finds the queue and lets faults refuse the
// request.
func (s *Server) lookup(ctx context.Context, queueURL, action string) (request, error) {
	return s.lookupName(ctx, s.callerOf(ctx).queueName(queueURL), action)
}

func (s *Server) lookupName(ctx context.Context, name queueName, action string) (request, error) {
	if err := ctx.Err(); err != nil {
		return request{}, err
	}
	s.mu.Lock()
	refusal := s.refusal()
	q := s.queues[name]
	var r request
	if q != nil {
		r = request{queue: q, attributes: q.attributes}
	}
	s.mu.Unlock()

	if refusal != nil {
		return request{}, refusal
	}
	if q == nil {
		return request{}, errQueueDoesNotExist()
	}
	s.note(ctx, q.name)
	var err error
	r.replyFault, err = s.injectRequestFault(ctx, name.name, action)
	return r, err
}

// request is a request whose queue has been found.
type request struct {
	queue      *queue
	attributes *attributes // of the queue when the request came
	replyFault
}

// underLock carries out an operation on the queue under the lock; the error reports that the server
// or the queue has gone since the request came. Messages that become receivable go to the long
// polls that wait for them.
func (s *Server) underLock(q *queue, do func(now time.Time)) error {
	s.mu.Lock()
	defer s.stopOnPanic()
	if s.writer != nil {
		s.writer.waitForRoom()
	}
	err := s.refusal()
	if err == nil && q.dropped {
		err = errQueueDoesNotExist()
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	do(s.clock.now())
	s.armTimer(q)
	s.serveAndUnlock()
	return nil
}

// change carries out a change of the request's queue under the lock, and returns when the change is
// on disk and the reply may be sent. If do returns an error it has changed nothing.
func (s *Server) change(ctx context.Context, r request, do func(now time.Time) error) error {
	var synced *commitGroup
	var refused error
	err := s.underLock(r.queue, func(now time.Time) {
		if refused = do(now); refused == nil {
			synced = s.pendingCommit()
		}
	})
	if err = cmp.Or(err, refused); err != nil {
		return err
	}
	if err := synced.wait(ctx); err != nil {
		return err
	}
	return r.delayOrLose(ctx)
}
