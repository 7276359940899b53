package reprise

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// SenderConfig says how a [Sender] works. The zero SenderConfig works and is good;
// it is copied by [NewSender] and cannot change afterwards.
type SenderConfig struct {
	// Linger is how long a message may wait for others to share its request. A
	// batch that is full goes at once. Negative: not at all, for messages that
	// come one at a time and are waited for. Default: 20 ms.
	Linger time.Duration

	// Requests is how many requests may be under way at once. While all are,
	// messages gather, and batches become fuller. Default: 10.
	Requests int

	// MaxWaiting is how many messages the sender takes in before SQS has answered
	// for them; whoever hands over more is blocked. Negative: no limit.
	// Default: 1000.
	MaxWaiting int

	// MaxBytes limits the size of those messages, bodies and attributes together,
	// to no less than one message's 1 MiB. Negative: no limit. Default: 16 MiB.
	MaxBytes int

	// Tries is how many requests a message may be in before it is given up with the
	// error of the last. A request that SQS refuses for what is in another of its
	// messages does not count. Default: any number, while the message's context lasts.
	Tries int

	// ContentDeduplication says that the FIFO queue has ContentBasedDeduplication,
	// so that messages need no deduplication id: SQS then takes messages with the
	// same body within five minutes for one. Default: each needs an id.
	ContentDeduplication bool

	// Logger is told, twice a minute at most, that sending fails and goes on.
	// Default: slog.Default().
	Logger *slog.Logger
}

const (
	defaultSendLinger   = 20 * time.Millisecond
	defaultSendRequests = 10
	defaultMaxWaiting   = 1000
	defaultMaxBytes     = 16 << 20

	// SQS's limits. The bytes are those of one message and of a whole request
	// alike: bodies, and names, types and values of attributes.
	maxSendBytes = 1 << 20
	maxSendDelay = 15 * time.Minute
)

// withDefaults returns c with every zero field replaced by its default.
func (c SenderConfig) withDefaults() SenderConfig {
	switch {
	case c.Linger == 0:
		c.Linger = defaultSendLinger
	case c.Linger < 0:
		c.Linger = 0
	}
	if c.Requests == 0 {
		c.Requests = defaultSendRequests
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = defaultMaxWaiting
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns every problem of a SenderConfig whose defaults are filled in.
func (c SenderConfig) validate(fifo bool) error {
	var problems []error
	if c.Requests < 0 {
		problems = append(problems, fmt.Errorf("SenderConfig.Requests is %d: set 1 or more, or 0 for %d", c.Requests, defaultSendRequests))
	}
	if c.Tries < 0 {
		problems = append(problems, fmt.Errorf("SenderConfig.Tries is %d: set 1 or more, or 0 for no limit", c.Tries))
	}
	if c.MaxBytes >= 0 && c.MaxBytes < maxSendBytes {
		problems = append(problems, fmt.Errorf("SenderConfig.MaxBytes is %d, less than the largest message: set %d or more, 0 for %d, or a negative number for no limit", c.MaxBytes, maxSendBytes, defaultMaxBytes))
	}
	if c.ContentDeduplication && !fifo {
		problems = append(problems, errors.New("SenderConfig.ContentDeduplication is set, but the queue's name does not end in .fifo: only FIFO queues have it"))
	}
	return errors.Join(problems...)
}

// check returns m's size, and what SQS would refuse of it for certain, whatever
// the queue's attributes: one such message can make it refuse its whole batch.
func (s *Sender) check(m *Outgoing) (size int, err error) {
	size = m.size()
	switch {
	case m.Body == "":
		err = errors.New("the body is empty, which SQS does not take: send at least one character")
	case size > maxSendBytes:
		err = fmt.Errorf("the body and the attributes are %d bytes long, more than SQS's limit of %d: send less, or a reference to it", size, maxSendBytes)
	case len(m.Attributes) > maxAttributes:
		err = fmt.Errorf("it has %d attributes, more than SQS's limit of %d: put the rest into the body", len(m.Attributes), maxAttributes)
	case m.Delay < 0 || m.Delay > maxSendDelay:
		err = fmt.Errorf("the delay is %v: set one up to SQS's limit of %v", m.Delay, maxSendDelay)
	case s.queue.fifo && m.Delay > 0:
		err = fmt.Errorf("the delay is %v, but on a FIFO queue messages cannot have one of their own: set the queue's DelaySeconds", m.Delay)
	case s.queue.fifo && m.GroupID == "":
		err = errors.New("the group id is empty, which a FIFO queue requires: set GroupID")
	case s.queue.fifo && m.DeduplicationID == "" && !s.cfg.ContentDeduplication:
		err = errors.New("the deduplication id is empty: set DeduplicationID or, if the queue has ContentBasedDeduplication, SenderConfig.ContentDeduplication")
	case !s.queue.fifo && m.DeduplicationID != "":
		err = fmt.Errorf("the deduplication id is %q, but only FIFO queues, whose names end in .fifo, take one: leave it empty", m.DeduplicationID)
	}
	if err != nil {
		return size, fmt.Errorf("sending to the queue %s: %w", s.queue.name, err)
	}
	return size, nil
}

// size is what SQS counts of m against its limits.
func (m *Outgoing) size() int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(deref(a.DataType)) + len(deref(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}
