package sqsserver

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"unsafe"

	"github.com/reprise-sqs/reprise/internal/awsjson"
)

// jsonOutput is an output that can be written as the JSON object of a reply. The
// methods append to dst and allocate nothing if it has room; members that are
// empty are left out, as AWS does.
type jsonOutput interface {
	appendJSON(dst []byte) []byte
}

func (out *CreateQueueOutput) appendJSON(dst []byte) []byte {
	return appendQueueURL(dst, out.QueueUrl)
}

func (out *GetQueueUrlOutput) appendJSON(dst []byte) []byte {
	return appendQueueURL(dst, out.QueueUrl)
}

func appendQueueURL(dst []byte, queueURL string) []byte {
	dst = append(dst, '{')
	dst = appendTextMember(dst, `"QueueUrl":`, queueURL)
	return append(dst, '}')
}

func (out *ListQueuesOutput) appendJSON(dst []byte) []byte {
	return appendURLPage(dst, `"QueueUrls":`, out.QueueUrls, out.NextToken)
}

func (out *ListDeadLetterSourceQueuesOutput) appendJSON(dst []byte) []byte {
	return appendURLPage(dst, `"queueUrls":`, out.QueueUrls, out.NextToken) // lower case here
}

func appendURLPage(dst []byte, name string, urls []string, nextToken string) []byte {
	dst = append(dst, '{')
	for i, url := range urls {
		dst = appendElementStart(dst, i, name)
		dst = awsjson.AppendText(dst, url)
	}
	dst = appendElementsEnd(dst, len(urls))
	dst = appendTextMember(dst, `"NextToken":`, nextToken)
	return append(dst, '}')
}

func (out *GetQueueAttributesOutput) appendJSON(dst []byte) []byte {
	return appendOnlyMap(dst, `"Attributes":{`, out.Attributes)
}

func (out *ListQueueTagsOutput) appendJSON(dst []byte) []byte {
	return appendOnlyMap(dst, `"Tags":{`, out.Tags)
}

// appendOnlyMap appends an output whose only member is a map.
func appendOnlyMap(dst []byte, name string, values map[string]string) []byte {
	dst = append(dst, '{')
	if len(values) > 0 {
		dst = append(dst, name...)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			dst = appendComma(dst)
			dst = awsjson.AppendText(dst, key)
			dst = append(dst, ':')
			dst = awsjson.AppendText(dst, values[key])
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (out *StartMessageMoveTaskOutput) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendTextMember(dst, `"TaskHandle":`, out.TaskHandle)
	return append(dst, '}')
}

func (out *CancelMessageMoveTaskOutput) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendIntegerMember(dst, `"ApproximateNumberOfMessagesMoved":`, out.ApproximateNumberOfMessagesMoved)
	return append(dst, '}')
}

func (out *ListMessageMoveTasksOutput) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range out.Results {
		dst = appendElementStart(dst, i, `"Results":`)
		dst = out.Results[i].appendJSON(dst)
	}
	dst = appendElementsEnd(dst, len(out.Results))
	return append(dst, '}')
}

func (e *ListMessageMoveTasksResultEntry) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendTextMember(dst, `"TaskHandle":`, e.TaskHandle)
	dst = appendTextMember(dst, `"Status":`, e.Status)
	dst = appendTextMember(dst, `"SourceArn":`, e.SourceArn)
	dst = appendTextMember(dst, `"DestinationArn":`, e.DestinationArn)
	if e.MaxNumberOfMessagesPerSecond > 0 {
		dst = appendIntegerMember(dst, `"MaxNumberOfMessagesPerSecond":`, int64(e.MaxNumberOfMessagesPerSecond))
	}
	dst = appendIntegerMember(dst, `"ApproximateNumberOfMessagesMoved":`, e.ApproximateNumberOfMessagesMoved)
	dst = appendIntegerMember(dst, `"ApproximateNumberOfMessagesToMove":`, e.ApproximateNumberOfMessagesToMove)
	dst = appendTextMember(dst, `"FailureReason":`, e.FailureReason)
	dst = appendIntegerMember(dst, `"StartedTimestamp":`, e.StartedTimestamp)
	return append(dst, '}')
}

