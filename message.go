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
	// OriginID is the id of the message that started this lineage: it equals ID
	// unless the message is a copy of an earlier one. Without [Config].SigningKeys
	// whoever may send to the queue can claim another's: key idempotency by
	// [Message.IdempotencyKey].
	OriginID string
	// Body is the message's text, as it was sent.
	Body string
	// GroupID is the message group: on FIFO queues the unit of ordering, on
	// standard queues the fair-queue tenant. Empty if the message has none.
	GroupID string
	// DeduplicationID is the id by which a FIFO queue dropped what was sent again
	// within five minutes: the producer's, or the SHA-256 of the body. Empty on
	// standard queues.
	DeduplicationID string
	// Attributes are the message attributes that the sender attached; nil if
	// there are none. Handlers must not change the map.
	Attributes map[string]types.MessageAttributeValue
	// TraceHeader is the AWS X-Ray trace header that travelled as the system attribute
	// AWSTraceHeader. Empty if the message has none.
	TraceHeader string
	// Trail is what [Observer].Starting left of the attempt before this one: where that
	// was made in this process, or tells of itself by the history of a copy. Otherwise
	// it is empty.
	Trail string
	// Sent and FirstReceived are SQS's own timestamps, in milliseconds of SQS's
	// clock; of a copy, those of the message that started the lineage. Received is
	// when this consumer got the message, on its own clock.
	Sent, FirstReceived, Received time.Time
	// Attempt numbers this run of the handler: 1 for the first. It counts runs,
	// not receives, as well as can be known: exactly for runs in this process and
	// those that a copy's history tells of, by the time that has passed for others.
	Attempt int
	// Receives is SQS's ApproximateReceiveCount. It also counts receives whose
	// message never reached a handler, and begins anew with every copy.
	Receives int
}

// LogValue is what a log says of the message, as a group: its id, the origin's if
// that is another, its group if it has one, attempt, receives and size. What it
// holds is not logged.
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
