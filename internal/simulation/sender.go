package simulation

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/sending"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// Sender is a simulated sender: the machine of internal/sending with the settings of a Sender by
// default. It is made by [NewSender].
type Sender struct {
	Link *world.Link

	process *world.Process
	machine *sending.Machine
	queue   *world.Queue
	timer   *world.Timer
	size    func(payload any) int
	told    func(m engine.Message, sent bool)
}

// parcel is a message that a sender was given.
type parcel struct {
	sending.Message
	message engine.Message
	sent    bool // SQS has confirmed it in the last request with it
}

// NewSender makes a sender to q. told is called when SQS has accepted a message or it is given up.
func NewSender(p *world.Process, q *world.Queue, latency world.Latency, size func(payload any) int, told func(m engine.Message, sent bool)) *Sender {
	s := &Sender{process: p, queue: q, Link: p.NewLink(latency, settleTimeout), size: size, told: told}
	s.machine = sending.New(sending.Settings{
		FIFO: q.Settings().FIFO, Linger: 20 * time.Millisecond, Requests: 4, MaxWaiting: 1000, MaxBytes: -1,
		LastingTries: 3, ComplainEvery: consumer.ComplaintEvery, Seed: p.Name,
		Retry: retry.Policy{Backoff: retry.Exponential{Base: 100 * time.Millisecond, Max: 5 * time.Second}, Jitter: retry.Equal},
	})
	s.timer = p.NewTimer(func() { s.step(s.machine.Due) })
	return s
}

// Send gives m to the sender.
func (s *Sender) Send(m engine.Message) {
	p := &parcel{Message: sending.Message{Size: s.size(m.Payload), Group: m.Group}, message: m}
	p.Cargo = p
	s.step(func(now time.Time) { s.machine.Add(now, &p.Message) })
}

// step gives the machine an input, and carries out the effects.
func (s *Sender) step(input func(now time.Time)) {
	input(s.process.Now())
	for _, e := range s.machine.Effects() {
		if e.Kind == sending.Answered || e.Kind == sending.GivenUp {
			p := e.Message.Cargo.(*parcel)
			s.told(p.message, p.sent)
		}
	}
	s.machine.Done()
	for batch := s.machine.Next(s.process.Now()); batch != nil; batch = s.machine.Next(s.process.Now()) {
		s.request(batch)
	}
	s.timer.Set(s.machine.Deadline())
}

func (s *Sender) request(batch []*sending.Message) {
	entries := make([]world.Entry, len(batch))
	for i, m := range batch {
		entries[i].Message = m.Cargo.(*parcel).message
	}
	s.queue.Send(s.Link, entries, func(got []world.Entry, err error) {
		var replied [sending.MaxEntries]sending.Result
		for i, m := range batch {
			replied[i] = sending.Result{Verdict: verdictOf(got[i].Err, err), Unsure: err != nil}
			m.Cargo.(*parcel).sent = replied[i].Verdict == sending.Taken
		}
		s.step(func(now time.Time) { s.machine.Replied(now, batch, &replied) })
	})
}

// verdictOf returns the verdict on an entry that SQS refused or whose request failed. If both errors are
// nil, SQS has accepted it.
func verdictOf(refused, failed error) sending.Verdict {
	kinds := Failure(failed).Kinds
	switch {
	case kinds&consumer.Unacceptable != 0:
		return sending.Unacceptable
	case kinds&consumer.Lasting != 0:
		return sending.Lasting
	case failed != nil || errors.Is(refused, world.ErrRefused):
		return sending.Failed
	case refused != nil:
		return sending.Refused
	}
	return sending.Taken
}
