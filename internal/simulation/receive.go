package simulation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/history"
)

// Copy is the payload of a copy that a consumer has sent to replace a message. [Spec.Handler]
// gets the payload in it.
type Copy struct {
	Payload any
	History string
	Signed  bool // as [Spec.Signs] says
}

// DeadLetter is the payload of a message that a consumer has given up. [Spec.Handler] gets the
// payload in it if it is moved back.
type DeadLetter struct {
	Payload any
	Story   consumer.Story
}

// delivery is a message that the consumer holds: the machine's part of it, and ours.
type delivery struct {
	consumer.Delivery
	sent    any // its payload, without the history of a copy
	payload any // its payload as first sent, without a history and a story

	shift        // its latest, unless that was in a batch
	in    *batch // nil: it was in none
}

// ID returns the id of the message that a Subject of the machine's reports is about.
func ID(s consumer.Subject) string { return s.Cargo.(*delivery).ID }

// PayloadOf returns the payload, as it was sent, of the message that a Subject is about.
func PayloadOf(s consumer.Subject) any { return s.Cargo.(*delivery).payload }

// receiving is a receive in flight. A consumer reuses them, because most receives are empty.
type receiving struct {
	poller *consumer.Poller
	n      int
	asked  time.Time
	over   bool                           // a stop has cancelled it: its messages stay leased
	got    func([]engine.Delivery, error) // takes in its reply
}

func (c *Consumer) receive(p *consumer.Poller, n int) {
	r := c.newReceive()
	r.poller, r.n, r.asked = p, n, c.now()
	c.receiving = append(c.receiving, r)
	c.Queue.Receive(c.Link, n, c.Settings.Lease, c.Settings.LongPoll, r.got)
}

// newReceive returns a receive that is not in flight.
func (c *Consumer) newReceive() *receiving {
	if last := len(c.received) - 1; last >= 0 {
		r := c.received[last]
		c.received = c.received[:last]
		return r
	}
	r := new(receiving)
	r.got = func(got []engine.Delivery, err error) {
		c.requested(ReceiveRequest, len(got), err)
		if !r.over {
			c.receiveEnds(r)
			p, n, asked := r.poller, r.n, r.asked
			c.received = append(c.received, r)
			c.took(p, n, got, err, asked)
		}
	}
	return r
}

func (c *Consumer) receiveEnds(r *receiving) {
	c.receiving = slices.DeleteFunc(c.receiving, func(other *receiving) bool { return other == r })
}

// took handles the reply to a receive.
func (c *Consumer) took(p *consumer.Poller, n int, got []engine.Delivery, err error, asked time.Time) {
	if err != nil {
		c.enter().ReceiveFailed(p, n, Failure(err))
		c.leave()
		return
	}
	answered := c.now()
	late := c.readClock(got, asked)
	batch, ignored := c.unpack(got, answered)
	m := c.enter()
	for _, d := range ignored {
		m.IgnoredHistory(d.delivery, d.err, d.unsigned)
	}
	m.Took(p, n, batch, asked, answered, late)
	c.leave()
	c.tellSettled() // of messages whose lease had ended before they arrived
	c.interrupt()
}

// readClock notes how far the clock of SQS is ahead, and returns for how long the reply has waited to be read. A real
// consumer sees both in the Date of a reply; here the leases of its messages say when it was sent.
func (c *Consumer) readClock(got []engine.Delivery, asked time.Time) (late time.Duration) {
	sent := c.Service.Now()
	if len(got) > 0 {
		if granted := got[0].VisibleAt.Add(-c.Settings.Lease); granted.Before(sent) {
			sent = granted
		}
	}
	now := c.now() // the clock by which the machine compares
	return c.ahead.Observe(sent.Sub(now), asked, now)
}

// ignored is a message whose history does not count.
type ignored struct {
	delivery *consumer.Delivery
	err      error
	unsigned error
}

// unpack makes deliveries of the messages of a receive. They share one allocation, because most of
// them end together.
func (c *Consumer) unpack(got []engine.Delivery, now time.Time) (batch []*consumer.Delivery, bad []ignored) {
	own := make([]delivery, len(got))
	batch = make([]*consumer.Delivery, len(got))
	handles := handlesOf(got)
	for i := range own {
		d, from := &own[i], &got[i]
		if c.Watcher != nil {
			c.Watcher.Arrived(from)
		}
		d.Cargo, d.sent = d, from.Payload
		d.ID = from.ID.String()
		d.OriginID, d.GroupID, d.Handle = d.ID, from.Group, &handles[i]
		d.Sent, d.FirstReceived = from.SentAt.Truncate(time.Millisecond), from.FirstReceived.Truncate(time.Millisecond)
		d.Received, d.Receives, d.Size = now, from.Receives, c.Size
		if from.Sequence > 0 {
			d.SetSequence(fmt.Sprintf("%020d", from.Sequence))
		}
		if err, unsigned := c.open(d); err != nil || unsigned != nil {
			bad = append(bad, ignored{&d.Delivery, err, unsigned})
		}
		if c.Measure != nil {
			d.Size, d.Attributes = c.Measure(d.sent)
		}
		if d.Receives > 1 && !c.Settings.Queue.FIFO {
			d.CountPossibleAttempts(c.machine.Policy(), c.ahead.Lead(), now)
		}
		if c.Key != nil {
			d.Key = c.Key(d.payload)
		}
		batch[i] = &d.Delivery
	}
	return batch, bad
}

var errUnsigned = errors.New("no signing key has signed it")

// open returns the sender's payload in a copy or a dead letter, and an error if its history is
// ignored because it is not plausible or not signed.
func (c *Consumer) open(d *delivery) (err, unsigned error) {
	p, isCopy := d.sent.(*Copy)
	if isCopy {
		d.sent = p.Payload
	}
	d.payload = d.sent
	if letter, ok := d.sent.(*DeadLetter); ok {
		d.payload = letter.Payload
	}
	if isCopy {
		h, err := history.Read(p.History, c.Settings.Queue.Name, d.Sent)
		if c.Signs && !p.Signed {
			unsigned = errUnsigned
		}
		if err != nil || unsigned != nil {
			return err, unsigned
		}
		d.Adopt(h, c.ahead.Lead())
	}
	return nil, nil
}

const handleSize = 12

// handlesOf are the receipt handles of messages.
func handlesOf(got []engine.Delivery) []string {
	var room [10 * handleSize]byte
	all := room[:0]
	for i := range got {
		all = binary.BigEndian.AppendUint64(all, got[i].Receipt.Number)
		all = binary.BigEndian.AppendUint32(all, got[i].Receipt.Generation)
	}
	text := string(all)
	handles := make([]string, len(got))
	for i := range handles {
		handles[i] = text[i*handleSize:][:handleSize]
	}
	return handles
}

func receiptOf(handle string) engine.Receipt {
	raw := []byte(handle)
	return engine.Receipt{Number: binary.BigEndian.Uint64(raw), Generation: binary.BigEndian.Uint32(raw[8:])}
}
