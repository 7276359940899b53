package reprise

import (
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Message is one message as a [Handler] sees it. It is plain data, so that
// tests and other runtimes can build one. It has no receipt handle: settling
// is the consumer's work.
type Message struct {
	// ID is the message id that SQS gave this message.
	ID string
	// OriginID is the id of the message that the producer sent. It equals ID unless this
	// message is a copy. Without [Config].SigningKeys, any producer of the queue can claim
	// another message's OriginID: use [Message.IdempotencyKey] as the key for idempotency.
	OriginID string
	// Body is the message's text, as it was sent.
	Body string
	// GroupID is the message group: on FIFO queues the unit of ordering, on
	// standard queues the fair-queue tenant. Empty if the message has none.
	GroupID string
	// DeduplicationID is the deduplication id on a FIFO queue, which drops messages that are
	// sent with the same id within five minutes: the producer's, or the SHA-256 of the
	// body. Empty on standard queues.
	DeduplicationID string
	// Attributes are the message attributes that the sender attached; nil if
	// there are none. Handlers must not change the map.
	Attributes map[string]types.MessageAttributeValue
	// TraceHeader is the AWS X-Ray trace header that travelled as the system attribute
	// AWSTraceHeader. Empty if the message has none.
	TraceHeader string
	// Trail is what [Observer].Starting returned for the attempt before this one. It is
	// empty unless that attempt was made in this process, or this message is a copy whose
	// history has it.
	Trail string
	// Sent and FirstReceived are SQS's timestamps, by SQS's clock, to the millisecond; for a
	// copy, those of the message that the producer sent. Received is when this consumer
	// received the message, by its own clock.
	Sent, FirstReceived, Received time.Time
	// Attempt is the number of this run of the handler: 1 for the first. It counts runs, not
	// receives: exactly for runs in this process and for those in a copy's history;
	// others are estimated from the time that has passed.
	Attempt int
	// Receives is SQS's ApproximateReceiveCount. It also counts receives after which no
	// handler ran, and begins at 1 for every copy.
	Receives int
}

// LogValue implements [slog.LogValuer]: a group with the message's id, its origin's id if
// that differs, its message group if it has one, attempt, receives and size. Body and
// attributes are not logged.
func (m Message) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 6)
	attrs = append(attrs, slog.String("id", m.ID))
	if m.OriginID != "" && m.OriginID != m.ID {
		attrs = append(attrs, slog.String("origin", m.OriginID))
	}
	if m.GroupID != "" {
		attrs = append(attrs, slog.String("group", m.GroupID))
	}
	attrs = append(attrs, slog.Int("attempt", m.Attempt), slog.Int("receives", m.Receives), slog.Int("bytes", len(m.Body)))
	return slog.GroupValue(attrs...)
}
