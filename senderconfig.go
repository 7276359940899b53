package reprise

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise/internal/sqslimit"
)

// SenderConfig configures a [Sender]. The zero SenderConfig is a good start. [NewSender] copies
// it, so that later changes have no effect.
type SenderConfig struct {
	// Linger is how long a message may wait for others to share its request. A full batch is
	// sent at once. Negative: not at all, for callers that send one message at a time and
	// wait for it. At most 1 h. Default: 20 ms.
	Linger time.Duration

	// Requests is how many requests may be under way at once. While that many are, further
	// messages collect, so that batches become fuller. Default: 10.
	Requests int

	// MaxWaiting is how many messages without an answer of SQS the sender accepts; Send and
	// Submit block while there are as many. Negative: no limit. Default: 1,000.
	MaxWaiting int

	// MaxBytes limits the size of those messages in bytes, bodies and attributes together.
	// At least 1 MiB, the largest message. Negative: no limit. Default: 16 MiB.
	MaxBytes int

	// Tries is how many requests with a message are made before it is given up with the
	// error of the last one. A request that SQS refuses because of another message in it
	// does not count. Default: 0, no limit until the message's context ends.
	Tries int

	// ContentDeduplication says that the FIFO queue has ContentBasedDeduplication, so that
	// messages need no deduplication id: SQS then drops a message if one with the same body
	// was sent within five minutes. Default: false, each message needs an id.
	ContentDeduplication bool

	// Logger logs, at most twice a minute, that sending fails and is tried again. Default:
	// slog.Default().
	Logger *slog.Logger
}

const (
	defaultSendLinger   = 20 * time.Millisecond
	defaultSendRequests = 10
	defaultMaxWaiting   = 1000
	defaultMaxBytes     = 16 << 20
	maxSendLinger       = time.Hour

	maxSendDelay = 15 * time.Minute // SQS's limit
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
	if c.Linger > maxSendLinger {
		problems = append(problems, fmt.Errorf("SenderConfig.Linger is %v: set at most %v, 0 for %v, or a negative duration for none", c.Linger, maxSendLinger, defaultSendLinger))
	}
	if c.Requests < 0 {
		problems = append(problems, fmt.Errorf("SenderConfig.Requests is %d: set 1 or more, or 0 for %d", c.Requests, defaultSendRequests))
	}
	if c.Tries < 0 {
		problems = append(problems, fmt.Errorf("SenderConfig.Tries is %d: set 1 or more, or 0 for no limit", c.Tries))
	}
	if c.MaxBytes >= 0 && c.MaxBytes < sqslimit.Bytes {
		problems = append(problems, fmt.Errorf("SenderConfig.MaxBytes is %d, less than the largest message: set %d or more, 0 for %d, or a negative number for no limit", c.MaxBytes, sqslimit.Bytes, defaultMaxBytes))
	}
	if c.ContentDeduplication && !fifo {
		problems = append(problems, errors.New("SenderConfig.ContentDeduplication is set, but the queue's name does not end in .fifo: only FIFO queues have it"))
	}
	return errors.Join(problems...)
}

// check returns m's size, and an error if SQS would refuse m whatever the queue's attributes
// are: one such message could make it refuse the whole batch.
func (s *Sender) check(m *Outgoing) (size int, err error) {
	size = m.size()
	switch {
	case m.Body == "":
		err = errors.New("the body is empty, which SQS does not accept: send at least one character")
	case size > sqslimit.Bytes:
		err = fmt.Errorf("the body and the attributes are %d bytes long, more than SQS's limit of %d: send less, or a reference to it", size, sqslimit.Bytes)
	case len(m.Attributes) > sqslimit.Attributes:
		err = fmt.Errorf("it has %d attributes, more than SQS's limit of %d: put the rest into the body", len(m.Attributes), sqslimit.Attributes)
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

// size returns m's size in bytes, as SQS counts it.
func (m *Outgoing) size() int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(deref(a.DataType)) + len(deref(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}
