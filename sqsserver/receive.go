package sqsserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Limits of a receive.
const (
	maxReceived          = 10
	maxWaitSeconds       = 20
	maxVisibilitySeconds = 43200
)

// ReceiveMessage receives up to ten messages and, as a long poll, waits for the
// first. When the context ends during the wait it returns the context's error
// and has received nothing.
func (s *Server) ReceiveMessage(ctx context.Context, in *ReceiveMessageInput) (*ReceiveMessageOutput, error) {
	out, err := s.receiveMessage(ctx, in)
	if err != nil {
		return nil, err
	}
	defer out.free()
	return out.plain(), nil
}

// receiveMessage is ReceiveMessage, but returns messages in the form in which the server keeps
// them.
func (s *Server) receiveMessage(ctx context.Context, in *ReceiveMessageInput) (received, error) {
	r, err := s.lookup(ctx, in.QueueUrl, actionReceiveMessage)
	if err != nil {
		return received{}, err
	}
	wanted, err := checkReceive(r.attributes, in)
	if err != nil {
		return received{}, err
	}

	w := newWaiter()
	defer w.free()
	w.max = int(in.MaxNumberOfMessages.Or(1))
	w.visibility = -1
	if in.VisibilityTimeout.Set {
		w.visibility = seconds(in.VisibilityTimeout.Value)
	}
	wait := seconds(in.WaitTimeSeconds.Or(r.attributes.wait))
	deliveries, err := s.receiveAttempt(ctx, r.queue, w, wait, in.ReceiveRequestAttemptId)
	if err != nil {
		return received{}, err
	}
	s.injectReceiveFaults(r.queue, deliveries)
	if err := r.delayOrLose(ctx); err != nil {
		if !errors.Is(err, ErrReplyLost) {
			s.exposeDeliveries(r.queue, deliveries)
		}
		return received{}, err
	}

	if deliveries, err = s.loadBodies(r.queue, deliveries, true); err != nil {
		return received{}, err
	}
	out := newReceived(len(deliveries))
	var handles handleTexts
	handles.grow(len(deliveries))
	for i := range deliveries {
		r.queue.message(&out.messages[i], &deliveries[i], &handles, wanted, in.MessageAttributeNames)
	}
	return out, nil
}

// received is a ReceiveMessageOutput whose bodies are still as the server keeps them.
type received struct {
	messages []message // in room
	buffer   *[maxReceived]message
}

type message struct {
	Message // without Body
	body    body
}

var messageBuffers = sync.Pool{New: func() any { return new([maxReceived]message) }}

// newReceived has room for n messages, and must be freed when it has been copied or written. It
// takes no buffer before there are messages, because many long polls may wait.
func newReceived(n int) received {
	if n == 0 {
		return received{}
	}
	room := messageBuffers.Get().(*[maxReceived]message)
	return received{room[:n], room}
}

// free drops the messages, which the pool would keep alive, and returns the buffer.
func (out *received) free() {
	if out.buffer != nil {
		clear(out.messages)
		messageBuffers.Put(out.buffer)
		*out = received{}
	}
}

func (out *received) plain() *ReceiveMessageOutput {
	if len(out.messages) == 0 {
		return &ReceiveMessageOutput{}
	}
	plain := make([]Message, len(out.messages))
	for i := range out.messages {
		m := &out.messages[i]
		plain[i] = m.Message
		plain[i].Body = m.body.plain()
	}
	return &ReceiveMessageOutput{Messages: plain}
}

func checkReceive(a *attributes, in *ReceiveMessageInput) (systemAttributeSet, error) {
	if n := in.MaxNumberOfMessages; n.Set && (n.Value < 1 || n.Value > maxReceived) {
		return 0, errMaxNumberOfMessages(n.Value)
	}
	if n := in.WaitTimeSeconds.Value; n < 0 || n > maxWaitSeconds {
		return 0, errWaitTimeSeconds(n)
	}
	if n := in.VisibilityTimeout.Value; n < 0 || n > maxVisibilitySeconds {
		return 0, errVisibilityTimeout(n)
	}
	if id := in.ReceiveRequestAttemptId; id != "" || in.emptyAttemptID {
		if !a.fifo {
			return 0, errNeedsFIFO("ReceiveRequestAttemptId", id)
		}
		if err := checkIdentifier("ReceiveRequestAttemptId", id, in.emptyAttemptID); err != nil {
			return 0, err
		}
	}
	older, unknown := systemAttributesNamed(in.AttributeNames)
	if unknown >= 0 {
		return 0, errUnknownAttribute(in.AttributeNames[unknown])
	}
	wanted, _ := systemAttributesNamed(in.MessageSystemAttributeNames) // AWS ignores unknown names
	return wanted | older, nil
}

