package simulation

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

type results = [consumer.MaxBatch]consumer.Failure

// send makes the request for a batch of an outbox.
func (c *Consumer) send(o *consumer.Outbox, batch []*consumer.Delivery) {
	var asked [consumer.MaxBatch]consumer.Entry
	batch = c.enter().Prepare(o, batch, &asked)
	c.leave()
	done := func(got []world.Entry, err error) {
		c.requested(kindOf[o.Request], len(got), err)
		replied := resultsOf(got, err)
		c.enter().Acknowledge(o, batch, &replied)
		c.leave()
	}
	if len(batch) == 0 {
		done(nil, nil)
		return
	}
	entries := make([]world.Entry, len(batch))
	switch o.Request {
	case consumer.DeleteMessages:
		fill(entries, asked[:])
		c.Queue.Delete(c.link, entries, done)
	case consumer.HideMessages:
		fill(entries, asked[:])
		c.Queue.ChangeVisibility(c.link, entries, done)
	case consumer.SendDeadLetters:
		to := c.Service.Queue(c.facts().DeadLetter.Name)
		for i, d := range batch {
			entries[i].Message = deadLetterOf(d, asked[i].Story, to.Settings().FIFO)
		}
		to.Send(c.link, entries, done)
	case consumer.SendCopies:
		for i, d := range batch {
			entries[i].Message = copyOf(d, &asked[i])
		}
		c.Queue.Send(c.link, entries, done)
	}
}

// kindOf says what the requests of an outbox are for.
var kindOf = [...]RequestKind{
	consumer.DeleteMessages: DeleteRequest, consumer.HideMessages: HideRequest,
	consumer.SendDeadLetters: DeadLetterRequest, consumer.SendCopies: CopyRequest,
}

// fill makes entries of what is asked for messages that are received.
func fill(entries []world.Entry, asked []consumer.Entry) {
	for i := range entries {
		entries[i].Receipt = receiptOf(*asked[i].Handle)
		entries[i].Visibility = time.Duration(asked[i].Seconds) * time.Second
	}
}

// copyOf is the copy that takes d's place in the queue.
func copyOf(d *consumer.Delivery, e *consumer.Entry) engine.Message {
	m := engine.Message{
		Payload: &Copy{Payload: d.Cargo.(*delivery).payload, History: e.History},
		Group:   d.GroupID, Delay: time.Duration(e.Seconds) * time.Second,
	}
	if e.Seconds == 0 {
		m.Delay = -1 // the queue's own, as without DelaySeconds
	}
	return m
}

// deadLetterOf is the message that is sent to the dead-letter queue for d.
func deadLetterOf(d *consumer.Delivery, story *consumer.Story, fifo bool) engine.Message {
	m := engine.Message{Payload: &DeadLetter{Payload: d.Cargo.(*delivery).payload, Story: *story}, Group: d.GroupID, Delay: -1}
	if fifo {
		m.Dedup = d.ID
		if m.Group == "" {
			m.Group = d.ID
		}
	}
	return m
}

func (c *Consumer) heartbeat(batch []*consumer.Delivery) {
	asked := new([consumer.MaxBatch]consumer.Entry)
	m := c.enter()
	requested := m.Now()
	batch = m.Renew(batch, asked)
	c.leave()
	done := func(got []world.Entry, err error) {
		c.requested(RenewRequest, len(got), err)
		replied := resultsOf(got, err)
		c.enter().Renewed(batch, asked, &replied, requested)
		c.leave()
	}
	if len(batch) == 0 {
		done(nil, nil)
		return
	}
	entries := make([]world.Entry, len(batch))
	fill(entries, asked[:])
	c.Queue.ChangeVisibility(c.beats, entries, done)
}

func (c *Consumer) wake(w *consumer.Waking) {
	entries := make([]world.Entry, len(w.Handles))
	for i, handle := range w.Handles {
		entries[i].Receipt = receiptOf(*handle)
	}
	c.Queue.ChangeVisibility(c.beats, entries, func(got []world.Entry, err error) {
		c.requested(WakeRequest, len(got), err)
		replied := resultsOf(got, err)
		c.enter().Woken(w, &replied)
		c.leave()
	})
}

// resultsOf are the results of a batch's entries, as the shell sorts them.
func resultsOf(got []world.Entry, err error) (replied results) {
	for i := range got {
		switch refused := got[i].Err; {
		case err != nil:
			replied[i] = Failure(err)
		case refused == nil:
		case errors.Is(refused, world.ErrRefused):
			replied[i] = consumer.Failure{Err: refused, Kinds: consumer.OfEntry}
		default:
			replied[i] = consumer.Failure{Err: refused, Kinds: consumer.OfEntry | consumer.BySender}
		}
	}
	return replied
}

// Failure is what the machine is told of a request that failed with err: what the shell tells it of
// SQS's own error for that.
func Failure(err error) consumer.Failure {
	f := consumer.Failure{Err: err}
	switch {
	case errors.Is(err, world.ErrThrottled):
		f.Kinds = consumer.Rejected
	case errors.Is(err, world.ErrDenied):
		f.Kinds = consumer.Rejected | consumer.Lasting | consumer.Denied
	case errors.Is(err, world.ErrKey):
		f.Kinds = consumer.Rejected | consumer.Lasting | consumer.DeniedByKey
	case errors.Is(err, world.ErrUnacceptable):
		f.Kinds = consumer.Rejected | consumer.Unacceptable
	case errors.Is(err, engine.ErrOverLimit):
		f.Kinds = consumer.Rejected | consumer.OverLimit
	}
	return f
}
