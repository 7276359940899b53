package sqsserver

import (
	"sync"
)

// jsonInput is an input that can be read from the JSON object of a request.
type jsonInput interface {
	decodeJSON(*jsonReader)
}

// decodeJSON reads the body of a request into in, which must be zero. It keeps
// nothing of body.
func decodeJSON(body []byte, in jsonInput) error {
	r := jsonReaders.Get().(*jsonReader)
	r.data = body
	in.decodeJSON(r)
	r.end()
	if r.err == nil && r.entries > maxBatchEntries {
		r.err = errTooManyEntries(r.entries)
	}
	err := r.err
	if cap(r.scratch) > maxPooledScratch {
		r.scratch = nil
	}
	*r = jsonReader{scratch: r.scratch}
	jsonReaders.Put(r)
	if err != nil {
		return err
	}
	return nil
}

// maxPooledScratch keeps a reader that once met a large body from holding its
// memory.
const maxPooledScratch = 64 << 10

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

func (in *CreateQueueInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueName":
			in.QueueName = r.string()
		case "Attributes":
			in.Attributes = r.stringMap()
		case "tags": // lower case here, and nowhere else
			in.Tags = r.stringMap()
		default:
			r.skip()
		}
	}
}

func (in *DeleteQueueInput) decodeJSON(r *jsonReader) { in.QueueUrl = r.onlyQueueURL() }

func (in *PurgeQueueInput) decodeJSON(r *jsonReader) { in.QueueUrl = r.onlyQueueURL() }

func (in *ListQueueTagsInput) decodeJSON(r *jsonReader) { in.QueueUrl = r.onlyQueueURL() }

// onlyQueueURL reads an input that has no other member.
func (r *jsonReader) onlyQueueURL() (queueURL string) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			queueURL = r.string()
		default:
			r.skip()
		}
	}
	return queueURL
}

func (in *GetQueueUrlInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueName":
			in.QueueName = r.string()
		case "QueueOwnerAWSAccountId":
			in.QueueOwnerAWSAccountId = r.string()
		default:
			r.skip()
		}
	}
}

func (in *ListQueuesInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueNamePrefix":
			in.QueueNamePrefix = r.string()
		case "MaxResults":
			in.MaxResults = r.int32()
		case "NextToken":
			in.NextToken = r.string()
		default:
			r.skip()
		}
	}
}

func (in *GetQueueAttributesInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "AttributeNames":
			in.AttributeNames = r.strings(nil)
		default:
			r.skip()
		}
	}
}

func (in *SetQueueAttributesInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Attributes":
			in.Attributes = r.stringMap()
		default:
			r.skip()
		}
	}
}

func (in *ListDeadLetterSourceQueuesInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "MaxResults":
			in.MaxResults = r.int32()
		case "NextToken":
			in.NextToken = r.string()
		default:
			r.skip()
		}
	}
}

func (in *TagQueueInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Tags":
			in.Tags = r.stringMap()
		default:
			r.skip()
		}
	}
}

func (in *UntagQueueInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "TagKeys":
			in.TagKeys = r.strings(nil)
		default:
			r.skip()
		}
	}
}

func (in *AddPermissionInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Label":
			in.Label = r.string()
		case "AWSAccountIds":
			in.AWSAccountIds = r.strings(nil)
		case "Actions":
			in.Actions = r.strings(nil)
		default:
			r.skip()
		}
	}
}

func (in *RemovePermissionInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Label":
			in.Label = r.string()
		default:
			r.skip()
		}
	}
}

func (in *StartMessageMoveTaskInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "SourceArn":
			in.SourceArn = r.string()
		case "DestinationArn":
			in.DestinationArn = r.string()
		case "MaxNumberOfMessagesPerSecond":
			in.MaxNumberOfMessagesPerSecond = r.int32()
		default:
			r.skip()
		}
	}
}

func (in *CancelMessageMoveTaskInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "TaskHandle":
			in.TaskHandle = r.string()
		default:
			r.skip()
		}
	}
}

func (in *ListMessageMoveTasksInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "SourceArn":
			in.SourceArn = r.string()
		case "MaxResults":
			in.MaxResults = r.int32()
		default:
			r.skip()
		}
	}
}

func (in *SendMessageInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		default:
			in.decodeMember(r, name)
		}
	}
}

func (in *SendMessageBatchInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Entries":
			in.Entries = decodeEntries(r, (*SendMessageBatchRequestEntry).decodeJSON)
		default:
			r.skip()
		}
	}
}

