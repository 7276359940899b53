package sqsserver

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// DeleteMessage deletes a received message.
func (s *Server) DeleteMessage(ctx context.Context, in *DeleteMessageInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionDeleteMessage)
	if err != nil {
		return err
	}
	settlements := [1]settlement{newDelete(in.ReceiptHandle)}
	if err := s.settle(ctx, r.queue, settlements[:], actionDeleteMessage); err != nil {
		return err
	}
	if err := settlements[0].err; err != nil {
		return err
	}
	return r.delayOrLose(ctx)
}

// DeleteMessageBatch deletes up to ten received messages.
func (s *Server) DeleteMessageBatch(ctx context.Context, in *DeleteMessageBatchInput) (*DeleteMessageBatchOutput, error) {
	r, err := s.lookup(ctx, in.QueueUrl, actionDeleteMessageBatch)
	if err != nil {
		return nil, err
	}
	id := func(i int) string { return in.Entries[i].Id }
	if err := checkBatch("DeleteMessageBatchRequestEntry", len(in.Entries), id); err != nil {
		return nil, err
	}
	var buffer [maxBatchEntries]settlement
	settlements := buffer[:len(in.Entries)]
	for i := range in.Entries {
		settlements[i] = newDelete(in.Entries[i].ReceiptHandle)
	}
	if err := s.settle(ctx, r.queue, settlements, actionDeleteMessageBatch); err != nil {
		return nil, err
	}
	out := &DeleteMessageBatchOutput{}
	out.Successful, out.Failed = results(settlements, id)
	return out, r.delayOrLose(ctx)
}

// ChangeMessageVisibility hides a received message anew, or exposes it.
func (s *Server) ChangeMessageVisibility(ctx context.Context, in *ChangeMessageVisibilityInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionChangeMessageVisibility)
	if err != nil {
		return err
	}
	settlements := [1]settlement{newChange(in.ReceiptHandle, in.VisibilityTimeout)}
	if err := s.settle(ctx, r.queue, settlements[:], actionChangeMessageVisibility); err != nil {
		return err
	}
	if err := settlements[0].err; err != nil {
		return err
	}
	return r.delayOrLose(ctx)
}

// ChangeMessageVisibilityBatch hides anew or exposes up to ten received messages.
func (s *Server) ChangeMessageVisibilityBatch(ctx context.Context, in *ChangeMessageVisibilityBatchInput) (*ChangeMessageVisibilityBatchOutput, error) {
	r, err := s.lookup(ctx, in.QueueUrl, actionChangeMessageVisibilityBatch)
	if err != nil {
		return nil, err
	}
	id := func(i int) string { return in.Entries[i].Id }
	if err := checkBatch("ChangeMessageVisibilityBatchRequestEntry", len(in.Entries), id); err != nil {
		return nil, err
	}
	var buffer [maxBatchEntries]settlement
	settlements := buffer[:len(in.Entries)]
	for i := range in.Entries {
		settlements[i] = newChange(in.Entries[i].ReceiptHandle, in.Entries[i].VisibilityTimeout)
	}
	if err := s.settle(ctx, r.queue, settlements, actionChangeMessageVisibilityBatch); err != nil {
		return nil, err
	}
	out := &ChangeMessageVisibilityBatchOutput{}
	out.Successful, out.Failed = results(settlements, id)
	return out, r.delayOrLose(ctx)
}

// results splits the outcomes of a batch into the two lists of its output.
func results(settlements []settlement, id func(i int) string) (successful []BatchResultEntry, failed []BatchResultErrorEntry) {
	successful = make([]BatchResultEntry, 0, len(settlements))
	for i := range settlements {
		if err := settlements[i].err; err != nil {
			failed = append(failed, failedEntry(id(i), err))
		} else {
			successful = append(successful, BatchResultEntry{Id: id(i)})
		}
	}
	return successful, failed
}

// settlement is the delete or the change of visibility of one message, and its outcome.
type settlement struct {
	handle   string
	receipt  engine.Receipt
	deletion bool
	timeout  int32 // seconds; else
	fault    injectedFault
	err      error
}

func newDelete(handle string) settlement {
	return settlement{handle: handle, deletion: true}
}

func newChange(handle string, timeout OptionalInt) settlement {
	m := settlement{handle: handle, timeout: timeout.Value}
	switch {
	case !timeout.Set:
		m.err = errMissingParameter("VisibilityTimeout")
	case timeout.Value < 0 || timeout.Value > maxVisibilitySeconds:
		m.err = errVisibilityTimeout(timeout.Value)
	}
	return m
}

// settle carries settlements out, each on its own. Its error is that of the whole
// request.
func (s *Server) settle(ctx context.Context, q *queue, settlements []settlement, action string) error {
	for i := range settlements {
		m := &settlements[i]
		if m.err == nil {
			var h receiptHandle
			h, m.err = parseReceiptHandle(m.handle, q.id)
			m.receipt = h.receipt()
		}
		m.fault = s.faults.entry(q.name, action)
		switch {
		case m.fault.kind == FaultFailEntry:
			m.err = errInternalError(injectedMessage)
		case m.fault.kind == FaultStaleHandle && m.err == nil:
			m.err = q.errStaleHandle(m.handle)
		}
	}
	var synced *commitGroup
	err := s.underLock(q, func(now time.Time) {
		for i := range settlements {
			if m := &settlements[i]; m.err == nil {
				m.err = s.settleOne(now, q, m)
			}
		}
		// A delete makes room for messages in flight, which the engine does not
		// report as it does a message that becomes visible.
		s.longPoll.recheck(q)
		if settlements[0].deletion {
			synced = s.pendingCommit()
		}
	})
	if err != nil {
		return err
	}
	return synced.wait(ctx)
}

// errStaleHandle refuses a handle as SQS refuses one whose lease has ended.
func (q *queue) errStaleHandle(handle string) error {
	if q.fifo {
		return errReceiptHandleExpired(handle)
	}
	return errReceiptHandle(handle)
}

func (s *Server) settleOne(now time.Time, q *queue, m *settlement) error {
	timeout := seconds(m.timeout)
	switch m.fault.kind {
	case FaultLoseDelete:
		return nil
	case FaultEarlyRedelivery:
		timeout = min(timeout, m.fault.delay)
	case FaultLoseLease:
		if q.lost == nil {
			q.lost = make(map[engine.Receipt]struct{})
		}
		q.lost[m.receipt] = struct{}{}
		s.engine.Expose(now, q.engine, m.receipt)
	}
	if _, lost := q.lost[m.receipt]; lost {
		return errReceiptHandle(m.handle)
	}
	var err error
	if m.deletion {
		err = s.engine.Delete(now, q.engine, m.receipt)
	} else {
		err = s.engine.ChangeVisibility(now, q.engine, m.receipt, timeout)
	}
	switch {
	case errors.Is(err, engine.ErrExpired):
		return errReceiptHandleExpired(m.handle)
	case errors.Is(err, engine.ErrGone):
		return errMessageGone(m.handle)
	case errors.Is(err, engine.ErrBeyond12Hours):
		return errBeyond12Hours(m.timeout)
	}
	return err
}
