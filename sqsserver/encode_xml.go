package sqsserver

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// xmlOutput is an output that can be written as the result of a reply in XML. The
// methods append to dst; elements that are empty are left out, as AWS does.
type xmlOutput interface {
	appendXML(dst []byte) []byte
}

const (
	xmlDeclaration = `<?xml version="1.0"?>`
	xmlNamespace   = ` xmlns="http://queue.amazonaws.com/doc/2012-11-05/">`
)

// appendXMLReply appends the reply to a request of the Query protocol; out is nil
// if the action answers nothing.
func appendXMLReply(dst []byte, action, requestID string, out xmlOutput) []byte {
	dst = append(dst, xmlDeclaration+"<"...)
	dst = append(dst, action...)
	dst = append(dst, "Response"+xmlNamespace...)
	if out != nil {
		dst = append(dst, '<')
		dst = append(dst, action...)
		dst = append(dst, "Result>"...)
		start := len(dst)
		dst = out.appendXML(dst)
		if len(dst) == start {
			dst = append(dst[:start-1], "/>"...) // an empty result
		} else {
			dst = append(dst, "</"...)
			dst = append(dst, action...)
			dst = append(dst, "Result>"...)
		}
	}
	dst = append(dst, "<ResponseMetadata>"...)
	dst = appendXMLText(dst, "RequestId", requestID)
	dst = append(dst, "</ResponseMetadata></"...)
	dst = append(dst, action...)
	return append(dst, "Response>"...)
}

// appendXML appends the error as the reply to a request of the Query protocol.
func (e *Error) appendXML(dst []byte, requestID string) []byte {
	if e.Code == codeNoAction {
		return append(dst, "<UnknownOperationException/>"...)
	}
	dst = append(dst, xmlDeclaration+"<ErrorResponse"+xmlNamespace+"<Error>"...)
	dst = appendXMLText(dst, "Type", e.queryFault())
	dst = appendXMLText(dst, "Code", e.Code)
	dst = appendXMLText(dst, "Message", e.queryMessage())
	dst = append(dst, "<Detail/></Error>"...)
	dst = appendXMLText(dst, "RequestId", requestID)
	return append(dst, "</ErrorResponse>"...)
}

// queryFault and queryMessage return the type and the message of an error in the Query
// protocol.
func (e *Error) queryFault() string {
	if e.SenderFault() {
		return "Sender"
	}
	return "Receiver"
}

func (e *Error) queryMessage() string {
	if e.Code == codeQueueDoesNotExist {
		return "The specified queue does not exist for this wsdl version."
	}
	return e.Message
}

func (out *CancelMessageMoveTaskOutput) appendXML(dst []byte) []byte {
	return appendXMLInteger(dst, "ApproximateNumberOfMessagesMoved", out.ApproximateNumberOfMessagesMoved)
}

func (out *ChangeMessageVisibilityBatchOutput) appendXML(dst []byte) []byte {
	for _, entry := range out.Successful {
		dst = append(dst, "<ChangeMessageVisibilityBatchResultEntry>"...)
		dst = appendXMLText(dst, "Id", entry.Id)
		dst = append(dst, "</ChangeMessageVisibilityBatchResultEntry>"...)
	}
	return appendXMLFailed(dst, out.Failed)
}

func (out *CreateQueueOutput) appendXML(dst []byte) []byte {
	return appendXMLText(dst, "QueueUrl", out.QueueUrl)
}

func (out *DeleteMessageBatchOutput) appendXML(dst []byte) []byte {
	for _, entry := range out.Successful {
		dst = append(dst, "<DeleteMessageBatchResultEntry>"...)
		dst = appendXMLText(dst, "Id", entry.Id)
		dst = append(dst, "</DeleteMessageBatchResultEntry>"...)
	}
	return appendXMLFailed(dst, out.Failed)
}

func (out *GetQueueAttributesOutput) appendXML(dst []byte) []byte {
	for _, name := range slices.Sorted(maps.Keys(out.Attributes)) {
		dst = appendXMLAttribute(dst, name, out.Attributes[name])
	}
	return dst
}

func (out *GetQueueUrlOutput) appendXML(dst []byte) []byte {
	return appendXMLText(dst, "QueueUrl", out.QueueUrl)
}

