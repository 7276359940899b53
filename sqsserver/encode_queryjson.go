package sqsserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// queryJSONOutput is an output that can be written as the result of a reply to a
// request of the Query protocol that accepts application/json. This JSON is not
// that of AWS JSON 1.0: maps are lists of names and values, what is absent is null,
// and some members are in lower case. AWS's replies to ListQueues, SendMessage, GetQueueAttributes
// and ReceiveMessage without attributes, and its errors, are known from recordings; the others are
// formed the same way.
//
// It is for old clients and API Gateway, and not for speed: encoding/json writes the
// members of a map in the order of their names, which is AWS's.
type queryJSONOutput interface {
	queryJSON() map[string]any
}

// appendQueryJSONReply appends the reply to a request; out is nil if the action
// answers nothing.
func appendQueryJSONReply(dst []byte, action, requestID string, out queryJSONOutput) []byte {
	response := map[string]any{"ResponseMetadata": map[string]any{"RequestId": requestID}}
	if out != nil {
		response[action+"Result"] = out.queryJSON()
	}
	return appendQueryJSON(dst, map[string]any{action + "Response": response})
}

// queryJSON is the error as a reply.
func (e *Error) queryJSON(requestID string) map[string]any {
	return map[string]any{
		"Error":     map[string]any{"Type": e.queryFault(), "Code": e.Code, "Message": e.queryMessage()},
		"RequestId": requestID,
	}
}

func appendQueryJSON(dst []byte, value map[string]any) []byte {
	buffer := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // there is nothing in it that cannot be encoded
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte{'\n'})
}

func (out *CancelMessageMoveTaskOutput) queryJSON() map[string]any {
	return map[string]any{"ApproximateNumberOfMessagesMoved": out.ApproximateNumberOfMessagesMoved}
}

func (out *ChangeMessageVisibilityBatchOutput) queryJSON() map[string]any {
	return batchQueryJSON(out.Successful, out.Failed)
}

func (out *CreateQueueOutput) queryJSON() map[string]any {
	return map[string]any{"QueueUrl": out.QueueUrl}
}

func (out *DeleteMessageBatchOutput) queryJSON() map[string]any {
	return batchQueryJSON(out.Successful, out.Failed)
}

func (out *GetQueueAttributesOutput) queryJSON() map[string]any {
	return map[string]any{"Attributes": pairsOrNull("Name", out.Attributes)}
}

func (out *GetQueueUrlOutput) queryJSON() map[string]any {
	return map[string]any{"QueueUrl": out.QueueUrl}
}

func (out *ListDeadLetterSourceQueuesOutput) queryJSON() map[string]any {
	return map[string]any{"NextToken": textOrNull(out.NextToken), "queueUrls": listOrNull(out.QueueUrls)}
}

func (out *ListMessageMoveTasksOutput) queryJSON() map[string]any {
	results := make([]map[string]any, len(out.Results))
	for i := range out.Results {
		task := &out.Results[i]
		results[i] = map[string]any{
			"TaskHandle": textOrNull(task.TaskHandle), "Status": task.Status, "SourceArn": task.SourceArn,
			"DestinationArn":                    textOrNull(task.DestinationArn),
			"MaxNumberOfMessagesPerSecond":      nil,
			"ApproximateNumberOfMessagesMoved":  task.ApproximateNumberOfMessagesMoved,
			"ApproximateNumberOfMessagesToMove": task.ApproximateNumberOfMessagesToMove,
			"FailureReason":                     textOrNull(task.FailureReason), "StartedTimestamp": task.StartedTimestamp,
		}
		if rate := task.MaxNumberOfMessagesPerSecond; rate > 0 {
			results[i]["MaxNumberOfMessagesPerSecond"] = rate
		}
	}
	return map[string]any{"Results": listOrNull(results)}
}

func (out *ListQueueTagsOutput) queryJSON() map[string]any {
	return map[string]any{"Tags": pairsOrNull("Key", out.Tags)}
}

