package sqsserver

import "strings"

func (in *SendMessageInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		default:
			in.decodeMember(r, name)
		}
	}
}

func (in *SendMessageBatchInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Entries":
			in.Entries = decodeEntries(r, (*SendMessageBatchRequestEntry).decodeJSON)
		default:
			r.Skip()
		}
	}
}

func (e *SendMessageBatchRequestEntry) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "Id":
			e.Id = r.Text()
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
		e.MessageDeduplicationId = r.Text()
		e.emptyDeduplicationID = e.MessageDeduplicationId == ""
	case "MessageGroupId":
		e.MessageGroupId = r.Text()
		e.emptyGroupID = e.MessageGroupId == ""
	default:
		r.Skip()
	}
}

// messageAttributes reads a map of attributes, in ascending order of their names.
func (r *jsonReader) messageAttributes() []MessageAttribute {
	var attributes []MessageAttribute
	for name := range r.Members() {
		if len(attributes) == maxParameters { // as many as a form may have
			r.Fail(errTooManyAttributes(len(attributes) + 1))
			return nil
		}
		attribute := MessageAttribute{Name: string(name)}
		attribute.decodeJSON(r)
		attributes = append(attributes, attribute)
	}
	return sortAttributes(attributes)
}

func (a *MessageAttribute) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "DataType":
			a.DataType = r.Text()
		case "StringValue":
			a.StringValue = r.Text()
		case "BinaryValue":
			a.BinaryValue = r.Blob()
		case "StringListValues", "BinaryListValues":
			if len(r.Texts(nil)) > 0 {
				r.Fail(errAttributeLists())
			}
		default:
			r.Skip()
		}
	}
}

func (in *ReceiveMessageInput) decodeJSON(r *jsonReader) {
	r.Share()
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "MaxNumberOfMessages":
			in.MaxNumberOfMessages = r.int32()
		case "VisibilityTimeout":
			in.VisibilityTimeout = r.int32()
		case "WaitTimeSeconds":
			in.WaitTimeSeconds = r.int32()
		case "MessageAttributeNames":
			in.MessageAttributeNames = r.Texts(nil)
		case "MessageSystemAttributeNames":
			in.MessageSystemAttributeNames = r.Texts(nil)
		case "AttributeNames":
			in.AttributeNames = r.Texts(nil)
		case "ReceiveRequestAttemptId":
			in.ReceiveRequestAttemptId = strings.Clone(r.Text()) // which is kept for five minutes
			in.emptyAttemptID = in.ReceiveRequestAttemptId == ""
		default:
			r.Skip()
		}
	}
}

func (in *DeleteMessageInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "ReceiptHandle":
			in.ReceiptHandle = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *DeleteMessageBatchInput) decodeJSON(r *jsonReader) {
	r.Share()
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Entries":
			in.Entries = decodeEntries(r, (*DeleteMessageBatchRequestEntry).decodeJSON)
		default:
			r.Skip()
		}
	}
}

func (e *DeleteMessageBatchRequestEntry) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "Id":
			e.Id = r.Text()
		case "ReceiptHandle":
			e.ReceiptHandle = r.Text()
		default:
			r.Skip()
		}
	}
}

func (in *ChangeMessageVisibilityInput) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "ReceiptHandle":
			in.ReceiptHandle = r.Text()
		case "VisibilityTimeout":
			in.VisibilityTimeout = r.int32()
		default:
			r.Skip()
		}
	}
}

func (in *ChangeMessageVisibilityBatchInput) decodeJSON(r *jsonReader) {
	r.Share()
	for name := range r.Members() {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = r.Text()
		case "Entries":
			in.Entries = decodeEntries(r, (*ChangeMessageVisibilityBatchRequestEntry).decodeJSON)
		default:
			r.Skip()
		}
	}
}

func (e *ChangeMessageVisibilityBatchRequestEntry) decodeJSON(r *jsonReader) {
	for name := range r.Members() {
		switch string(name) {
		case "Id":
			e.Id = r.Text()
		case "ReceiptHandle":
			e.ReceiptHandle = r.Text()
		case "VisibilityTimeout":
			e.VisibilityTimeout = r.int32()
		default:
			r.Skip()
		}
	}
}

// decodeEntries reads the entries of a batch. Those beyond the tenth are counted
// but not kept, so that a request of a million empty ones costs no memory; the
// batch is refused for them once the whole body is known to be well-formed.
func decodeEntries[E any](r *jsonReader, decode func(*E, *jsonReader)) []E {
	entries := make([]E, 0, maxBatchEntries)
	r.entries = 0
	for range r.Elements() {
		if r.entries++; r.entries > maxBatchEntries {
			r.Skip()
			continue
		}
		entries = entries[:r.entries]
		decode(&entries[r.entries-1], r)
	}
	return entries
}
