package sqsserver

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
)

// The types below are the server's typed interface: one Input per action and, for the
// actions that answer something, one Output. They carry AWS's names, spelled as AWS spells
// them, so that each can be compared to the wire format and the AWS SDK directly. The JSON
// handler decodes into them; programs in the same process may call the methods of Server
// with them directly and pay for no encoding.
//
// An empty string is absent. SQS distinguishes the two in few places, where it refuses the
// empty one; so does the handler. Where SQS distinguishes 0 from absent, the field is an
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

// newUUID makes a random UUID (version 4) of 128 random bits.
func newUUID(high, low uint64) UUID {
	var id UUID
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

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

// CreateQueueInput asks for a queue. If the queue exists, it must have the attributes given.
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

// CancelMessageMoveTaskOutput has the number of messages that the task has moved; they are
// not moved back.
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