// receive receives the messages that are available or, if there are none, waits up to limit
// for the first.
func (s *Server) receive(ctx context.Context, q *queue, w *waiter, limit time.Duration) ([]engine.Delivery, error) {
	for {
		var overLimit error
		waits, unfinished := false, false
		err := s.underLock(q, func(now time.Time) {
			w.deliveries, overLimit = s.engine.Receive(now, q.engine, w.max, w.visibility, w.deliveries)
			if len(w.deliveries) > 0 || overLimit != nil && limit == 0 {
				return
			}
			if waits = limit > 0; waits {
				s.addWaiter(now, q, w, limit)
				return
			}
			// With much to expire or to dead-letter first, a receive ends empty
			// before it has seen everything; the engine then wakes the queue.
			s.recheckWoken()
			unfinished = slices.Contains(s.longPoll.woken, q.engine)
		})
		switch {
		case err != nil:
			return nil, err
		case waits:
			return s.wait(ctx, q, w)
		case unfinished:
			continue
		case overLimit != nil:
			return nil, errOverLimit()
		}
		return w.deliveries, nil
	}
}

// message sets m to the delivery, with the attributes that the receive asked for.
func (q *queue) message(m *message, d *engine.Delivery, handles *handleTexts, wanted systemAttributeSet, names []string) {
	c := d.Payload.(*content)
	*m = message{}
	m.MessageId = UUID(d.ID)
	m.ReceiptHandle = handles.of(receiptHandle{
		queue: q.id, number: d.Receipt.Number, generation: d.Receipt.Generation, message: UUID(d.ID),
	})
	m.body, m.MD5OfBody = c.body, c.bodyMD5
	if wanted != 0 {
		m.Attributes = systemAttributesOf(d)
		wanted.keep(&m.Attributes)
	}
	m.MessageAttributes = selectAttributes(c.attributes, names)
	if len(m.MessageAttributes) == len(c.attributes) {
		m.MD5OfMessageAttributes = c.attributesMD5
	} else {
		m.MD5OfMessageAttributes = digestAttributes(m.MessageAttributes)
	}
}

func systemAttributesOf(d *engine.Delivery) SystemAttributes {
	c := d.Payload.(*content)
	trace := c.traceHeader
	if len(trace) > maxTraceHeader {
		trace = "" // an old journal may have longer ones; ten in a reply could be 70 MiB
	}
	return SystemAttributes{
		SenderId:                         c.sender,
		SentTimestamp:                    d.SentAt.UnixMilli(),
		ApproximateReceiveCount:          d.Receives,
		ApproximateFirstReceiveTimestamp: d.FirstReceived.UnixMilli(),
		SequenceNumber:                   publicSequence(d.Sequence),
		MessageDeduplicationId:           d.Dedup,
		MessageGroupId:                   d.Group,
		AWSTraceHeader:                   trace,
		DeadLetterQueueSourceArn:         d.Source,
	}
}

// exposeUndelivered makes messages visible again whose reply did not reach the client.
func (s *Server) exposeUndelivered(from *caller, queueURL string, out *received) {
	s.config.Logger.Debug("sqsserver: the reply of a receive could not be delivered; its messages are visible again",
		"queue", queueURL, "messages", len(out.messages))
	q := s.find(from, queueURL)
	if q == nil {
		return
	}
	deliveries := make([]engine.Delivery, 0, len(out.messages))
	for i := range out.messages {
		if h, err := parseReceiptHandle(out.messages[i].ReceiptHandle, q.id); err == nil {
			deliveries = append(deliveries, engine.Delivery{Receipt: h.receipt()})
		}
	}
	s.exposeDeliveries(q, deliveries)
}

func (h receiptHandle) receipt() engine.Receipt {
	return engine.Receipt{Number: h.number, Generation: h.generation}
}