func (out *ListDeadLetterSourceQueuesOutput) appendXML(dst []byte) []byte {
	return appendXMLPage(dst, out.QueueUrls, out.NextToken)
}

func (out *ListQueuesOutput) appendXML(dst []byte) []byte {
	return appendXMLPage(dst, out.QueueUrls, out.NextToken)
}

func appendXMLPage(dst []byte, urls []string, nextToken string) []byte {
	for _, url := range urls {
		dst = appendXMLText(dst, "QueueUrl", url)
	}
	return appendXMLOptional(dst, "NextToken", nextToken)
}

func (out *ListMessageMoveTasksOutput) appendXML(dst []byte) []byte {
	for i := range out.Results {
		task := &out.Results[i]
		dst = append(dst, "<ListMessageMoveTasksResultEntry>"...)
		dst = appendXMLOptional(dst, "TaskHandle", task.TaskHandle)
		dst = appendXMLText(dst, "Status", task.Status)
		dst = appendXMLText(dst, "SourceArn", task.SourceArn)
		dst = appendXMLOptional(dst, "DestinationArn", task.DestinationArn)
		if task.MaxNumberOfMessagesPerSecond > 0 {
			dst = appendXMLInteger(dst, "MaxNumberOfMessagesPerSecond", int64(task.MaxNumberOfMessagesPerSecond))
		}
		dst = appendXMLInteger(dst, "ApproximateNumberOfMessagesMoved", task.ApproximateNumberOfMessagesMoved)
		dst = appendXMLInteger(dst, "ApproximateNumberOfMessagesToMove", task.ApproximateNumberOfMessagesToMove)
		dst = appendXMLOptional(dst, "FailureReason", task.FailureReason)
		dst = appendXMLInteger(dst, "StartedTimestamp", task.StartedTimestamp)
		dst = append(dst, "</ListMessageMoveTasksResultEntry>"...)
	}
	return dst
}

func (out *ListQueueTagsOutput) appendXML(dst []byte) []byte {
	for _, key := range slices.Sorted(maps.Keys(out.Tags)) {
		dst = append(dst, "<Tag>"...)
		dst = appendXMLText(dst, "Key", key)
		dst = appendXMLText(dst, "Value", out.Tags[key])
		dst = append(dst, "</Tag>"...)
	}
	return dst
}

func (out *received) appendXML(dst []byte) []byte {
	for i := range out.messages {
		dst = append(dst, "<Message>"...)
		dst = out.messages[i].appendXML(dst)
		dst = append(dst, "</Message>"...)
	}
	return dst
}

func (m *message) appendXML(dst []byte) []byte {
	dst = appendXMLUUID(dst, "MessageId", m.MessageId)
	dst = appendXMLText(dst, "ReceiptHandle", m.ReceiptHandle)
	dst = appendXMLMD5(dst, "MD5OfBody", m.MD5OfBody)
	dst = appendXMLText(dst, "Body", m.body.plain())
	for name, value := range m.Attributes.All() {
		dst = appendXMLAttribute(dst, name, value)
	}
	dst = appendXMLMD5(dst, "MD5OfMessageAttributes", m.MD5OfMessageAttributes)
	for i := range m.MessageAttributes {
		a := &m.MessageAttributes[i]
		dst = append(dst, "<MessageAttribute>"...)
		dst = appendXMLText(dst, "Name", a.Name)
		dst = append(dst, "<Value>"...)
		dst = appendXMLOptional(dst, "StringValue", a.StringValue)
		if len(a.BinaryValue) > 0 {
			dst = append(dst, "<BinaryValue>"...)
			dst = base64.StdEncoding.AppendEncode(dst, a.BinaryValue)
			dst = append(dst, "</BinaryValue>"...)
		}
		dst = appendXMLText(dst, "DataType", a.DataType)
		dst = append(dst, "</Value></MessageAttribute>"...)
	}
	return dst
}

func (out *SendMessageOutput) appendXML(dst []byte) []byte {
	dst = appendXMLUUID(dst, "MessageId", out.MessageId)
	dst = appendXMLMD5(dst, "MD5OfMessageBody", out.MD5OfMessageBody)
	dst = appendXMLMD5(dst, "MD5OfMessageAttributes", out.MD5OfMessageAttributes)
	dst = appendXMLMD5(dst, "MD5OfMessageSystemAttributes", out.MD5OfMessageSystemAttributes)
	return appendXMLOptional(dst, "SequenceNumber", formatNumber(out.SequenceNumber))
}