func (out *ListQueuesOutput) queryJSON() map[string]any {
	return map[string]any{
		"NextExclusiveStartQueueName": nil, // which AWS has, and documents nowhere
		"NextToken":                   textOrNull(out.NextToken),
		"queueUrls":                   listOrNull(out.QueueUrls),
	}
}

func (out *received) queryJSON() map[string]any {
	messages := make([]map[string]any, len(out.messages))
	for i := range out.messages {
		m := &out.messages[i]
		var system []map[string]any
		for name, value := range m.Attributes.All() {
			system = append(system, map[string]any{"Name": name, "Value": value})
		}
		attributes := make([]map[string]any, len(m.MessageAttributes))
		for j := range m.MessageAttributes {
			attributes[j] = m.MessageAttributes[j].queryJSON()
		}
		messages[i] = map[string]any{
			"MessageId": m.MessageId.String(), "ReceiptHandle": m.ReceiptHandle,
			"MD5OfBody": m.MD5OfBody.String(), "Body": m.body.plain(), "Attributes": listOrNull(system),
			"MD5OfMessageAttributes": textOrNull(m.MD5OfMessageAttributes.String()), "MessageAttributes": listOrNull(attributes),
		}
	}
	return map[string]any{"messages": listOrNull(messages)}
}

func (a *MessageAttribute) queryJSON() map[string]any {
	value := map[string]any{
		"DataType": a.DataType, "StringValue": textOrNull(a.StringValue), "BinaryValue": nil,
		"StringListValues": nil, "BinaryListValues": nil,
	}
	if len(a.BinaryValue) > 0 {
		value["BinaryValue"] = a.BinaryValue // in base64
	}
	return map[string]any{"Name": a.Name, "Value": value}
}

func (out *SendMessageOutput) queryJSON() map[string]any {
	return map[string]any{
		"MessageId":                    out.MessageId.String(),
		"MD5OfMessageBody":             out.MD5OfMessageBody.String(),
		"MD5OfMessageAttributes":       textOrNull(out.MD5OfMessageAttributes.String()),
		"MD5OfMessageSystemAttributes": textOrNull(out.MD5OfMessageSystemAttributes.String()),
		"SequenceNumber":               textOrNull(formatNumber(out.SequenceNumber)),
	}
}

func (out *SendMessageBatchOutput) queryJSON() map[string]any {
	successful := make([]map[string]any, len(out.Successful))
	for i := range out.Successful {
		successful[i] = out.Successful[i].SendMessageOutput.queryJSON()
		successful[i]["Id"] = out.Successful[i].Id
	}
	return map[string]any{"Successful": successful, "Failed": failedQueryJSON(out.Failed)}
}

func (out *StartMessageMoveTaskOutput) queryJSON() map[string]any {
	return map[string]any{"TaskHandle": out.TaskHandle}
}

func batchQueryJSON(successful []BatchResultEntry, failed []BatchResultErrorEntry) map[string]any {
	ids := make([]map[string]any, len(successful))
	for i := range successful {
		ids[i] = map[string]any{"Id": successful[i].Id}
	}
	return map[string]any{"Successful": ids, "Failed": failedQueryJSON(failed)}
}

func failedQueryJSON(failed []BatchResultErrorEntry) []map[string]any {
	entries := make([]map[string]any, len(failed))
	for i := range failed {
		e := &failed[i]
		entries[i] = map[string]any{"Id": e.Id, "Code": e.Code, "Message": e.Message, "SenderFault": e.SenderFault}
	}
	return entries
}

func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func listOrNull[E any](list []E) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// pairsOrNull is a map as AWS writes it: a list of keys, under the name given, and
// values.
func pairsOrNull(key string, values map[string]string) any {
	var pairs []map[string]any
	for _, name := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, map[string]any{key: name, "Value": values[name]})
	}
	return listOrNull(pairs)
}
