package sqsserver

import (
	"crypto/md5"

	"github.com/reprise-sqs/reprise/internal/digest"
)

// digestBody returns the MD5 of a message body.
func digestBody(plain []byte) MD5 { return md5.Sum(plain) }

// digestAttributes returns the MD5 that SQS defines over attributes, which are in
// ascending order of their names. It is zero if there are none.
func digestAttributes(attributes []MessageAttribute) MD5 {
	if len(attributes) == 0 {
		return MD5{}
	}
	var buffer [512]byte
	text := buffer[:0]
	for i := range attributes {
		if a := &attributes[i]; a.isBinary() {
			text = digest.AppendBinary(text, a.Name, a.DataType, a.BinaryValue)
		} else {
			text = digest.AppendString(text, a.Name, a.DataType, a.StringValue)
		}
	}
	return md5.Sum(text)
}