func (out *SendMessageBatchOutput) appendXML(dst []byte) []byte {
	for i := range out.Successful {
		entry := &out.Successful[i]
		dst = append(dst, "<SendMessageBatchResultEntry>"...)
		dst = appendXMLText(dst, "Id", entry.Id)
		dst = entry.SendMessageOutput.appendXML(dst)
		dst = append(dst, "</SendMessageBatchResultEntry>"...)
	}
	return appendXMLFailed(dst, out.Failed)
}

func (out *StartMessageMoveTaskOutput) appendXML(dst []byte) []byte {
	return appendXMLText(dst, "TaskHandle", out.TaskHandle)
}

func appendXMLFailed(dst []byte, failed []BatchResultErrorEntry) []byte {
	for i := range failed {
		entry := &failed[i]
		dst = append(dst, "<BatchResultErrorEntry>"...)
		dst = appendXMLText(dst, "Id", entry.Id)
		dst = appendXMLText(dst, "Code", entry.Code)
		dst = appendXMLText(dst, "Message", entry.Message)
		dst = appendXMLText(dst, "SenderFault", strconv.FormatBool(entry.SenderFault))
		dst = append(dst, "</BatchResultErrorEntry>"...)
	}
	return dst
}

func appendXMLAttribute(dst []byte, name, value string) []byte {
	dst = append(dst, "<Attribute>"...)
	dst = appendXMLText(dst, "Name", name)
	dst = appendXMLText(dst, "Value", value)
	return append(dst, "</Attribute>"...)
}

// The functions below append an element.

func appendXMLText(dst []byte, name, value string) []byte {
	dst = appendXMLStart(dst, name)
	dst = appendXMLEscaped(dst, value)
	return appendXMLEnd(dst, name)
}

// appendXMLOptional appends nothing if the value is empty.
func appendXMLOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendXMLText(dst, name, value)
}

func appendXMLInteger(dst []byte, name string, value int64) []byte {
	dst = appendXMLStart(dst, name)
	dst = strconv.AppendInt(dst, value, 10)
	return appendXMLEnd(dst, name)
}

func appendXMLUUID(dst []byte, name string, value UUID) []byte {
	dst = appendXMLStart(dst, name)
	dst = value.append(dst)
	return appendXMLEnd(dst, name)
}

// appendXMLMD5 appends nothing if there is no digest.
func appendXMLMD5(dst []byte, name string, value MD5) []byte {
	if value == (MD5{}) {
		return dst
	}
	dst = appendXMLStart(dst, name)
	dst = value.append(dst)
	return appendXMLEnd(dst, name)
}

func appendXMLStart(dst []byte, name string) []byte {
	dst = append(dst, '<')
	dst = append(dst, name...)
	return append(dst, '>')
}

func appendXMLEnd(dst []byte, name string) []byte {
	dst = append(dst, "</"...)
	dst = append(dst, name...)
	return append(dst, '>')
}

// appendXMLEscaped appends s as the text of an element. A carriage return must be written as
// a reference, for readers of XML turn it into a line feed. Characters that XML 1.0 does not
// permit become U+FFFD; bodies have none, since SQS permits only XML's characters in them.
// https://www.w3.org/TR/xml/#charsets
func appendXMLEscaped(dst []byte, s string) []byte {
	for len(s) > 0 {
		n := 0
		for n < len(s) && xmlPlain[s[n]] {
			n++
		}
		dst = append(dst, s[:n]...)
		if s = s[n:]; s == "" {
			break
		}
		c, size := utf8.DecodeRuneInString(s)
		switch {
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c == '"':
			dst = append(dst, "&quot;"...)
		case c == '\r':
			dst = append(dst, "&#xD;"...)
		case c < ' ' || c == 0xFFFE || c == 0xFFFF:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			dst = utf8.AppendRune(dst, c) // U+FFFD for invalid UTF-8
		}
		s = s[size:]
	}
	return dst
}

// xmlPlain has the ASCII characters that need no escape.
var xmlPlain = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '&' && c != '<' && c != '>' && c != '"'
	}
	plain['\t'], plain['\n'] = true, true
	return plain
}()
