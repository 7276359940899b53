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
