package mapping

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

const (
	// maxEvent is the payload of a synchronous invoke: 6 MB.
	maxEvent = 6 << 20
	// longPoll is the longest wait of a ReceiveMessage, in seconds.
	longPoll = 20
	// receivePause is the wait after a receive that failed.
	receivePause = time.Second
)

// message is a received message: what is needed to settle it, and its record.
type message struct {
	id, receipt, group string
	record             []byte // JSON
}

// batch are messages received together, in order.
type batch struct {
	messages []message
	places   map[string]int // in messages, by id
	size     int            // of their records
	until    time.Time      // on the server's clock: so long the first that was received is hidden
}

// gather receives a batch: the available messages or, with a window, messages until there are
// BatchSize or 6 MB of them or the window ends. It waits for the first message without limit.
// When ctx ends it returns what it has.
func (m *Mapping) gather(ctx context.Context) *batch {
	b := &batch{places: make(map[string]int)}
	for len(b.messages) == 0 && ctx.Err() == nil {
		m.receive(ctx, b)
	}
	if m.cfg.Window == 0 {
		return b
	}
	window, end := context.WithTimeout(ctx, time.Duration(float64(m.cfg.Window)/m.cfg.TimeScale))
	defer end()
	for len(b.messages) < m.cfg.BatchSize && b.size < maxEvent && window.Err() == nil {
		m.receive(window, b)
	}
	return b
}

// receive adds the messages of one long poll to b. Those that match no filter are deleted.
func (m *Mapping) receive(ctx context.Context, b *batch) {
	out, err := m.server.ReceiveMessage(ctx, &sqsserver.ReceiveMessageInput{
		QueueUrl:                    m.url,
		MaxNumberOfMessages:         sqsserver.Int(int32(min(maxReceive, m.cfg.BatchSize-len(b.messages)))),
		WaitTimeSeconds:             sqsserver.Int(longPoll),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []string{"All"},
	})
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("the mapping cannot receive; it tries again", "error", err)
			sleep(ctx, receivePause)
		}
		return
	}
	if len(b.messages) == 0 && len(out.Messages) > 0 {
		b.until = m.server.Now().Add(m.visibility()) // which may be changed at any time
	}
	var rejected []message
	for i := range out.Messages {
		received := &out.Messages[i]
		next := message{id: received.MessageId.String(), receipt: received.ReceiptHandle, group: received.Attributes.MessageGroupId}
		if !m.filters.match(received.Body) {
			rejected = append(rejected, next)
			continue
		}
		next.record = m.record(received)
		b.add(next)
	}
	if len(rejected) > 0 {
		m.log.Info("messages that match no filter are deleted", "messages", len(rejected))
		m.delete(rejected)
	}
}

// add adds a message to the batch. If it is there already, since the window is longer than the
// visibility timeout, only its newer receipt handle is taken.
func (b *batch) add(next message) {
	b.size += len(next.record) + len(",")
	at, again := b.places[next.id]
	if !again {
		b.places[next.id] = len(b.messages)
		b.messages = append(b.messages, next)
		return
	}
	b.size -= len(b.messages[at].record) + len(",")
	b.messages[at] = next
}

// parts splits a batch of more than 6 MB into events: the last receive may have brought too much.
func (b *batch) parts() [][]message {
	var parts [][]message
	begin, size := 0, eventFrame
	for i := range b.messages {
		length := len(b.messages[i].record) + len(",")
		if i > begin && size+length > maxEvent {
			parts = append(parts, b.messages[begin:i])
			begin, size = i, eventFrame
		}
		size += length
	}
	return append(parts, b.messages[begin:])
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
