package sqsserver

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
