package sqsserver

import (
	"bytes"
	"errors"
	"sync"

	"github.com/reprise-sqs/reprise/internal/awsjson"
)

// jsonInput is an input that can be read from the JSON object of a request.
type jsonInput interface {
	decodeJSON(*jsonReader)
}

// jsonReader reads an input.
type jsonReader struct {
	awsjson.Reader
	entries int // how many the batch has
}

// decodeJSON reads the body of a request into in, which must be zero. It keeps
// nothing of body.
func decodeJSON(body []byte, in jsonInput) error {
	r := jsonReaders.Get().(*jsonReader)
	defer func() {
		r.Reset(nil)
		jsonReaders.Put(r)
	}()
	r.Reset(body)
	r.entries = 0
	in.decodeJSON(r)
	r.End()
	if r.entries > maxBatchEntries {
		r.Fail(errTooManyEntries(r.entries))
	}
	var syntax *awsjson.SyntaxError
	if errors.As(r.Err(), &syntax) {
		return errSerialization(syntax.Offset, syntax.Problem)
	}
	return r.Err()
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

func (in *CreateQueueInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueName":
			in.QueueName = r.Text()
		case "Attributes":
			in.Attributes = r.TextMap()
		case "tags": // lower case here, and nowhere else
			in.Tags = r.TextMap()
		default:
			r.Skip()
		}
	}
}

func (in *DeleteQueueInput) decodeJSON(r *jsonReader) { in.QueueUrl = r.onlyQueueURL() }

func (in *PurgeQueueInput) decodeJSON(r *jsonReader) { in.QueueUrl = r.onlyQueueURL() }

func (in *ListQueueTagsInput) decodeJSON(r *jsonReader) { in.QueueUrl = r.onlyQueueURL() }

// onlyQueueURL reads an input whose only member is the queue's URL.
func (r *jsonReader) onlyQueueURL() (queueURL string) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			queueURL = r.Text()
		default:
			r.Skip()
		}
	}
	return queueURL
}

func (in *GetQueueUrlInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueName":
			in.QueueName = r.Text()
		case "QueueOwnerAWSAccountId":
			in.QueueOwnerAWSAccountId = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *ListQueuesInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueNamePrefix":
			in.QueueNamePrefix = r.Text()
		case "MaxResults":
			in.MaxResults = r.int32()
		case "NextToken":
			in.NextToken = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *GetQueueAttributesInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "AttributeNames":
			in.AttributeNames = r.Texts(nil)
		default:
			r.Skip()
		}
	}
}

func (in *SetQueueAttributesInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Attributes":
			in.Attributes = r.TextMap()
		default:
			r.Skip()
		}
	}
}

func (in *ListDeadLetterSourceQueuesInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "MaxResults":
			in.MaxResults = r.int32()
		case "NextToken":
			in.NextToken = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *TagQueueInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Tags":
			in.Tags = r.TextMap()
		default:
			r.Skip()
		}
	}
}

func (in *UntagQueueInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "TagKeys":
			in.TagKeys = r.Texts(nil)
		default:
			r.Skip()
		}
	}
}

func (in *AddPermissionInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Label":
			in.Label = r.Text()
		case "AWSAccountIds":
			in.AWSAccountIds = r.Texts(nil)
		case "Actions":
			in.Actions = r.Texts(nil)
		default:
			r.Skip()
		}
	}
}

func (in *RemovePermissionInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Label":
			in.Label = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *StartMessageMoveTaskInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "SourceArn":
			in.SourceArn = r.Text()
		case "DestinationArn":
			in.DestinationArn = r.Text()
		case "MaxNumberOfMessagesPerSecond":
			in.MaxNumberOfMessagesPerSecond = r.int32()
		default:
			r.Skip()
		}
	}
}

func (in *CancelMessageMoveTaskInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "TaskHandle":
			in.TaskHandle = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *ListMessageMoveTasksInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "SourceArn":
			in.SourceArn = r.Text()
		case "MaxResults":
			in.MaxResults = r.int32()
		default:
			r.Skip()
		}
	}
}

// int32 reads an integer.
func (r *jsonReader) int32() OptionalInt { return Int(r.Int32()) }

// body reads the body of a message.
func (r *jsonReader) body() sentBody {
	plain, quoted := r.Bytes()
	if r.Err() != nil {
		return sentBody{}
	}
	b := examine(plain)
	// An escape is longer than its character, one with \u by up to five times, and most
	// characters escaped with \u need no escape.
	if len(plain) < len(quoted) && !bytes.Contains(quoted, []byte(`\u`)) {
		b.body = body{text: string(quoted), quoted: true}
	} else {
		b.text = string(plain)
	}
	return b
}