func (e *SendMessageBatchRequestEntry) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "Id":
			e.Id = r.string()
		default:
			e.decodeMember(r, name)
		}
	}
}

// decodeMember reads the value of a member that SendMessage and the entries of
// SendMessageBatch share.
func (e *SendMessageEntry) decodeMember(r *jsonReader, name []byte) {
	switch string(name) {
	case "MessageBody":
		e.body = r.body()
	case "DelaySeconds":
		e.DelaySeconds = r.int32()
	case "MessageAttributes":
		e.MessageAttributes = r.messageAttributes()
	case "MessageSystemAttributes":
		e.MessageSystemAttributes = r.messageAttributes()
	case "MessageDeduplicationId":
		e.MessageDeduplicationId = r.string()
	case "MessageGroupId":
		e.MessageGroupId = r.string()
	default:
		r.skip()
	}
}

// messageAttributes reads a map of attributes, in ascending order of their names.
func (r *jsonReader) messageAttributes() []MessageAttribute {
	var attributes []MessageAttribute
	for name := range r.members() {
		attribute := MessageAttribute{Name: string(name)}
		attribute.decodeJSON(r)
		attributes = append(attributes, attribute)
	}
	return sortAttributes(attributes)
}

func (a *MessageAttribute) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "DataType":
			a.DataType = r.string()
		case "StringValue":
			a.StringValue = r.string()
		case "BinaryValue":
			a.BinaryValue = r.blob()
		case "StringListValues", "BinaryListValues":
			if len(r.strings(nil)) > 0 && r.err == nil {
				r.err = errAttributeLists()
			}
		default:
			r.skip()
		}
	}
}

func (in *ReceiveMessageInput) decodeJSON(r *jsonReader) {
	var deprecated []string
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "MaxNumberOfMessages":
			in.MaxNumberOfMessages = r.int32()
		case "VisibilityTimeout":
			in.VisibilityTimeout = r.int32()
		case "WaitTimeSeconds":
			in.WaitTimeSeconds = r.int32()
		case "MessageAttributeNames":
			in.MessageAttributeNames = r.strings(nil)
		case "MessageSystemAttributeNames":
			in.MessageSystemAttributeNames = r.strings(nil)
		case "AttributeNames":
			deprecated = r.strings(nil)
		case "ReceiveRequestAttemptId":
			in.ReceiveRequestAttemptId = r.string()
		default:
			r.skip()
		}
	}
	in.MessageSystemAttributeNames = append(in.MessageSystemAttributeNames, deprecated...)
}

func (in *DeleteMessageInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "ReceiptHandle":
			in.ReceiptHandle = r.string()
		default:
			r.skip()
		}
	}
}

func (in *DeleteMessageBatchInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Entries":
			in.Entries = decodeEntries(r, (*DeleteMessageBatchRequestEntry).decodeJSON)
		default:
			r.skip()
		}
	}
}

func (e *DeleteMessageBatchRequestEntry) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "Id":
			e.Id = r.string()
		case "ReceiptHandle":
			e.ReceiptHandle = r.string()
		default:
			r.skip()
		}
	}
}

func (in *ChangeMessageVisibilityInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "ReceiptHandle":
			in.ReceiptHandle = r.string()
		case "VisibilityTimeout":
			in.VisibilityTimeout = r.int32()
		default:
			r.skip()
		}
	}
}

func (in *ChangeMessageVisibilityBatchInput) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.string()
		case "Entries":
			in.Entries = decodeEntries(r, (*ChangeMessageVisibilityBatchRequestEntry).decodeJSON)
		default:
			r.skip()
		}
	}
}

func (e *ChangeMessageVisibilityBatchRequestEntry) decodeJSON(r *jsonReader) {
	for name := range r.members() {
		switch string(name) {
		case "Id":
			e.Id = r.string()
		case "ReceiptHandle":
			e.ReceiptHandle = r.string()
		case "VisibilityTimeout":
			e.VisibilityTimeout = r.int32()
		default:
			r.skip()
		}
	}
}

// decodeEntries reads the entries of a batch. Those beyond the tenth are counted
// but not kept, so that a request of a million empty ones costs no memory; the
// batch is refused for them once the whole body is known to be well-formed.
func decodeEntries[E any](r *jsonReader, decode func(*E, *jsonReader)) []E {
	entries := make([]E, 0, maxBatchEntries)
	r.entries = 0
	for range r.elements() {
		if r.entries++; r.entries > maxBatchEntries {
			r.skip()
			continue
		}
		entries = entries[:r.entries]
		decode(&entries[r.entries-1], r)
	}
	return entries
}
