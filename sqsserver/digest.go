package sqsserver

import (
	"crypto/md5"
	"encoding/binary"
)

// digestBody returns the MD5 of a message body.
func digestBody(body string) MD5 { return md5.Sum(bytesOf(body)) }

// digestAttributes returns the MD5 that SQS defines over attributes, which are in
// ascending order of their names:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html#sqs-attributes-md5-message-digest-calculation
// It is zero if there are none.
func digestAttributes(attributes []MessageAttribute) MD5 {
	if len(attributes) == 0 {
		return MD5{}
	}
	const stringValue, binaryValue = 1, 2
	var buffer [512]byte
	text := buffer[:0]
	for i := range attributes {
		a := &attributes[i]
		text = appendSized(text, a.Name)
		text = appendSized(text, a.DataType)
		if a.isBinary() {
			text = append(text, binaryValue)
			text = appendSized(text, a.BinaryValue)
		} else {
			text = append(text, stringValue)
			text = appendSized(text, a.StringValue)
		}
	}
	return md5.Sum(text)
}

func appendSized[T string | []byte](dst []byte, value T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}
