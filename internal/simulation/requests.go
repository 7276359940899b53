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
	sound := batch
	if o.Request == consumer.SendCopies && c.Damaged != nil {
		sound = c.leaveOutDamaged(batch, &asked)
	}
	kind := kindOf[o.Request]
	done := func(got []world.Entry, err error) {
		c.answered(kind, sound, got, err)
		replied := resultsOf(got, err)
		if len(sound) < len(batch) {
			c.insertDamaged(&replied, batch)
		}
		c.enter().Acknowledge(o, batch, &replied)
		c.leave()
		c.tellSettled()
		c.interrupt()
	}
	if len(sound) == 0 {
		done(nil, nil)
		return
	}
	entries := make([]world.Entry, len(sound))
	switch o.Request {
	case consumer.DeleteMessages, consumer.HideMessages:
		fill(entries, asked[:])
	case consumer.SendDeadLetters:
		for i, d := range sound {
			entries[i].Message = deadLetterOf(d, asked[i].Story, c.dead.Settings().FIFO)
		}
	case consumer.SendCopies:
		for i, d := range sound {
			entries[i].Message = c.copyOf(d, &asked[i])
		}
	}
	c.asks(kind, sound, entries)
	switch o.Request {
	case consumer.DeleteMessages:
		c.Queue.Delete(c.Link, entries, done)
	case consumer.HideMessages:
		c.Queue.ChangeVisibility(c.Link, entries, done)
	case consumer.SendDeadLetters:
		c.dead.Send(c.Link, entries, done)
	case consumer.SendCopies:
		c.Lane.Send(c.Link, entries, done)
	}
}

// kindOf returns the kind of the requests of an outbox.
var kindOf = [...]RequestKind{
	consumer.DeleteMessages: DeleteRequest, consumer.HideMessages: HideRequest,
	consumer.SendDeadLetters: DeadLetterRequest, consumer.SendCopies: CopyRequest,
}

var errDamaged = errors.New("its digest is wrong, so that a copy might not be what was sent")

// leaveOutDamaged returns the messages of a batch whose digests are right, and moves their entries to
// the front of asked.
func (c *Consumer) leaveOutDamaged(batch []*consumer.Delivery, asked *[consumer.MaxBatch]consumer.Entry) (sound []*consumer.Delivery) {
	for i, d := range batch {
		if !c.Damaged(d.Cargo.(*delivery).sent) {
			asked[len(sound)] = asked[i]
			sound = append(sound, d)
		}
	}
	return sound
}

// insertDamaged adds the results of the messages that leaveOutDamaged has left out.
func (c *Consumer) insertDamaged(replied *results, batch []*consumer.Delivery) {
	of, next := *replied, 0
	for i, d := range batch {
		if c.Damaged(d.Cargo.(*delivery).sent) {
			replied[i] = consumer.Failure{Err: errDamaged, Kinds: consumer.Damaged}
			continue
		}
		replied[i] = of[next]
		next++
	}
}

// asks tells the watcher that a request begins.
func (c *Consumer) asks(kind RequestKind, batch []*consumer.Delivery, entries []world.Entry) {
	if c.Watcher != nil {
		c.Watcher.Asks(kind, askedOf(batch, entries))
	}
}

// answered tells the watcher that a request has ended.
func (c *Consumer) answered(kind RequestKind, batch []*consumer.Delivery, got []world.Entry, err error) {
	c.requested(kind, len(got), err)
	if c.Watcher != nil && len(got) > 0 {
		c.Watcher.Answered(kind, askedOf(batch, got), got, err)
	}
}

// askedOf returns a batch as the watcher sees it now.
func askedOf(batch []*consumer.Delivery, entries []world.Entry) []Asked {
	all := make([]Asked, len(batch))
	for i, d := range batch {
		all[i] = Asked{ID: d.ID, Payload: d.Cargo.(*delivery).payload, Receipt: receiptOf(*d.Handle), Outcome: d.Outcome()}
		if c, ok := entries[i].Message.Payload.(*Copy); ok {
			all[i].History = c.History
		}
	}
	return all
}

// fill makes entries of what is asked for messages that are received.
func fill(entries []world.Entry, asked []consumer.Entry) {
	for i := range entries {
		entries[i].Receipt = receiptOf(*asked[i].Handle)
		entries[i].Visibility = time.Duration(asked[i].Seconds) * time.Second
	}
}

// copyOf returns the copy that replaces d in the queue.
func (c *Consumer) copyOf(d *consumer.Delivery, e *consumer.Entry) engine.Message {
	m := engine.Message{
		Payload: &Copy{Payload: d.Cargo.(*delivery).sent, History: e.History, Signed: c.Signs},
		Group:   d.GroupID, Delay: time.Duration(e.Seconds) * time.Second,
	}
	if e.Seconds == 0 {
		m.Delay = -1 // the queue's own, as without DelaySeconds
	}
	return m
}

// deadLetterOf returns the message that is sent to the dead-letter queue for d.
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
		c.answered(RenewRequest, batch, got, err)
		replied := resultsOf(got, err)
		c.enter().Renewed(batch, asked, &replied, requested)
		c.leave()
		c.tellSettled()
		c.interrupt()
	}
	if len(batch) == 0 {
		done(nil, nil)
		return
	}
	entries := make([]world.Entry, len(batch))
	fill(entries, asked[:])
	c.asks(RenewRequest, batch, entries)
	c.Queue.ChangeVisibility(c.Beats, entries, done)
}

func (c *Consumer) wake(w *consumer.Waking) {
	entries := make([]world.Entry, len(w.Handles))
	for i, handle := range w.Handles {
		entries[i].Receipt = receiptOf(*handle)
	}
	c.Queue.ChangeVisibility(c.Beats, entries, func(got []world.Entry, err error) {
		c.answered(WakeRequest, nil, got, err)
		replied := resultsOf(got, err)
		c.enter().Woken(w, &replied)
		c.leave()
	})
}

// resultsOf returns the results of a batch's entries, classified as in the shell.
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

// Failure returns what the machine is told about a request that failed with err. It is what the shell
// reports for SQS's own error of this kind.
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
