package sqsserver

// queryInput is an input that can be read from the parameters of a request.
type queryInput interface {
	decodeQuery(*form)
}

// decodeQuery reads the parameters of a request into in, which must be zero.
func decodeQuery(f *form, in queryInput) error {
	in.decodeQuery(f)
	if n := f.request.entries; n > maxBatchEntries {
		f.fail(errTooManyEntries(n))
	}
	return f.err()
}

func (in *AddPermissionInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Label = f.text("Label")
	in.AWSAccountIds = f.texts("AWSAccountId")
	in.Actions = f.texts("ActionName")
}

func (in *CancelMessageMoveTaskInput) decodeQuery(f *form) { in.TaskHandle = f.text("TaskHandle") }

func (in *ChangeMessageVisibilityInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.ReceiptHandle = f.text("ReceiptHandle")
	in.VisibilityTimeout = f.int32("VisibilityTimeout")
}

func (in *ChangeMessageVisibilityBatchInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Entries = decodeQueryEntries(f, "ChangeMessageVisibilityBatchRequestEntry",
		func(e *ChangeMessageVisibilityBatchRequestEntry, f *form) {
			e.Id = f.text("Id")
			e.ReceiptHandle = f.text("ReceiptHandle")
			e.VisibilityTimeout = f.int32("VisibilityTimeout")
		})
}

func (in *CreateQueueInput) decodeQuery(f *form) {
	in.QueueName = f.text("QueueName")
	in.Attributes = f.textMap("Attribute", "Name", "Value")
	in.Tags = f.textMap("Tag", "Key", "Value")
}

func (in *DeleteMessageInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.ReceiptHandle = f.text("ReceiptHandle")
}

func (in *DeleteMessageBatchInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Entries = decodeQueryEntries(f, "DeleteMessageBatchRequestEntry",
		func(e *DeleteMessageBatchRequestEntry, f *form) {
			e.Id = f.text("Id")
			e.ReceiptHandle = f.text("ReceiptHandle")
		})
}

func (in *DeleteQueueInput) decodeQuery(f *form) { in.QueueUrl = f.queueURL() }

func (in *GetQueueAttributesInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.AttributeNames = f.texts("AttributeName")
}

func (in *GetQueueUrlInput) decodeQuery(f *form) {
	in.QueueName = f.text("QueueName")
	in.QueueOwnerAWSAccountId = f.text("QueueOwnerAWSAccountId")
}

func (in *ListDeadLetterSourceQueuesInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.MaxResults = f.int32("MaxResults")
	in.NextToken = f.text("NextToken")
}

func (in *ListMessageMoveTasksInput) decodeQuery(f *form) {
	in.SourceArn = f.text("SourceArn")
	in.MaxResults = f.int32("MaxResults")
}

func (in *ListQueueTagsInput) decodeQuery(f *form) { in.QueueUrl = f.queueURL() }

func (in *ListQueuesInput) decodeQuery(f *form) {
	in.QueueNamePrefix = f.text("QueueNamePrefix")
	in.MaxResults = f.int32("MaxResults")
	in.NextToken = f.text("NextToken")
}

func (in *PurgeQueueInput) decodeQuery(f *form) { in.QueueUrl = f.queueURL() }

func (in *ReceiveMessageInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.MaxNumberOfMessages = f.int32("MaxNumberOfMessages")
	in.VisibilityTimeout = f.int32("VisibilityTimeout")
	in.WaitTimeSeconds = f.int32("WaitTimeSeconds")
	in.MessageAttributeNames = f.texts("MessageAttributeName")
	in.MessageSystemAttributeNames = f.texts("MessageSystemAttributeName")
	in.AttributeNames = f.texts("AttributeName")
	in.ReceiveRequestAttemptId, in.emptyAttemptID = f.identifier("ReceiveRequestAttemptId")
}

func (in *RemovePermissionInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Label = f.text("Label")
}

func (in *SendMessageInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.SendMessageEntry.decodeQuery(f)
}

func (e *SendMessageEntry) decodeQuery(f *form) {
	e.MessageBody = f.text("MessageBody")
	e.DelaySeconds = f.int32("DelaySeconds")
	e.MessageAttributes = f.messageAttributes("MessageAttribute")
	e.MessageSystemAttributes = f.messageAttributes("MessageSystemAttribute")
	e.MessageDeduplicationId, e.emptyDeduplicationID = f.identifier("MessageDeduplicationId")
	e.MessageGroupId, e.emptyGroupID = f.identifier("MessageGroupId")
}

// messageAttributes returns attributes in ascending order of their names.
func (f *form) messageAttributes(name string) []MessageAttribute {
	var attributes []MessageAttribute
	for element := range f.elements(name) {
		attribute := MessageAttribute{Name: element.text("Name")}
		if value := element.parts["Value"]; value != nil {
			attribute.DataType = value.text("DataType")
			attribute.StringValue = value.text("StringValue")
			attribute.BinaryValue = value.blob("BinaryValue")
			if value.parts["StringListValue"] != nil || value.parts["BinaryListValue"] != nil {
				f.fail(errAttributeLists())
			}
		}
		attributes = append(attributes, attribute)
	}
	return sortAttributes(attributes)
}

func (in *SendMessageBatchInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Entries = decodeQueryEntries(f, "SendMessageBatchRequestEntry",
		func(e *SendMessageBatchRequestEntry, f *form) {
			e.Id = f.text("Id")
			e.SendMessageEntry.decodeQuery(f)
		})
}

func (in *SetQueueAttributesInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Attributes = f.textMap("Attribute", "Name", "Value")
}

func (in *StartMessageMoveTaskInput) decodeQuery(f *form) {
	in.SourceArn = f.text("SourceArn")
	in.DestinationArn = f.text("DestinationArn")
	in.MaxNumberOfMessagesPerSecond = f.int32("MaxNumberOfMessagesPerSecond")
}

func (in *TagQueueInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.Tags = f.textMap("Tag", "Key", "Value")
}

func (in *UntagQueueInput) decodeQuery(f *form) {
	in.QueueUrl = f.queueURL()
	in.TagKeys = f.texts("TagKey")
}

// decodeQueryEntries reads the entries of a batch. Those beyond the tenth are
// counted but not read.
func decodeQueryEntries[E any](f *form, name string, decode func(*E, *form)) []E {
	var entries []E
	f.request.entries = 0
	for element := range f.elements(name) {
		if f.request.entries++; f.request.entries <= maxBatchEntries {
			entries = append(entries, *new(E))
			decode(&entries[len(entries)-1], element)
		}
	}
	return entries
}
