package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/sending"
	"github.com/reprise-sqs/reprise/internal/world"
)

// simulatedSender is the shell of a Sender's machine in a world of virtual time.
type simulatedSender struct {
	*world.Process
	machine *sending.Machine
	link    *world.Link
	queue   *world.Queue
	timer   *world.Timer
	told    func(m engine.Message, err error) // SQS has taken it, or it is given up
}

// sentMessage is a message that a simulated sender was given.
type sentMessage struct {
	sending.Message
	message engine.Message
	err     error // what the last request said of it
}

func newSimulatedSender(p *world.Process, q *world.Queue, latency world.Latency, told func(engine.Message, error)) *simulatedSender {
	s := &simulatedSender{Process: p, queue: q, link: p.NewLink(latency, settleTimeout), told: told}
	s.machine = sending.New(sending.Settings{
		FIFO: q.Settings().FIFO, Linger: defaultSendLinger, Requests: 4, MaxWaiting: 1000, MaxBytes: -1,
		LastingTries: lastingTries, ComplainEvery: consumer.ComplaintEvery, Retry: sendBackoff, Seed: p.Name,
	})
	s.timer = p.NewTimer(func() { s.step(s.machine.Due) })
	return s
}

// send hands m over.
func (s *simulatedSender) send(m engine.Message) {
	p := &sentMessage{Message: sending.Message{Size: len(m.Payload.(*letter).body), Group: m.Group}, message: m}
	p.Cargo = p
	s.step(func(now time.Time) { s.machine.Add(now, &p.Message) })
}

// step gives the machine an input, and carries out what follows from it.
func (s *simulatedSender) step(input func(now time.Time)) {
	input(s.Now())
	for _, e := range s.machine.Effects() {
		if e.Kind == sending.Answered || e.Kind == sending.GivenUp {
			p := e.Message.Cargo.(*sentMessage)
			s.told(p.message, p.err)
		}
	}
	s.machine.Done()
	for batch := s.machine.Next(s.Now()); batch != nil; batch = s.machine.Next(s.Now()) {
		s.request(batch)
	}
	s.timer.Set(s.machine.Deadline())
}

func (s *simulatedSender) request(batch []*sending.Message) {
	entries := make([]world.Entry, len(batch))
	for i, m := range batch {
		entries[i].Message = m.Cargo.(*sentMessage).message
	}
	s.queue.Send(s.link, entries, func(got []world.Entry, err error) {
		of := resultsOf(got, err)
		var results [sending.MaxEntries]sending.Result
		for i, m := range batch {
			m.Cargo.(*sentMessage).err = of[i].Err
			results[i] = sending.Result{Verdict: verdictOf(of[i].Err, failure(err)), Unsure: mayHaveSent(of[i].Err)}
		}
		s.step(func(now time.Time) { s.machine.Replied(now, batch, &results) })
	})
}
