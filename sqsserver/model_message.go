package sqsserver

import (
	"iter"
	"strconv"
)

// MessageAttribute is one attribute that the sender of a message chose.
// DataType is String, Number or Binary, with an optional ".label". BinaryValue
// holds the value of a Binary attribute (decoded), StringValue that of the
// others.
type MessageAttribute struct {
	Name        string
	DataType    string
	StringValue string
	BinaryValue []byte
}

// SendMessageEntry is a message to send, alone or in a batch. The Server keeps the
// slices of a message that it accepts; they must not be changed afterwards. Those
// of a message received are the same and must not be changed either.
type SendMessageEntry struct {
	MessageBody             string
	DelaySeconds            OptionalInt        // 0 to 900; absent: the queue's
	MessageAttributes       []MessageAttribute // cheapest in ascending order of their names
	MessageSystemAttributes []MessageAttribute // SQS knows only AWSTraceHeader
	MessageDeduplicationId  string             // FIFO only
	MessageGroupId          string             // FIFO: required; standard: the tenant of a fair queue

	body sentBody // once it was examined; a decoder of JSON sets this and leaves MessageBody empty

	// Set by the decoders: the request has the parameter, with an empty value. SQS
	// refuses that, and takes a message without the parameter.
	emptyDeduplicationID, emptyGroupID bool
}

// SendMessageInput is a message and the queue it goes to.
type SendMessageInput struct {
	QueueUrl string
	SendMessageEntry
}

// SendMessageOutput is the result of a send.
type SendMessageOutput struct {
	MessageId                    UUID
	MD5OfMessageBody             MD5
	MD5OfMessageAttributes       MD5    // zero: the message has none
	MD5OfMessageSystemAttributes MD5    // zero: the message has none
	SequenceNumber               uint64 // zero: not a FIFO queue
}

// SendMessageBatchRequestEntry is one message of a batch. Id, which the caller
// chooses, names it in the answer.
type SendMessageBatchRequestEntry struct {
	Id string
	SendMessageEntry
}

// SendMessageBatchInput is one to ten messages and the queue they go to.
type SendMessageBatchInput struct {
	QueueUrl string
	Entries  []SendMessageBatchRequestEntry
}

// SendMessageBatchResultEntry is a message of a batch that was sent.
type SendMessageBatchResultEntry struct {
	Id string
	SendMessageOutput
}

// SendMessageBatchOutput has one result for each entry, in either list.
type SendMessageBatchOutput struct {
	Successful []SendMessageBatchResultEntry
	Failed     []BatchResultErrorEntry
}

// BatchResultErrorEntry is an entry of a batch that failed. Code is a query code, as
// Error.Code; SenderFault reports that the entry itself is at fault, so that repeating it
// cannot help.
type BatchResultErrorEntry struct {
	Id          string
	Code        string
	Message     string
	SenderFault bool
}

// ReceiveMessageInput asks for messages.
type ReceiveMessageInput struct {
	QueueUrl                    string
	MaxNumberOfMessages         OptionalInt // 1 to 10; absent: 1
	VisibilityTimeout           OptionalInt // seconds, 0 to 43,200; absent: the queue's
	WaitTimeSeconds             OptionalInt // 0 to 20; absent: the queue's
	MessageAttributeNames       []string    // names, All, .*, * or prefix.*
	MessageSystemAttributeNames []string    // names or All; unknown ones are ignored
	AttributeNames              []string    // deprecated: the same, but an unknown one is an error
	ReceiveRequestAttemptId     string      // FIFO only

	emptyAttemptID bool // set by the decoders: the request has an attempt id that is empty
}

// ReceiveMessageOutput has the messages received, if any.
type ReceiveMessageOutput struct {
	Messages []Message
}

// Message is a message as it is received: with those attributes only that the
// receive asked for.
type Message struct {
	MessageId              UUID
	ReceiptHandle          string
	MD5OfBody              MD5
	Body                   string
	Attributes             SystemAttributes
	MD5OfMessageAttributes MD5                // of the attributes returned; zero: there are none
	MessageAttributes      []MessageAttribute // in ascending order of their names
}

// SystemAttributes are the attributes of a received message that SQS keeps. A
// zero field was not asked for, or does not apply.
type SystemAttributes struct {
	SenderId                         string
	SentTimestamp                    int64 // milliseconds since the epoch
	ApproximateReceiveCount          int
	ApproximateFirstReceiveTimestamp int64 // milliseconds since the epoch
	SequenceNumber                   uint64
	MessageDeduplicationId           string
	MessageGroupId                   string
	AWSTraceHeader                   string
	DeadLetterQueueSourceArn         string
}

// All yields the attributes that are present, by AWS's names and as the strings
// that AWS makes of them.
func (a *SystemAttributes) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, attribute := range [...]struct {
			name, value string
		}{
			{"SenderId", a.SenderId},
			{"SentTimestamp", formatNumber(uint64(a.SentTimestamp))},
			{"ApproximateReceiveCount", formatNumber(uint64(a.ApproximateReceiveCount))},
			{"ApproximateFirstReceiveTimestamp", formatNumber(uint64(a.ApproximateFirstReceiveTimestamp))},
			{"SequenceNumber", formatNumber(a.SequenceNumber)},
			{"MessageDeduplicationId", a.MessageDeduplicationId},
			{"MessageGroupId", a.MessageGroupId},
			{"AWSTraceHeader", a.AWSTraceHeader},
			{"DeadLetterQueueSourceArn", a.DeadLetterQueueSourceArn},
		} {
			if attribute.value != "" && !yield(attribute.name, attribute.value) {
				return
			}
		}
	}
}

func formatNumber(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// DeleteMessageInput names a received message to delete.
type DeleteMessageInput struct {
	QueueUrl      string
	ReceiptHandle string
}

// DeleteMessageBatchRequestEntry is one message of a batch to delete.
type DeleteMessageBatchRequestEntry struct {
	Id            string
	ReceiptHandle string
}

// DeleteMessageBatchInput names one to ten received messages to delete.
type DeleteMessageBatchInput struct {
	QueueUrl string
	Entries  []DeleteMessageBatchRequestEntry
}

// BatchResultEntry is an entry of a batch that succeeded. AWS has one type of
// this shape for deletes and one for visibility changes.
type BatchResultEntry struct {
	Id string
}

// DeleteMessageBatchOutput has one result for each entry, in either list.
type DeleteMessageBatchOutput struct {
	Successful []BatchResultEntry
	Failed     []BatchResultErrorEntry
}

// ChangeMessageVisibilityInput hides a received message for so many seconds
// from now, 0 to 43,200.
type ChangeMessageVisibilityInput struct {
	QueueUrl          string
	ReceiptHandle     string
	VisibilityTimeout OptionalInt // required
}

// ChangeMessageVisibilityBatchRequestEntry is one message of a batch to hide.
type ChangeMessageVisibilityBatchRequestEntry struct {
	Id                string
	ReceiptHandle     string
	VisibilityTimeout OptionalInt
}

// ChangeMessageVisibilityBatchInput hides one to ten received messages.
type ChangeMessageVisibilityBatchInput struct {
	QueueUrl string
	Entries  []ChangeMessageVisibilityBatchRequestEntry
}

// ChangeMessageVisibilityBatchOutput has one result for each entry, in either
// list.
type ChangeMessageVisibilityBatchOutput struct {
	Successful []BatchResultEntry
	Failed     []BatchResultErrorEntry
}
