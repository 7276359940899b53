package sqsserver

import (
	"crypto/md5"
	"encoding/hex"
	"iter"
	"strconv"
)

// The types below are the server's typed interface: one Input per action and,
// for the actions that answer something, one Output. They carry AWS's names,
// spelled as AWS spells them, so that each stands beside the wire format and
// the AWS SDK without a table between them. The JSON handler decodes into them;
// programs in the same process may call the methods of Server with them
// directly and pay for no encoding.
//
// Where SQS does not tell an empty string from an absent one, neither do these:
// the empty string is absent. Where it tells 0 from absent, the field is an
// OptionalInt.

// OptionalInt is an int32 that may be absent. The zero value is absent.
type OptionalInt struct {
	Value int32
	Set   bool
}

// Int returns an OptionalInt that is present with the value v.
func Int(v int32) OptionalInt { return OptionalInt{Value: v, Set: true} }

// Or returns the value, or fallback if it is absent.
func (o OptionalInt) Or(fallback int32) int32 {
	if o.Set {
		return o.Value
	}
	return fallback
}

// UUID is a message id. It prints as 36 lower-case characters.
type UUID [16]byte

// String returns the canonical form, xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
func (u UUID) String() string { return string(u.append(make([]byte, 0, 36))) }

func (u UUID) append(dst []byte) []byte {
	for i, group := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, group)
	}
	return dst
}

// MD5 is a digest as SQS returns it, in lower-case hexadecimal. The zero value
// means that there is none.
type MD5 [md5.Size]byte

// String returns the 32 hexadecimal characters, or "" if there is no digest.
func (d MD5) String() string {
	if d == (MD5{}) {
		return ""
	}
	return hex.EncodeToString(d[:])
}

func (d MD5) append(dst []byte) []byte { return hex.AppendEncode(dst, d[:]) }

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

// CreateQueueInput asks for a queue. Of a queue that exists, the attributes
// given must equal those it has.
type CreateQueueInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string
}

// CreateQueueOutput has the URL of the queue, new or old.
type CreateQueueOutput struct {
	QueueUrl string
}

// DeleteQueueInput names the queue to delete with all its messages.
type DeleteQueueInput struct {
	QueueUrl string
}

// GetQueueUrlInput asks for the URL of a queue. The owner is the account that
// created it, by default the caller's.
type GetQueueUrlInput struct {
	QueueName              string
	QueueOwnerAWSAccountId string
}

// GetQueueUrlOutput has the URL that was asked for.
type GetQueueUrlOutput struct {
	QueueUrl string
}

// ListQueuesInput asks for a page of queues whose names begin with the prefix.
// Without MaxResults (1 to 1,000) the answer has no NextToken.
type ListQueuesInput struct {
	QueueNamePrefix string
	MaxResults      OptionalInt
	NextToken       string
}

// ListQueuesOutput is a page of queue URLs. NextToken is empty on the last one.
type ListQueuesOutput struct {
	QueueUrls []string
	NextToken string
}

// GetQueueAttributesInput names the attributes wanted; All wants every one.
type GetQueueAttributesInput struct {
	QueueUrl       string
	AttributeNames []string
}

// GetQueueAttributesOutput has the attributes that were asked for.
type GetQueueAttributesOutput struct {
	Attributes map[string]string
}

// SetQueueAttributesInput changes the attributes given and leaves the others.
type SetQueueAttributesInput struct {
	QueueUrl   string
	Attributes map[string]string
}

// PurgeQueueInput names the queue to empty.
type PurgeQueueInput struct {
	QueueUrl string
}

// ListDeadLetterSourceQueuesInput asks for a page of the queues that have this one
// as their dead-letter queue. Without MaxResults (1 to 1,000) the answer has no
// NextToken.
type ListDeadLetterSourceQueuesInput struct {
	QueueUrl   string
	MaxResults OptionalInt
	NextToken  string
}

// ListDeadLetterSourceQueuesOutput is a page of queue URLs. NextToken is empty on
// the last one.
type ListDeadLetterSourceQueuesOutput struct {
	QueueUrls []string
	NextToken string
}