func (out *SendMessageOutput) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = out.appendMembers(dst)
	return append(dst, '}')
}

func (out *SendMessageOutput) appendMembers(dst []byte) []byte {
	dst = appendUUIDMember(dst, `"MessageId":"`, out.MessageId)
	dst = appendMD5Member(dst, `"MD5OfMessageBody":"`, out.MD5OfMessageBody)
	dst = appendMD5Member(dst, `"MD5OfMessageAttributes":"`, out.MD5OfMessageAttributes)
	dst = appendMD5Member(dst, `"MD5OfMessageSystemAttributes":"`, out.MD5OfMessageSystemAttributes)
	return appendNumberMember(dst, `"SequenceNumber":"`, out.SequenceNumber)
}

func (out *SendMessageBatchOutput) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range out.Successful {
		entry := &out.Successful[i]
		dst = appendElementStart(dst, i, `"Successful":`)
		dst = appendEntryID(dst, entry.Id)
		dst = entry.appendMembers(dst)
		dst = append(dst, '}')
	}
	dst = appendElementsEnd(dst, len(out.Successful))
	dst = appendFailed(dst, out.Failed)
	return append(dst, '}')
}

func (out *DeleteMessageBatchOutput) appendJSON(dst []byte) []byte {
	return appendBatchOutput(dst, out.Successful, out.Failed)
}

func (out *ChangeMessageVisibilityBatchOutput) appendJSON(dst []byte) []byte {
	return appendBatchOutput(dst, out.Successful, out.Failed)
}

func appendBatchOutput(dst []byte, successful []BatchResultEntry, failed []BatchResultErrorEntry) []byte {
	dst = append(dst, '{')
	for i, entry := range successful {
		dst = appendElementStart(dst, i, `"Successful":`)
		dst = appendEntryID(dst, entry.Id)
		dst = append(dst, '}')
	}
	dst = appendElementsEnd(dst, len(successful))
	dst = appendFailed(dst, failed)
	return append(dst, '}')
}

func appendFailed(dst []byte, failed []BatchResultErrorEntry) []byte {
	for i := range failed {
		entry := &failed[i]
		dst = appendElementStart(dst, i, `"Failed":`)
		dst = appendEntryID(dst, entry.Id)
		dst = appendTextMember(dst, `"Code":`, entry.Code)
		dst = appendTextMember(dst, `"Message":`, entry.Message)
		dst = append(dst, `,"SenderFault":`...)
		dst = strconv.AppendBool(dst, entry.SenderFault)
		dst = append(dst, '}')
	}
	return appendElementsEnd(dst, len(failed))
}

// appendEntryID begins the result of a batch entry. The id is never left out: the AWS SDK for Go
// reads it without checking that it is there.
func appendEntryID(dst []byte, id string) []byte {
	return awsjson.AppendText(append(dst, `{"Id":`...), id)
}

func (out *received) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range out.messages {
		dst = appendElementStart(dst, i, `"Messages":`)
		dst = out.messages[i].appendJSON(dst)
	}
	dst = appendElementsEnd(dst, len(out.messages))
	return append(dst, '}')
}