// TagQueueInput adds tags to a queue, and replaces those of the same keys.
type TagQueueInput struct {
	QueueUrl string
	Tags     map[string]string
}

// UntagQueueInput names the tags to remove.
type UntagQueueInput struct {
	QueueUrl string
	TagKeys  []string
}

// ListQueueTagsInput names the queue whose tags are wanted.
type ListQueueTagsInput struct {
	QueueUrl string
}

// ListQueueTagsOutput has the tags of a queue.
type ListQueueTagsOutput struct {
	Tags map[string]string
}

// AddPermissionInput adds a statement to the queue's policy, which lets the
// accounts carry out the actions.
type AddPermissionInput struct {
	QueueUrl      string
	Label         string
	AWSAccountIds []string
	Actions       []string
}

// RemovePermissionInput removes the statement with the label from the queue's
// policy.
type RemovePermissionInput struct {
	QueueUrl string
	Label    string
}

// StartMessageMoveTaskInput moves the messages of a dead-letter queue to the
// destination, by default each to the queue that dead-lettered it.
type StartMessageMoveTaskInput struct {
	SourceArn                    string
	DestinationArn               string
	MaxNumberOfMessagesPerSecond OptionalInt // 1 to 500; absent: 500
}

// StartMessageMoveTaskOutput has the handle of the task.
type StartMessageMoveTaskOutput struct {
	TaskHandle string
}

// CancelMessageMoveTaskInput names the task to stop.
type CancelMessageMoveTaskInput struct {
	TaskHandle string
}

// CancelMessageMoveTaskOutput tells how many messages the task has moved; they
// are not moved back.
type CancelMessageMoveTaskOutput struct {
	ApproximateNumberOfMessagesMoved int64
}

// ListMessageMoveTasksInput asks for the newest tasks of a queue, at most
// MaxResults (1 to 10; absent: 1).
type ListMessageMoveTasksInput struct {
	SourceArn  string
	MaxResults OptionalInt
}

// ListMessageMoveTasksOutput has the tasks, newest first.
type ListMessageMoveTasksOutput struct {
	Results []ListMessageMoveTasksResultEntry
}

// ListMessageMoveTasksResultEntry is a task. Status is RUNNING, COMPLETED,
// CANCELLED or FAILED.
type ListMessageMoveTasksResultEntry struct {
	TaskHandle                        string // while it runs
	Status                            string
	SourceArn                         string
	DestinationArn                    string // "": none was given
	MaxNumberOfMessagesPerSecond      int32  // 0: none was given
	ApproximateNumberOfMessagesMoved  int64
	ApproximateNumberOfMessagesToMove int64
	FailureReason                     string // of a task that failed
	StartedTimestamp                  int64  // milliseconds since the epoch
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

	body sentBody // MessageBody, once it was examined; who decodes JSON leaves that empty
}

// SendMessageInput is a message and the queue it goes to.
type SendMessageInput struct {
	QueueUrl string
	SendMessageEntry
}

// SendMessageOutput tells what became of a message sent.
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

// BatchResultErrorEntry is an entry of a batch that failed. Code is a query
// code, as Error.Code; SenderFault says that repeating the entry as it is
// cannot help.
type BatchResultErrorEntry struct {
	Id          string
	Code        string
	Message     string
	SenderFault bool
}

// ReceiveMessageInput asks for messages. AttributeNames, the deprecated alias of
// MessageSystemAttributeNames, has been added to it by the decoder.
type ReceiveMessageInput struct {
	QueueUrl                    string
	MaxNumberOfMessages         OptionalInt // 1 to 10; absent: 1
	VisibilityTimeout           OptionalInt // seconds, 0 to 43,200; absent: the queue's
	WaitTimeSeconds             OptionalInt // 0 to 20; absent: the queue's
	MessageAttributeNames       []string    // names, All, .*, * or prefix.*
	MessageSystemAttributeNames []string    // names or All
	ReceiveRequestAttemptId     string      // FIFO only
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

	body body // Body, where nobody has needed that yet
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