func (m *message) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendUUIDMember(dst, `"MessageId":"`, m.MessageId)
	dst = appendTextMember(dst, `"ReceiptHandle":`, m.ReceiptHandle)
	dst = appendMD5Member(dst, `"MD5OfBody":"`, m.MD5OfBody)
	dst = append(dst, `,"Body":`...)
	dst = m.body.appendJSON(dst)
	dst = m.Attributes.appendMember(dst)
	dst = appendMD5Member(dst, `"MD5OfMessageAttributes":"`, m.MD5OfMessageAttributes)
	if len(m.MessageAttributes) > 0 {
		dst = append(dst, `,"MessageAttributes":{`...)
		for i := range m.MessageAttributes {
			dst = m.MessageAttributes[i].appendMember(dst)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (a *SystemAttributes) appendMember(dst []byte) []byte {
	if *a == (SystemAttributes{}) {
		return dst
	}
	dst = append(dst, `,"Attributes":{`...)
	dst = appendTextMember(dst, `"SenderId":`, a.SenderId)
	dst = appendNumberMember(dst, `"SentTimestamp":"`, uint64(a.SentTimestamp))
	dst = appendNumberMember(dst, `"ApproximateReceiveCount":"`, uint64(a.ApproximateReceiveCount))
	dst = appendNumberMember(dst, `"ApproximateFirstReceiveTimestamp":"`, uint64(a.ApproximateFirstReceiveTimestamp))
	dst = appendNumberMember(dst, `"SequenceNumber":"`, a.SequenceNumber)
	dst = appendTextMember(dst, `"MessageDeduplicationId":`, a.MessageDeduplicationId)
	dst = appendTextMember(dst, `"MessageGroupId":`, a.MessageGroupId)
	dst = appendTextMember(dst, `"AWSTraceHeader":`, a.AWSTraceHeader)
	dst = appendTextMember(dst, `"DeadLetterQueueSourceArn":`, a.DeadLetterQueueSourceArn)
	return append(dst, '}')
}

func (a *MessageAttribute) appendMember(dst []byte) []byte {
	dst = appendComma(dst)
	dst = awsjson.AppendText(dst, a.Name)
	dst = append(dst, `:{`...)
	dst = appendTextMember(dst, `"StringValue":`, a.StringValue)
	if len(a.BinaryValue) > 0 {
		dst = appendComma(dst)
		dst = append(dst, `"BinaryValue":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, a.BinaryValue)
		dst = append(dst, '"')
	}
	dst = appendTextMember(dst, `"DataType":`, a.DataType)
	return append(dst, '}')
}

// The functions below append a member, or nothing if its value is empty. Name
// is the name as it is written, up to the value's first byte that never varies.

func appendTextMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = appendComma(dst)
	dst = append(dst, name...)
	return awsjson.AppendText(dst, value)
}

// appendNumberMember: SQS writes numbers as strings where they are attributes.
func appendNumberMember(dst []byte, name string, value uint64) []byte {
	if value == 0 {
		return dst
	}
	dst = appendComma(dst)
	dst = append(dst, name...)
	dst = strconv.AppendUint(dst, value, 10)
	return append(dst, '"')
}

// appendIntegerMember writes 0 as well.
func appendIntegerMember(dst []byte, name string, value int64) []byte {
	dst = appendComma(dst)
	dst = append(dst, name...)
	return strconv.AppendInt(dst, value, 10)
}

func appendMD5Member(dst []byte, name string, value MD5) []byte {
	if value == (MD5{}) {
		return dst
	}
	dst = appendComma(dst)
	dst = append(dst, name...)
	dst = value.append(dst)
	return append(dst, '"')
}

func appendUUIDMember(dst []byte, name string, value UUID) []byte {
	dst = appendComma(dst)
	dst = append(dst, name...)
	dst = value.append(dst)
	return append(dst, '"')
}

// appendElementStart begins element i of the array that the member name has.
func appendElementStart(dst []byte, i int, name string) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	dst = appendComma(dst)
	dst = append(dst, name...)
	return append(dst, '[')
}

// appendElementsEnd ends an array of n elements. An empty array was never begun.
func appendElementsEnd(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	return append(dst, ']')
}

// appendComma separates a member from the one before it, if there is one.
func appendComma(dst []byte) []byte {
	if dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

// bytesOf returns the bytes of s without copying them; they must not be written.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
